"""Decides which hosts, ports and addresses may be connected to, for everything that uses the network.

The guard is asked at the moment of connecting and returns the addresses to connect to. So nothing can change between
the check and the connection: a name that resolves to another address a moment later, a redirect, another reading of a
URL.
"""

from __future__ import annotations

import inspect
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, cast

from toolcrib.dataclass import dataclass
from toolcrib.errors import as_tuple
from toolcrib.net.addresses import OPENABLE, Address, kind_of, nat64_prefix, parse_address
from toolcrib.net.urls import NetworkRefused, ParsedHost, Target, parse_host, parse_url, printable_host

__all__ = ["HostResolver", "NetGuard", "RequestLimits", "system_resolver"]

HostResolver = Callable[[str, int], Sequence[str] | Awaitable[Sequence[str]]]
"""Gives the numeric addresses of a host, or raises OSError if it has none. May be async."""

# Names of private networks, whatever they resolve to (RFC 6761, 6762, 8375; ICANN on .internal).
LOCAL_NAMES = ("localhost", "local", "localdomain", "internal", "intranet", "home.arpa", "lan")
USUAL_PORTS = (80, 443)
ANY = "*"


def system_resolver(host: str, port: int) -> list[str]:
    """The addresses that the resolver of the system gives."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


@dataclass(slots=True, frozen=True)
class RequestLimits:
    """Limits of one request: redirects, seconds from its start to the last byte, decoded bytes of the answer."""

    redirects: int = 5
    seconds: float = 60.0
    bytes: int = 10_000_000


class NetGuard:
    """Decides where connections may go. It is made once, and handed to every tool that uses the network.

    With `allow_hosts` None, every host of the open internet is allowed. "example.org" allows that host,
    "*.example.org" every name below it (but not that name), "example.org:8443" a port that is not in `ports`.
    `deny_hosts` denies hosts and all names below them, also if they are allowed. `allow_private` opens networks
    ("10.1.0.0/16"), hosts ("db.internal", wherever they resolve to) or everything ("*"); metadata, link-local and
    multicast addresses stay closed. `nat64` are prefixes of one's own translator. Raises TypeError or ValueError for
    entries that cannot be read.

    >>> NetGuard(allow_hosts=["example.org"]).check_url("https://example.org/a").port
    443
    >>> NetGuard().check_url("http://2130706433/")
    Traceback (most recent call last):
    toolcrib.net.urls.NetworkRefused: 127.0.0.1 is refused: it is a loopback address
    """

    def __init__(
        self,
        allow_hosts: Sequence[str] | None = None,
        deny_hosts: Sequence[str] = (),
        *,
        allow_private: Sequence[str] = (),
        ports: Sequence[int] = USUAL_PORTS,
        nat64: Sequence[str] = (),
        limits: RequestLimits = RequestLimits(),  # noqa: B008 - it never changes
        resolver: HostResolver = system_resolver,
    ) -> None:
        allowed = None if allow_hosts is None else as_tuple("allow_hosts", allow_hosts)
        self.limits = limits
        self._allow = None if allowed is None else [_entry(text) for text in allowed]
        self._deny = [_entry(text)[0] for text in as_tuple("deny_hosts", deny_hosts)]
        self._ports = frozenset(_port(port) for port in _ports(ports))
        self._nat64 = [nat64_prefix(text) for text in as_tuple("nat64", nat64)]
        self._networks: list[IPv4Network | IPv6Network] = []
        self._private_hosts: list[str] = []
        for text in as_tuple("allow_private", allow_private):
            if (network := _network(text)) is not None:
                self._networks.append(network)
            else:
                self._private_hosts.append(_entry(text)[0])
        self._resolver = resolver

    @property
    def lists_hosts(self) -> bool:
        """Whether the operator listed the hosts that may be reached."""
        return self._allow is not None and all(name != ANY for name, _ in self._allow)

    def check_url(self, url: str) -> Target:
        """The target of a URL that is allowed, as far as this is known before resolving. Raises NetworkRefused."""
        target = parse_url(url)
        self.check_host(target.host, target.port)
        return target

    def check_host(self, host: str | ParsedHost, port: int) -> ParsedHost:
        """The same for a host and port."""
        found = parse_host(host) if isinstance(host, str) else host
        name = found.name
        if any(_is_below(name, denied) for denied in self._deny):
            raise NetworkRefused(f"{name} is on the list of hosts that are not allowed")
        if self._allow is not None and not any(self._listed(name, port, entry) for entry in self._allow):
            named = any(_matches(name, pattern) for pattern, _ in self._allow)
            what = f"port {port} of {name}" if named else name
            raise NetworkRefused(f"{what} is not on the list of allowed hosts")
        if self._allow is None and port not in self._ports:
            raise NetworkRefused(
                f"port {port} is not allowed; allowed: {', '.join(map(str, sorted(self._ports)))}"
            )
        if found.address is not None:
            self._check_address(found, found.address)
        elif not self._private(name) and any(_is_below(name, local) for local in LOCAL_NAMES):
            raise NetworkRefused(f"{name} is refused: it is a local name")
        return found

    def check_addresses(self, host: ParsedHost, answers: Sequence[str]) -> list[str]:
        """The addresses that a host resolved to. Raises NetworkRefused if one of them is not allowed."""
        if not answers:
            raise NetworkRefused(f"{host.name} has no address")
        checked: list[str] = []
        for answer in answers:
            try:
                address = parse_address(answer)
            except ValueError:
                address = None
            if address is None:
                raise NetworkRefused(f"{host.name} resolves to something that is no address")
            self._check_address(host, address)
            checked.append(str(address))
        return checked

    async def resolve(self, host: str, port: int) -> list[str]:
        """The checked numeric addresses; connect to these and to no other. Raises NetworkRefused."""
        found = self.check_host(host, port)
        if found.address is not None:
            return [found.name]
        try:
            if inspect.iscoroutinefunction(self._resolver):
                answers = await self._resolver(found.name, port)
            else:
                import asyncio

                answers = await asyncio.to_thread(cast("Any", self._resolver), found.name, port)
        except NetworkRefused:
            raise
        except OSError:
            raise NetworkRefused(f"{found.name} cannot be resolved") from None
        return self.check_addresses(found, cast("Sequence[str]", answers))

    def resolve_sync(self, host: str, port: int) -> list[str]:
        """The same without an event loop; the resolver must not be async."""
        found = self.check_host(host, port)
        if found.address is not None:
            return [found.name]
        try:
            answers = self._resolver(found.name, port)
        except NetworkRefused:
            raise
        except OSError:
            raise NetworkRefused(f"{found.name} cannot be resolved") from None
        if not isinstance(answers, Sequence):
            raise TypeError("this guard's resolver is async; use it in async clients")
        return self.check_addresses(found, answers)

    def _check_address(self, host: ParsedHost, address: Address) -> None:
        kind = kind_of(address, self._nat64)
        if kind is None or (kind in OPENABLE and self._opened(host.name, address)):
            return
        if host.address is not None:
            raise NetworkRefused(f"{printable_host(host.name)} is refused: it is {kind.value}")
        raise NetworkRefused(f"{host.name} is refused: it resolves to {kind.value}")

    def _opened(self, name: str, address: Address) -> bool:
        return self._private(name) or any(address in network for network in self._networks)

    def _private(self, name: str) -> bool:
        return any(_matches(name, pattern) for pattern in self._private_hosts)

    def _listed(self, name: str, port: int, entry: tuple[str, int | None]) -> bool:
        pattern, own = entry
        return _matches(name, pattern) and (port == own if own is not None else port in self._ports)


def _ports(given: Any) -> tuple[Any, ...]:
    if isinstance(given, str | bytes | int):
        number = given if isinstance(given, int) or not given.isdigit() else int(given)
        raise TypeError(f"ports is a list of numbers, got {given!r}: write [{number!r}]")
    return tuple(given)


def _port(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"ports is a list of numbers such as [80, 443], got {given!r} in it")
    if not 0 < given < 65536:
        raise ValueError(f"ports: {given} is no port; they go from 1 to 65535")
    return given


def _entry(text: str) -> tuple[str, int | None]:
    """A normalised name or pattern, and its port if it has one. Raises ValueError."""
    below = text.startswith("*.")
    rest = text.removeprefix("*.")
    if text == ANY:
        return ANY, None
    host, colon, port = rest.rpartition(":")
    own: int | None = None
    if colon and port.isdigit() and ("[" in host or ":" not in host):
        rest, own = host, int(port)
    try:
        name = parse_host(rest)
    except NetworkRefused as problem:
        raise ValueError(f"{text!r} is no host, *.host or host:port: {problem.reason}") from None
    if below and name.address is not None:
        raise ValueError(f"{text!r}: there are no names below an address")
    return ("*." if below else "") + name.name, own


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text)
    except ValueError:
        if "/" in text:
            raise ValueError(f"allow_private: {text!r} is no network, such as 10.1.0.0/16") from None
        return None


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:]) and len(name) > len(pattern) - 1
    return pattern in (ANY, name)


def _is_below(name: str, parent: str) -> bool:
    """Whether a name is a parent domain or below it; or whether it matches a pattern."""
    return _matches(name, parent) or name.endswith(f".{parent}")
