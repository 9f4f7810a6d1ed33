"""Recorded cases about addresses, hosts and URLs. What we do otherwise stands in a table with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases, shared_dir
from toolcrib.net import AddressKind, NetGuard, NetworkRefused, kind_of, why_refused
from toolcrib.net.addresses import nat64_inner, nat64_prefix
from toolcrib.net.urls import parse_host, parse_url

pytest.importorskip("httpx2")

from tests.test_net_transport import PUBLIC, Asker, server  # noqa: F401 - a server on loopback and its clients

CLASSES = load_cases("cases/zeroclaw/ssrf_net_guard.json")
POLICY = load_cases("cases/zeroclaw/url_policy.json")
BLOCKED = load_cases("cases/entelix/ssrf_ip.json")
HOSTS = load_cases("cases/entelix/host_allowlist.json")
GATE = load_cases("cases/zeroclaw/domain_gate.json")
FETCHED = load_cases("cases/opencode/webfetch.json")
URLS = json.loads((shared_dir() / "cases/ssrf/urls.json").read_text(encoding="utf-8"))["cases"]


def by_name(cases: list[Any]) -> Any:
    return each("case", [pytest.param(case, id=case["name"]) for case in cases])


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def refusal(guard: NetGuard, url: str) -> str:
    """Why a URL cannot be asked for, resolving included; empty if it can."""
    try:
        target = guard.check_url(url)
        guard.resolve_sync(in_url(target.host.name), target.port)
    except NetworkRefused as refused:
        return refused.reason
    return ""


@each("kind", ["sync", "async"])
@by_name(URLS)
async def test_the_corpus_of_urls(case: dict[str, Any], kind: str, server: int) -> None:  # noqa: F811
    """With a real client: what is to be blocked reaches no address but the public one, and fails."""
    ask = Asker(kind, server)
    url = case["url"].replace("PORT", str(server))
    again = 2 if "rebind" in case["name"] else 1  # a name that resolves to something else the second time
    reached, problem = False, None
    for _ in range(again):
        try:
            reached, problem = (await ask.get(url)).status_code == 200, None
        except Exception as raised:  # the client refuses some of these itself
            reached, problem = False, raised
    assert {address for address, _ in ask.wire.seen} <= {PUBLIC}
    if case["expected"] == "allow":
        assert reached, problem
    else:
        assert not reached


@by_name(BLOCKED)
def test_blocked_addresses(case: dict[str, Any]) -> None:
    assert (why_refused(case["input"]["ip"]) is not None) == case["expected"]["blocked"]


BARE = "a bare domain holds for itself; names below it are said with *."
DIFFERENT_MATCHES = {("example.com", "api.example.com"): BARE, ("example.com", "v2.api.example.com"): BARE}
APEX = "*.example.com does not hold for example.com"


def private_or_local(host: str) -> bool:
    guard = NetGuard(resolver=lambda host, port: [PUBLIC])
    try:
        guard.check_host(in_url(host), 80)
    except NetworkRefused:
        return True
    return False


def metadata(address: str) -> bool:
    """Upstream counts all of IPv4's link-local range as metadata: it stays closed here as well."""
    kind = kind_of(IPv6Address(address) if ":" in address else IPv4Address(address))
    return kind in (AddressKind.METADATA, AddressKind.LINK_LOCAL)


def known_endpoint(address: str) -> bool:
    return why_refused(address) == AddressKind.METADATA.value


def matches(arg: dict[str, Any]) -> bool:
    guard = NetGuard(allow_hosts=[in_url(entry) for entry in arg["allow"]], allow_private=["*"])
    try:
        guard.check_host(in_url(arg["host"]), 80)
    except NetworkRefused as refused:
        return "documentation" in refused.reason  # it is on the list, and closed all the same
    return True


def resolved(arg: dict[str, Any]) -> bool:
    private = ["*"] if arg["allow_private"] else []
    guard = NetGuard(allow_private=private, nat64=arg["nat64_prefixes"])
    try:
        guard.check_addresses(parse_host(arg["host"]), arg["ips"])
    except NetworkRefused:
        return False
    return True


@by_name(CLASSES)
def test_address_classes(case: dict[str, Any]) -> None:
    fn, arg, expected = case["input"]["fn"], case["input"]["arg"], case["expected"]
    match fn:
        case "is_private_or_local_host":
            assert private_or_local(arg) == expected
        case "is_non_global_ip":
            assert (why_refused(arg) is not None) == expected
        case "is_cloud_metadata_ip":
            if (
                expected
                or kind_of(IPv6Address(arg) if ":" in arg else IPv4Address(arg)) is not AddressKind.LINK_LOCAL
            ):
                assert metadata(arg) == expected
        case "is_known_cloud_metadata_endpoint":
            assert known_endpoint(arg) == expected
        case "host_matches_allowlist":
            if any((entry, arg["host"]) in DIFFERENT_MATCHES for entry in arg["allow"]):
                assert not matches(arg)
            elif any(entry == f"*.{arg['host']}" for entry in arg["allow"]):
                assert not matches(arg), APEX
            else:
                bare = any(arg["host"].endswith(f".{entry}") for entry in arg["allow"])
                assert matches(arg) == (expected and not bare)
        case "nat64_embedded_ipv4":
            found = nat64_inner(nat64_prefix(arg["prefix"]), IPv6Address(arg["address"]))
            assert (str(found) if found else None) == expected
        case "nat64_prefix_parse":
            try:
                nat64_prefix(arg)
            except ValueError:
                assert not expected["ok"]
            else:
                assert expected["ok"]
        case "validate_resolved_ips":
            assert resolved(arg) == expected["ok"]
        case "normalize_domain":
            normalised(arg, expected)
        case _:
            assert (
                fn == "normalize_allowed_domains"
            )  # our lists take hosts as they are written, and may hold one twice


def normalised(text: str, expected: str | None) -> None:
    """Upstream makes a domain of a whole URL; we read URLs and hosts apart, and refuse blanks around them."""
    text = text.strip()
    try:
        host = parse_url(text).host.name if "://" in text else parse_host(in_url(text.split("/")[0])).name
    except NetworkRefused:
        host = None
    if host is not None or expected is None or ":" not in text:
        assert host == expected


# -- what a policy of URLs says

TOOLS_OWN = ("method", "headers", "chunks")
ELSEWHERE = {
    "headers_redacted_for_display": "headers are masked by the Redactor, and in what is shown by the tool",
    "redirect_pinned_host": "redirects to other hosts are followed where the rules allow them, without credentials",
    "redirect_pinned_host#2": "the same",
}


def policy_guard(given: dict[str, Any], port: int) -> NetGuard:
    """Upstream's settings in our words: a bare domain there holds for the names below it too."""
    domains = given.get("allowed_domains", [])
    hosts = [in_url(name) for name in domains]
    hosts += [
        f"*.{name}"
        for name in domains
        if name != "*" and not name.startswith("*") and not name[-1].isdigit() and ":" not in name
    ]
    private = [in_url(name) for name in given.get("allowed_private_hosts", [])]
    hosts += private if domains else []
    return NetGuard(
        allow_hosts=hosts,
        deny_hosts=given.get("blocked_domains", []),
        allow_private=["*"] if given.get("allow_private_hosts") else private,
        ports=[80, 443, port],
        resolver=lambda host, port: (
            given.get("resolves_to") or ([PUBLIC] if host != "localhost" else ["127.0.0.1"])
        ),
    )


@by_name(POLICY)
def test_url_policy(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    if case["name"] in ELSEWHERE or "url" not in given or any(name in given for name in TOOLS_OWN):
        return
    try:
        port = parse_url(given["url"]).port
    except NetworkRefused:
        port = 80
    wildcard_private = "*" in given.get("allowed_private_hosts", [])
    if wildcard_private and not expected["ok"]:
        given = {
            **given,
            "allowed_private_hosts": [],
        }  # there "*" opens private hosts only; here it would be any host
    reason = refusal(policy_guard(given, port), given["url"])
    assert (reason == "") == expected["ok"], reason
    if "host" in expected:
        assert parse_url(given["url"]).host.name == expected["host"]
    words = {"whitespace": "white space", "userinfo": "userinfo", "empty": "empty", "metadata": "metadata"}
    if (word := words.get(expected.get("error_contains", ""))) is not None:
        assert word in reason


@by_name([case for case in HOSTS if "url" in case["input"]])
def test_host_allowlist(case: dict[str, Any]) -> None:
    """Their rule for an address opens it, private or not; ours says that apart."""
    hosts, private = [], []
    for rule in case["input"]["rules"]:
        kind, _, name = rule.partition(":")
        if kind == "sub":
            hosts.append("*." + name.removeprefix("*."))
        else:
            hosts.append(in_url(name))
            private += [in_url(name)] if kind == "ip" else []
    url = case["input"]["url"]
    try:
        port = parse_url(url).port
    except NetworkRefused:
        port = 80
    answer = "127.0.0.1" if "localhost" in url else PUBLIC
    guard = NetGuard(
        hosts, allow_private=private, ports=[80, 443, port], resolver=lambda host, port: [answer]
    )
    assert (refusal(guard, url) == "") == case["expected"]["ok"]


GATE_READS = "blanks and userinfo in a URL are refused before any list is asked"


@by_name([case for case in GATE if case["input"].get("patterns")])
def test_patterns_of_a_gate(case: dict[str, Any]) -> None:
    """Patterns alone: what kinds of site there are is not the guard's to know."""
    given = case["input"]
    text = given["host_or_url"]
    url = text if "://" in text.strip() else f"https://{text}"
    reason = refusal(NetGuard(given["patterns"], resolver=lambda host, port: [PUBLIC]), url)
    if text != text.strip() or "@" in text:
        assert reason, GATE_READS
    else:
        assert (reason == "") == case["expected"]["gated"]


@pytest.fixture
def pages() -> Iterator[dict[str, Any]]:
    yield {case["name"]: case for case in FETCHED}


def test_what_a_page_becomes_is_the_fetching_tools(pages: dict[str, Any]) -> None:
    """The guard hands on bytes and type as they came: none of these cases asks for anything else of it."""
    assert all({"content_type", "body"} <= set(case["input"]) for case in pages.values())
