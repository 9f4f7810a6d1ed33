"""Tells which addresses are not of the open internet, in every notation, also inside of IPv6 addresses.

The table is our own: `ipaddress.is_global` calls 192.0.0.192, 2002:7f00:1::, 64:ff9b::7f00:1 and 168.63.129.16 global,
and what it calls so differs between Python versions. Sources: the IANA special-purpose registries for IPv4 and IPv6
(RFC 6890), RFC 6052 (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo), RFC 5214 (ISATAP), the clouds' pages on metadata.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from toolcrib.dataclass import dataclass

__all__ = [
    "OPENABLE",
    "Address",
    "AddressKind",
    "embedded",
    "kind_of",
    "nat64_inner",
    "nat64_prefix",
    "parse_address",
    "why_refused",
]

Address = IPv4Address | IPv6Address


class AddressKind(StrEnum):
    """Why an address is not of the open internet, in words that may be shown."""

    METADATA = "a cloud metadata address"
    LOOPBACK = "a loopback address"
    PRIVATE = "a private address"
    SHARED = "a shared (carrier-grade NAT) address"
    BENCHMARK = "an address for benchmarks"
    LINK_LOCAL = "a link-local address"
    MULTICAST = "a multicast address"
    TUNNEL = "an address of a tunnel or translator"
    DOCUMENTATION = "an address for documentation"
    RESERVED = "a reserved address"


# Kinds that an operator may allow. The others lead nowhere, or to credentials.
OPENABLE = frozenset({AddressKind.LOOPBACK, AddressKind.PRIVATE, AddressKind.SHARED, AddressKind.BENCHMARK})

_OPEN = None
# Of several rows that hold an address, the narrowest counts.
_V4: tuple[tuple[str, AddressKind | None], ...] = (
    ("0.0.0.0/0", _OPEN),
    ("0.0.0.0/8", AddressKind.RESERVED),
    ("0.0.0.0/32", AddressKind.LOOPBACK),  # Linux connects it to itself
    ("10.0.0.0/8", AddressKind.PRIVATE),
    ("100.64.0.0/10", AddressKind.SHARED),
    ("100.100.100.200/32", AddressKind.METADATA),  # Alibaba
    ("127.0.0.0/8", AddressKind.LOOPBACK),
    ("168.63.129.16/32", AddressKind.METADATA),  # Azure: a public address, served by the host
    ("169.254.0.0/16", AddressKind.LINK_LOCAL),
    ("169.254.0.23/32", AddressKind.METADATA),  # Tencent
    ("169.254.42.42/32", AddressKind.METADATA),  # Scaleway
    (
        "169.254.169.0/24",
        AddressKind.METADATA,
    ),  # .254 everywhere; .123, .249 to .253 are AWS's clock and resolver
    ("169.254.170.0/24", AddressKind.METADATA),  # AWS: .2 tasks of ECS, .23 pods of EKS
    ("172.16.0.0/12", AddressKind.PRIVATE),
    ("192.0.0.0/24", AddressKind.RESERVED),
    ("192.0.0.9/32", _OPEN),
    ("192.0.0.10/32", _OPEN),
    ("192.0.0.192/32", AddressKind.METADATA),  # Oracle
    ("192.0.2.0/24", AddressKind.DOCUMENTATION),
    ("192.88.99.0/24", AddressKind.TUNNEL),
    ("192.168.0.0/16", AddressKind.PRIVATE),
    ("198.18.0.0/15", AddressKind.BENCHMARK),
    ("198.51.100.0/24", AddressKind.DOCUMENTATION),
    ("203.0.113.0/24", AddressKind.DOCUMENTATION),
    ("224.0.0.0/4", AddressKind.MULTICAST),
    ("240.0.0.0/4", AddressKind.RESERVED),
)
_V6: tuple[tuple[str, AddressKind | None], ...] = (
    ("::/0", AddressKind.RESERVED),  # only 2000::/3 is given out
    ("::/128", AddressKind.LOOPBACK),  # Linux connects it to itself
    ("::1/128", AddressKind.LOOPBACK),
    ("::/96", AddressKind.TUNNEL),
    ("::ffff:0:0/96", _OPEN),  # judged by the IPv4 address within
    ("64:ff9b::/96", _OPEN),  # the same
    ("64:ff9b:1::/48", AddressKind.TUNNEL),
    ("100::/64", AddressKind.RESERVED),
    ("2000::/3", _OPEN),
    ("2001::/23", AddressKind.RESERVED),
    ("2001::/32", AddressKind.TUNNEL),
    ("2001:1::1/128", _OPEN),
    ("2001:1::2/128", _OPEN),
    ("2001:1::3/128", _OPEN),
    ("2001:2::/48", AddressKind.BENCHMARK),
    ("2001:3::/32", _OPEN),
    ("2001:4:112::/48", _OPEN),
    ("2001:20::/28", _OPEN),
    ("2001:30::/28", _OPEN),
    ("2001:db8::/32", AddressKind.DOCUMENTATION),
    ("2002::/16", AddressKind.TUNNEL),
    ("3fff::/20", AddressKind.DOCUMENTATION),
    ("5f00::/16", AddressKind.RESERVED),
    ("fc00::/7", AddressKind.PRIVATE),
    ("fd00:42::42/128", AddressKind.METADATA),  # Scaleway
    ("fd00:a9fe:a9fe::1/128", AddressKind.METADATA),  # Linode
    ("fd00:c1::a9fe:a9fe/128", AddressKind.METADATA),  # Oracle
    ("fd00:ec2::/32", AddressKind.METADATA),  # AWS: ::254 instances, ::23 pods
    ("fd20:ce::254/128", AddressKind.METADATA),  # Google
    ("fe80::/10", AddressKind.LINK_LOCAL),
    ("fe80::a9fe:a9fe/128", AddressKind.METADATA),  # OpenStack
    ("fec0::/10", AddressKind.PRIVATE),
    ("ff00::/8", AddressKind.MULTICAST),
)
NAT64_LENGTHS = (32, 40, 48, 56, 64, 96)


@dataclass(slots=True, frozen=True)
class _Table:
    """Ranges that do not overlap, so that an address is found by one bisection."""

    starts: list[int]
    kinds: list[AddressKind | None]

    def kind(self, number: int) -> AddressKind | None:
        return self.kinds[bisect_right(self.starts, number) - 1]


def kind_of(address: Address, nat64: Iterable[IPv6Network] = ()) -> AddressKind | None:
    """Why an address is not of the open internet; None if it is.

    An IPv4 address inside of an IPv6 address counts too: mapped, compatible, 6to4, Teredo, ISATAP, NAT64 with the
    well-known prefix and with those in `nat64`. A metadata address inside of another address is metadata.
    """
    if isinstance(address, IPv4Address):
        return _v4().kind(int(address))
    if address.scope_id:
        return AddressKind.LINK_LOCAL
    inner = {_v4().kind(int(found)) for found in embedded(address, nat64)}
    own = _v6().kind(int(address))
    if AddressKind.METADATA in inner or own is AddressKind.METADATA:
        return AddressKind.METADATA
    return own or next((kind for kind in AddressKind if kind in inner), None)


def why_refused(address: str | Address, nat64: Iterable[IPv6Network] = ()) -> str | None:
    """Why a connection to an address is refused, in words; None if it is not. What is no address is refused, too.

    >>> why_refused("0x7f.1"), why_refused("::ffff:169.254.169.254"), why_refused("93.184.216.34")
    ('a loopback address', 'a cloud metadata address', None)
    """
    if isinstance(address, str):
        try:
            found = parse_address(address)
        except ValueError as problem:
            return str(problem)
        if found is None:
            return "not an address"
        address = found
    kind = kind_of(address, nat64)
    return kind.value if kind else None


def embedded(address: IPv6Address, nat64: Iterable[IPv6Network] = ()) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address leads to."""
    number = int(address)
    low = IPv4Address(number & 0xFFFF_FFFF)
    found: list[IPv4Address] = []
    top = number >> 32
    if (
        top in (0, 0xFFFF, 0xFFFF_0000, 0x64_FF9B << 64) and number > 1
    ):  # compatible, mapped, translated, NAT64
        found.append(low)
    if number >> 112 == 0x2002:
        found.append(IPv4Address(number >> 80 & 0xFFFF_FFFF))
    if top >> 64 == 0x2001_0000:
        found += (IPv4Address(number >> 64 & 0xFFFF_FFFF), IPv4Address(int(low) ^ 0xFFFF_FFFF))
    if top & 0xFDFF_FFFF == 0x5EFE:
        found.append(low)
    found += (inner for prefix in nat64 if (inner := nat64_inner(prefix, address)) is not None)
    return found


def nat64_prefix(text: str) -> IPv6Network:
    """The prefix of a NAT64 translator (RFC 6052). Raises ValueError for any other text."""
    prefix = ip_network(text)
    if not isinstance(prefix, IPv6Network) or "/" not in text or prefix.prefixlen not in NAT64_LENGTHS:
        raise ValueError(
            f"a NAT64 prefix is an IPv6 network of length 32, 40, 48, 56, 64 or 96; got {text!r}"
        )
    return prefix


def nat64_inner(prefix: IPv6Network, address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a translator takes from an IPv6 address; None outside its prefix."""
    if address not in prefix:
        return None
    data, size = address.packed, prefix.prefixlen // 8
    body = data[size:] if size == 12 else data[size:8] + data[9:]  # octet 8 is passed over
    return IPv4Address(body[:4])


def parse_address(host: str) -> Address | None:
    """A host as an address, in any notation: decimal, hex, octal, short, full-width, brackets, zones, dots at the end.

    None for a name. Raises ValueError for what looks like an address and is none, because other programs may read it as
    an address.

    >>> [str(parse_address(host)) for host in ("2130706433", "0177.1", "１２７.０.０.１.", "[::1]", "example.org")]
    ['127.0.0.1', '127.0.0.1', '127.0.0.1', '::1', 'None']
    """
    text = host if host.isascii() else unicodedata.normalize("NFKC", host).replace("。", ".")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
        if ":" not in text:
            raise ValueError("not a valid address")
    if ":" in text:
        try:
            return IPv6Address(text.replace("%25", "%", 1))
        except AddressValueError:
            raise ValueError("not a valid address") from None
    text = text.rstrip(".").lower()
    parts = text.split(".")
    if not (parts[-1].isdigit() or re.fullmatch("0x[0-9a-f]*", parts[-1])):
        return None
    return _v4_of(parts)


def _v4_of(parts: Sequence[str]) -> IPv4Address:
    """An address as `inet_aton` reads it: one to four numbers, of which the last fills the remaining bytes."""
    if len(parts) > 4:
        raise ValueError("not a valid address")
    numbers = [_number(part) for part in parts]
    last, limit = numbers[-1], 256 ** (5 - len(parts))
    if any(number > 255 for number in numbers[:-1]) or last >= limit:
        raise ValueError("not a valid address")
    total = last
    for place, number in enumerate(numbers[:-1]):
        total += number << (24 - 8 * place)
    return IPv4Address(total)


def _number(part: str) -> int:
    for pattern, base in ((r"0x[0-9a-f]{0,64}", 16), (r"0[0-7]{0,64}", 8), (r"[1-9][0-9]{0,64}", 10)):
        if re.fullmatch(pattern, part):
            return int(part.removeprefix("0x") or "0", base)
    raise ValueError("not a valid address")


def _table(rows: Sequence[tuple[str, AddressKind | None]]) -> _Table:
    networks: list[tuple[IPv4Network | IPv6Network, AddressKind | None]] = [
        (ip_network(row), kind) for row, kind in rows
    ]
    edges = {int(net.network_address) for net, _ in networks}
    edges |= {int(net.broadcast_address) + 1 for net, _ in networks}
    starts = sorted(edges)[:-1]

    def narrowest(start: int) -> AddressKind | None:
        holding = [
            row for row in networks if int(row[0].network_address) <= start <= int(row[0].broadcast_address)
        ]
        return max(holding, key=lambda row: row[0].prefixlen)[1]

    return _Table(starts, [narrowest(start) for start in starts])


@cache
def _v4() -> _Table:
    return _table(_V4)


@cache
def _v6() -> _Table:
    return _table(_V6)
