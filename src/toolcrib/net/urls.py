"""Reads URLs strictly: a URL that two parsers could read differently is refused."""

from __future__ import annotations

import re
import unicodedata

from toolcrib.dataclass import dataclass
from toolcrib.net.addresses import Address, parse_address

__all__ = ["NetworkRefused", "ParsedHost", "Target", "parse_host", "parse_url", "printable_host"]

MAX_URL = 8192  # characters
PORTS = {"http": 80, "https": 443}

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[/?#].*)?", re.DOTALL
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]@]*\]|[^\[\]:@]*)(?::(?P<port>[0-9]{0,5}))?")
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


class NetworkRefused(OSError):
    """A connection that the guard does not allow. `reason` is for a model and names no address of our network."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


@dataclass(slots=True, frozen=True)
class ParsedHost:
    """A normalised host: a name in ASCII and lower case without a dot at its end, or an address."""

    name: str
    address: Address | None = None


@dataclass(slots=True, frozen=True)
class Target:
    """Scheme, host and port of a URL."""

    scheme: str
    host: ParsedHost
    port: int

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host.name, self.port


def parse_url(url: str) -> Target:
    """The target of a plain http or https URL. Raises NetworkRefused with the reason for anything else.

    >>> parse_url("HTTPS://Example.ORG.:8443/a?b")
    Target(scheme='https', host=ParsedHost(name='example.org', address=None), port=8443)
    """
    if not url.strip():
        raise NetworkRefused("the URL is empty")
    if len(url) > MAX_URL:
        raise NetworkRefused(f"the URL is longer than {MAX_URL} characters")
    for char in url:
        if char.isspace():
            raise NetworkRefused("the URL holds white space; write %20 for a blank")
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            raise NetworkRefused("the URL holds control characters")
        if char == "\\":
            raise NetworkRefused("the URL holds a backslash, which programs read in different ways")
    found = _URL.fullmatch(url)
    if found is None:
        raise NetworkRefused("not a URL with a scheme and a host, such as https://example.org/page")
    scheme = found["scheme"].lower()
    if scheme not in PORTS:
        raise NetworkRefused(f"only http and https are allowed, not {scheme[:20]}")
    if "@" in found["authority"]:
        raise NetworkRefused("the URL holds userinfo (a name or password before the host)")
    parts = _AUTHORITY.fullmatch(found["authority"])
    if parts is None:
        raise NetworkRefused("the URL's host and port cannot be read")
    port = int(parts["port"]) if parts["port"] else PORTS[scheme]
    if not 0 < port < 65536:
        raise NetworkRefused(f"there is no port {port}")
    return Target(scheme, parse_host(parts["host"]), port)


def parse_host(host: str) -> ParsedHost:
    """A name or an address, normalised. Raises NetworkRefused for what is neither."""
    if not host:
        raise NetworkRefused("the URL has no host")
    try:
        address = parse_address(host)
    except ValueError:
        raise NetworkRefused(f"{printable_host(host)} is not a valid address") from None
    if address is not None:
        return ParsedHost(str(address), address)
    name = _ascii(host)
    if not host.isascii() and name != host:
        return parse_host(name)  # the ASCII form may be an address
    if len(name) > 253 or not _NAME.fullmatch(name):
        raise NetworkRefused(f"{printable_host(host)} is not a valid host name")
    return ParsedHost(name)


def printable_host(host: str) -> str:
    """A host for a message: at most 100 characters, each of them printable."""
    return "".join(char if char.isprintable() else "?" for char in host[:100])


def _ascii(host: str) -> str:
    lowered = host.lower()
    if lowered.isascii():
        return lowered[:-1] if lowered.endswith(".") else lowered
    try:
        try:
            import idna
        except ImportError:  # it comes with httpx; the older standard is good enough to compare names by
            return lowered.encode("idna").decode().rstrip(".")
        return idna.encode(lowered, uts46=True).decode().rstrip(".")
    except (UnicodeError, ValueError):
        raise NetworkRefused(f"{printable_host(host)} is not a valid host name") from None
