"""The guard: which URLs, hosts, ports and addresses; asked with a resolver of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from toolcrib.net import NetGuard, NetworkRefused, parse_url

PUBLIC = "93.184.216.34"
NAMES = {
    "public.test": [PUBLIC],
    "two.test": [PUBLIC, "2606:4700::1111"],
    "private.test": ["10.1.2.3"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "metadata.test": ["169.254.169.254"],
    "odd.test": ["not an address"],
    "empty.test": [],
    "localhost": ["127.0.0.1"],
    "db.internal": ["10.1.9.9"],
}


def resolver(host: str, port: int) -> Sequence[str]:
    if host not in NAMES:
        raise OSError("Name or service not known; nameserver 10.9.9.9")
    return NAMES[host]


def guard(**settings: Any) -> NetGuard:
    return NetGuard(resolver=resolver, **settings)


REFUSED_URLS = [
    ("", "empty"), ("   ", "empty"), ("example.org", "not a URL"), ("//example.org/", "not a URL"), ("http:example.org", "not a URL"), ("http:/example.org", "not a URL"),
    ("file:///etc/passwd", "only http and https"), ("gopher://example.org:70/", "only http and https"), ("ftp://example.org", "only http and https"), ("javascript://x/", "only http"),
    ("http://", "no host"), ("http:///path", "no host"), ("http://:80/", "no host"), ("http://user@example.org/", "userinfo"), ("http://u:p@example.org/", "userinfo"),
    ("http://public.test@127.0.0.1/", "userinfo"), ("http://@example.org/", "userinfo"), ("http://exa mple.org/", "white space"), ("http://example.org/a b", "white space"),
    (" http://example.org/", "white space"), ("http://example.org/\n", "white space"), ("http://example.org\t/", "white space"), ("http://example.org\u00a0/", "white space"),
    ("http://exam\x00ple.org/", "control"), ("http://exam\u200bple.org/", "control"), ("http://example.org\u202e/", "control"), ("http://example.org\\@127.0.0.1/", "backslash"),
    ("http:\\\\example.org/", "backslash"), ("http://example.org:99999/", "port"), ("http://example.org:0/", "port"), ("http://example.org:x/", "cannot be read"),
    ("http://example.org:80:80/", "cannot be read"), ("http://[::1/", "cannot be read"), ("http://::1/", "cannot be read"), ("http://[example.org]/", "not a valid"),
    ("http://exa%6dple.org/", "not a valid host"), ("http://-a.org/", "not a valid host"), ("http://a..org/", "not a valid host"), ("http://a_b!.org/", "not a valid host"),
    ("http://" + "a" * 64 + ".org/", "not a valid host"), ("http://256.1.1.1/", "not a valid address"), ("http://1.2.3.4.5/", "not a valid address"), ("http://x/" + "a" * 9000, "longer than"),
]  # fmt: skip
INSIDE = [
    "http://127.0.0.1/", "http://localhost/", "http://LOCALHOST./", "http://foo.localhost/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://0/",
    "http://[::1]/", "http://[::]/", "http://[::ffff:7f00:1]/", "http://[fe80::1%25lo]/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "http://１２７.０.０.１/", "http://127。0。0。1/", "http://169.254.169.254/latest/",
    "http://[64:ff9b::a9fe:a9fe]/", "http://printer.local/", "http://metadata.google.internal/", "http://router.lan/", "https://10.0.0.5/", "http://100.100.100.200/", "http://168.63.129.16/",
]  # fmt: skip


@each(("url", "words"), REFUSED_URLS)
def test_a_url_that_can_be_read_in_two_ways_is_refused(url: str, words: str) -> None:
    with pytest.raises(NetworkRefused, match=words):
        guard(allow_private=["*"]).check_url(url)


@pytest.mark.parametrize("url", INSIDE)
def test_hosts_of_ones_own_network_are_refused_before_resolving(url: str) -> None:
    with pytest.raises(NetworkRefused, match="is refused: it is") as told:
        NetGuard(resolver=lambda host, port: pytest.fail("asked")).check_url(url)
    assert isinstance(told.value, OSError)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("HTTPS://Example.ORG./a?b=@#c", "example.org", 443),
        ("http://example.org:/", "example.org", 80),
        ("http://example.org?x=http://a@b/", "example.org", 80),
        ("https://пример.рф/", "xn--e1afmkfd.xn--p1ai", 443),
        ("https://xn--e1afmkfd.xn--p1ai/", "xn--e1afmkfd.xn--p1ai", 443),
        ("http://8.8.8.8:80/", "8.8.8.8", 80),
        ("http://0x8.8.8.8/", "8.8.8.8", 80),
        ("http://[2606:4700::1111]/", "2606:4700::1111", 80),
        ("http://my_host.example.org/", "my_host.example.org", 80),
    ],
)
def test_plain_urls_are_read_in_one_way(url: str, host: str, port: int) -> None:
    target = guard().check_url(url)
    assert (target.host.name, target.port) == (host, port)


async def both(asked: NetGuard, host: str, port: int = 443) -> list[str]:
    """With and without an event loop the answer is the same."""
    outcomes: list[Any] = []
    for ask in ("sync", "async"):
        try:
            outcomes.append(
                asked.resolve_sync(host, port) if ask == "sync" else await asked.resolve(host, port)
            )
        except NetworkRefused as refused:
            outcomes.append(refused)
    assert repr(outcomes[0]) == repr(outcomes[1])
    if isinstance(outcomes[0], NetworkRefused):
        raise outcomes[0]
    return outcomes[0]  # type: ignore[no-any-return]


async def test_the_checked_addresses_are_handed_out() -> None:
    assert await both(guard(), "public.test") == [PUBLIC]
    assert await both(guard(), "Two.Test.") == NAMES["two.test"]
    assert await both(guard(), "0x08080808", 80) == ["8.8.8.8"]


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("private.test", "private.test is refused: it resolves to a private address"),
        ("mixed.test", "mixed.test is refused: it resolves to a loopback address"),
        ("metadata.test", "it resolves to a cloud metadata address"),
        ("odd.test", "resolves to something that is no address"),
        ("empty.test", "empty.test has no address"),
        ("unknown.test", "unknown.test cannot be resolved"),
    ],
)
async def test_one_bad_address_refuses_them_all(host: str, words: str) -> None:
    with pytest.raises(NetworkRefused, match=words) as told:
        await both(guard(), host)
    assert not any(text in str(told.value) for text in ("10.", "127.", "169.", "nameserver"))


RULES: list[tuple[dict[str, Any], str, int, bool]] = [
    ({}, "example.org", 443, True),
    ({}, "example.org", 8080, False),
    ({"ports": [8080]}, "example.org", 8080, True),
    ({"allow_hosts": ["example.org"]}, "example.org", 443, True),
    ({"allow_hosts": ["EXAMPLE.org."]}, "example.ORG", 80, True),
    ({"allow_hosts": ["example.org"]}, "www.example.org", 443, False),
    ({"allow_hosts": ["example.org"]}, "notexample.org", 443, False),
    ({"allow_hosts": ["example.org"]}, "example.org.evil.test", 443, False),
    ({"allow_hosts": ["example.org"]}, "example.org", 22, False),
    ({"allow_hosts": ["*.example.org"]}, "www.example.org", 443, True),
    ({"allow_hosts": ["*.example.org"]}, "a.b.example.org", 443, True),
    ({"allow_hosts": ["*.example.org"]}, "example.org", 443, False),
    ({"allow_hosts": ["*.example.org"]}, "badexample.org", 443, False),
    ({"allow_hosts": ["example.org:8443"]}, "example.org", 8443, True),
    ({"allow_hosts": ["example.org:8443"]}, "example.org", 443, False),
    ({"allow_hosts": ["*"]}, "example.org", 443, True),
    ({"allow_hosts": []}, "example.org", 443, False),
    ({"allow_hosts": ["пример.рф"]}, "xn--e1afmkfd.xn--p1ai", 443, True),
    ({"allow_hosts": ["xn--e1afmkfd.xn--p1ai"]}, "пример.рф", 443, True),
    ({"allow_hosts": ["8.8.8.8"]}, "134744072", 443, True),
    ({"allow_hosts": ["10.0.0.1"]}, "10.0.0.1", 443, False),
    ({"allow_hosts": ["[2606:4700::1]:8443"]}, "2606:4700::1", 8443, True),
    ({"deny_hosts": ["evil.test"]}, "evil.test", 443, False),
    ({"deny_hosts": ["evil.test"]}, "www.evil.test", 443, False),
    ({"deny_hosts": ["*.evil.test"]}, "evil.test", 443, True),
    ({"deny_hosts": ["evil.test"], "allow_hosts": ["evil.test"]}, "evil.test", 443, False),
    ({"deny_hosts": ["evil.test"], "allow_private": ["evil.test"]}, "evil.test", 443, False),
    ({"allow_private": ["10.0.0.0/8"]}, "10.0.0.1", 80, True),
    ({"allow_private": ["10.0.0.1"]}, "10.0.0.1", 80, True),
    ({"allow_private": ["10.0.0.0/8"]}, "192.168.0.1", 80, False),
    ({"allow_private": ["127.0.0.0/8"]}, "localhost", 80, False),
    ({"allow_private": ["localhost"]}, "localhost", 80, True),
    ({"allow_private": ["*.internal"]}, "db.internal", 80, True),
    ({"allow_private": ["*"]}, "192.168.0.1", 80, True),
    ({"allow_private": ["*", "169.254.0.0/16"]}, "169.254.169.254", 80, False),
    ({"allow_private": ["*"]}, "fe80::1", 80, False),
    ({"allow_private": ["0.0.0.0/0"]}, "224.0.0.1", 80, False),
    ({"allow_private": ["*"], "allow_hosts": ["example.org"]}, "10.0.0.1", 80, False),
]


@each(("settings", "host", "port", "allowed"), RULES)
def test_lists_of_hosts(settings: dict[str, Any], host: str, port: int, allowed: bool) -> None:
    try:
        guard(**settings).check_host(f"[{host}]" if ":" in host else host, port)
    except NetworkRefused:
        assert not allowed
    else:
        assert allowed


async def test_what_is_opened_resolves() -> None:
    assert await both(guard(allow_private=["db.internal"]), "db.internal") == ["10.1.9.9"]
    assert await both(guard(allow_private=["10.1.0.0/16"]), "private.test") == ["10.1.2.3"]
    with pytest.raises(NetworkRefused, match="metadata"):
        await both(guard(allow_private=["*"]), "metadata.test")


@pytest.mark.parametrize(
    "settings",
    [
        {"allow_hosts": ["exa mple"]},
        {"allow_hosts": ["http://example.org"]},
        {"allow_hosts": ["*.8.8.8.8"]},
        {"deny_hosts": [""]},
        {"allow_private": ["10.0.0.0/99"]},
        {"allow_private": ["10.0.0.1/8"]},
        {"nat64": ["2001:db8::/72"]},
    ],
)
def test_entries_that_cannot_be_read_are_refused_when_the_guard_is_made(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        guard(**settings)


def test_a_string_is_no_list() -> None:
    with pytest.raises(TypeError, match="allow_hosts is a list of names"):
        guard(allow_hosts="example.org")


async def test_an_async_resolver_is_for_async_clients() -> None:
    async def later(host: str, port: int) -> list[str]:
        return [PUBLIC]

    asked = NetGuard(resolver=later)
    assert await asked.resolve("example.org", 80) == [PUBLIC]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://{text}/x"):
        try:
            target = parse_url(url)
        except NetworkRefused as refused:
            assert refused.reason
        else:
            assert target.host.name.isascii() and target.host.name == target.host.name.lower()
            assert (
                parse_url(
                    f"{target.scheme}://{'[' + target.host.name + ']' if ':' in target.host.name else target.host.name}:{target.port}"
                ).origin
                == target.origin
            )


@pytest.mark.parametrize("name", ["deny_hosts", "allow_private", "nat64"])
def test_one_string_is_no_list_of_names(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} is a list of names.*write \['10.1.0.0/16'\]"):
        NetGuard(**{name: "10.1.0.0/16"})  # type: ignore[arg-type]


@pytest.mark.parametrize("ports", ["80", b"80", 80, ["80"], [True]])
def test_ports_are_a_list_of_numbers(ports: Any) -> None:
    with pytest.raises(TypeError, match=r"ports is a list of numbers"):
        NetGuard(ports=ports)


def test_a_string_of_digits_opens_no_port() -> None:
    with pytest.raises(TypeError, match=r"write \[80\]"):
        NetGuard(ports="80")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="70000 is no port"):
        NetGuard(ports=[70000])
