"""Every way to write an address, and every range that is not the open internet."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cases import each
from toolcrib.net import AddressKind, kind_of, parse_address, why_refused
from toolcrib.net.addresses import nat64_inner, nat64_prefix

OPEN = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0",
    "192.0.3.0", "192.88.98.255", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "203.0.114.0",
    "223.255.255.255", "2606:4700:4700::1111", "2001:4860:4860::8888", "2620:4f:8000::1", "2001:200::1", "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8", "2001:3::1", "2001:4:112::1", "2003::1", "2400::5efe:8.8.8.8",
]  # fmt: skip
CLOSED = [
    (AddressKind.LOOPBACK, ["127.0.0.1", "127.255.255.255", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "2a00::5efe:7f00:1", "2a00::200:5efe:7f00:1"]),
    (AddressKind.PRIVATE, ["10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fd12::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::c0a8:1"]),
    (AddressKind.SHARED, ["100.64.0.0", "100.127.255.255", "100.100.100.199", "100.100.100.201"]),
    (AddressKind.LINK_LOCAL, ["169.254.1.1", "fe80::1", "fe80::1%eth0", "2a00::1%1", "::ffff:169.254.9.9"]),
    (AddressKind.METADATA, ["169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:a9fe:a9fe::1", "fd00:42::42", "fe80::a9fe:a9fe",
                     "::ffff:169.254.169.254", "::a9fe:a9fe", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "2002:a83f:8110::1", "2001:0:a9fe:a9fe::", "2001:0:1::5601:5601", "2a00::5efe:a9fe:a9fe", "::ffff:0:a9fe:a9fe"]),
    (AddressKind.MULTICAST, ["224.0.0.1", "239.255.255.255", "ff02::1"]),
    (AddressKind.RESERVED, ["0.0.0.1", "192.0.0.1", "240.0.0.1", "255.255.255.255", "::ffff:0:127.0.0.1", "100::1", "2001:5::1", "5f00::1", "4000::1", "8000::", "fb00::1"]),
    (AddressKind.TUNNEL, ["192.88.99.1", "2001::1", "2002:808:808::", "64:ff9b:1::808:808", "::8.8.8.8", "::2"]),
    (AddressKind.DOCUMENTATION, ["192.0.2.1", "198.51.100.9", "203.0.113.255", "2001:db8::1", "3fff::1"]),
    (AddressKind.BENCHMARK, ["198.18.0.0", "198.19.255.255", "2001:2::1"]),
]  # fmt: skip


@each("address", OPEN)
def test_the_open_internet_is_open(address: str) -> None:
    assert why_refused(address) is None


@each(("kind", "address"), [(kind, address) for kind, all_ in CLOSED for address in all_])
def test_everything_else_says_what_it_is(kind: AddressKind, address: str) -> None:
    assert why_refused(address) == kind.value


SPELLED = [
    ("2130706433", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("017700000001", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"),
    ("0x7f.0.0.0x1", "127.0.0.1"), ("0177.0.0.01", "127.0.0.1"), ("0", "0.0.0.0"), ("0x", "0.0.0.0"), ("127.0.0.1.", "127.0.0.1"), ("127.0.0.1..", "127.0.0.1"),
    ("2852039166", "169.254.169.254"), ("0XA9FEA9FE", "169.254.169.254"), ("169.16689662", "169.254.169.254"), ("１６９.２５４.１６９.２５４", "169.254.169.254"),
    ("①②⑦.0.0.①", "127.0.0.1"), ("127。0。0。1", "127.0.0.1"), ("127．0．0．1", "127.0.0.1"), ("[::1]", "::1"), ("[::FFFF:7F00:1]", "::ffff:7f00:1"),
    ("0000:0000::0001", "::1"), ("fe80::1%25eth0", "fe80::1%eth0"), ("[fe80::1%eth0]", "fe80::1%eth0"), ("4294967295", "255.255.255.255"),
]  # fmt: skip


@pytest.mark.parametrize(("host", "address"), SPELLED)
def test_every_notation_is_one_address(host: str, address: str) -> None:
    assert parse_address(host) == ip_address(address)


@pytest.mark.parametrize(
    "name",
    ["example.org", "a", "0x7f.example", "1.2.3.4.example.org", "dead.beef", "1e100.net", "", "..", "x.0a"],
)
def test_names_are_no_addresses(name: str) -> None:
    assert parse_address(name) is None


@pytest.mark.parametrize(
    "host",
    [
        "256.1.1.1",
        "1.2.3.4.5",
        "4294967296",
        "08",
        "1.2.3.0x100",
        "0x1g.1",
        "1..1",
        "a.1",
        "1.2.3.08",
        "example.0x1",
        "[127.0.0.1]",
        "[]",
        "[::1",
        ":::",
        "1:2",
        "::1%",
        "0x" + "f" * 70,
        "9" * 80,
    ],
)
def test_what_looks_like_an_address_and_is_none_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="not a valid address"):
        parse_address(host)
    assert why_refused(host) == "not a valid address"


NUMBER = st.integers(0, 2**33).flatmap(lambda n: st.sampled_from([str(n), hex(n), f"0{n:o}", f"0X{n:X}"]))


@given(st.lists(NUMBER, min_size=1, max_size=5).map(".".join))
@example("0x.0x.0x.0x")
def test_addresses_are_read_as_the_system_reads_them(host: str) -> None:
    """Whatever the C library takes for an address must be that address to us."""
    try:
        theirs = IPv4Address(socket.inet_aton(host))
    except OSError:
        return
    assert parse_address(host) == theirs


@given(st.integers(0, 2**32 - 1))
def test_a_closed_address_is_closed_in_every_wrapping(number: int) -> None:
    inner = IPv4Address(number)
    kind = kind_of(inner)
    for text in (f"::ffff:{inner}", f"64:ff9b::{inner}"):
        assert kind_of(IPv6Address(text)) == kind
    isatap = IPv6Address((0x2A00 << 112) | (0x5EFE << 32) | number)
    assert kind_of(isatap) == kind
    for closed in (IPv6Address(number), IPv6Address((0x2002 << 112) | (number << 80))):
        assert kind_of(closed) is not None
    assert (kind_of(IPv6Address((0x2002 << 112) | (number << 80))) is AddressKind.METADATA) == (
        kind is AddressKind.METADATA
    )


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_only_what_is_given_out_is_open(address: IPv6Address) -> None:
    if kind_of(address) is None:
        assert int(address) >> 125 == 1 or int(address) >> 32 in (0xFFFF, 0x64_FF9B << 64)


# RFC 6052, section 2.4
VECTORS = [
    ("2001:db8::/32", "2001:db8:c000:221::"), ("2001:db8:100::/40", "2001:db8:1c0:2:21::"), ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
    ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"), ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"), ("2001:db8:122:344::/96", "2001:db8:122:344::c000:221"),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "address"), VECTORS)
def test_a_translator_of_ones_own(prefix: str, address: str) -> None:
    assert nat64_inner(nat64_prefix(prefix), IPv6Address(address)) == IPv4Address("192.0.2.33")
    assert nat64_inner(nat64_prefix(prefix), IPv6Address("2a00::1")) is None


def test_an_address_behind_ones_own_translator_is_judged() -> None:
    prefix = nat64_prefix("2a00:64::/96")
    assert why_refused("2a00:64::10.0.0.1") is None
    assert why_refused("2a00:64::10.0.0.1", [prefix]) == "a private address"
    assert why_refused("2a00:64::169.254.169.254", [prefix]) == "a cloud metadata address"
    assert why_refused("2a00:64::8.8.8.8", [prefix]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "::/0",
        "2001:db8::/72",
        "2001:db8::/97",
        "2001:db8::",
        "10.0.0.0/8",
        "x/96",
        "2001:db8::1/96",
    ],
)
def test_a_prefix_that_no_translator_has_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        nat64_prefix(text)
