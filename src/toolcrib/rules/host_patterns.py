"""Patterns of hosts: `example.org`, `*.example.org`, an address, each also with `:port`."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from toolcrib.access import Access
from toolcrib.rules.match import NO, PARTLY, YES, MatchLevel
from toolcrib.rules.name_patterns import WILDCARD, PatternError

__all__ = ["check_host", "host_matches", "match_hosts", "why_hosts_too_broad"]

NAMES_A_DOMAIN = re.compile(r"[^*?.:\d]\.[^*?.:]")  # two labels without wildcards


def check_host(pattern: str) -> None:
    """Raises PatternError for a pattern of hosts that would never match."""
    if not pattern.isprintable() or not _is_host(pattern.removeprefix("*.")):
        raise PatternError(
            f"host {pattern!r} is none: write example.org, *.example.org for all names below it, an address, or "
            "either with :port"
        )


def _is_host(text: str) -> bool:
    from toolcrib.net.urls import NetworkRefused, parse_host

    host, port = _host_and_port(text)
    if text == "*":
        return True
    if (port or text.endswith(":")) and not (port.isdecimal() and port.isascii() and 0 < int(port) < 65_536):
        return False
    try:
        parse_host(f"[{host}]" if ":" in host else host)
    except NetworkRefused:
        return False
    return text == text.strip() and ("[" in text) == ("]" in text)


def match_hosts(patterns: Sequence[str], access: Access) -> MatchLevel:
    """How far patterns, taken together, match the host of an access. That host may be a pattern, too."""
    if access.subtree:
        target = access.target
        both = ((one, other) for pattern in patterns for one, other in ((pattern, target), (target, pattern)))
        return PARTLY if any(host_matches(one, other, any_port=True) for one, other in both) else NO
    if any(host_matches(pattern, access.target) for pattern in patterns):
        return YES
    near = any(host_matches(pattern, access.target, any_port=True) for pattern in patterns)
    return PARTLY if near else NO


def host_matches(pattern: str, target: str, *, any_port: bool = False) -> bool:
    """Whether a pattern matches a host. `*.example.org` matches any name below `example.org`, and not that name.

    Names are compared as they are looked up, addresses as numbers. A pattern with a port matches a target without one
    only if `any_port`.

    >>> host_matches("*.example.org", "api.example.org:443"), host_matches("*.example.org", "example.org")
    (True, False)
    """
    wanted, wanted_port = _host_and_port(pattern)
    host, port = _host_and_port(target)
    if wanted_port and wanted_port != port and (port or not any_port):
        return False
    if wanted.startswith("*."):
        return host.endswith("." + _normalised(wanted[2:]))
    return wanted in ("*", host)


@functools.lru_cache(4096)
def _host_and_port(text: str) -> tuple[str, str]:
    """A host as `_normalised` gives it, and its port, "" if it has none. An IPv6 address may stand in brackets."""
    text = text.strip()
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    return host if host.startswith("*") else _normalised(host), port


def _normalised(host: str) -> str:
    """A host in its one spelling; in lower case where it is neither a name nor an address."""
    from toolcrib.net.urls import NetworkRefused, parse_host

    try:
        parsed = parse_host(f"[{host}]" if ":" in host else host)
    except NetworkRefused:
        return host.lower().rstrip(".")
    # A connection to `::ffff:1.2.3.4` is one to 1.2.3.4.
    written_as_v6 = getattr(parsed.address, "ipv4_mapped", None)
    return parsed.name if written_as_v6 is None else str(written_as_v6)


def why_hosts_too_broad(patterns: Sequence[str]) -> str:
    """Why an allow rule must not have these patterns, and what to write instead; "" if it may."""
    for pattern in patterns:
        if WILDCARD.search(pattern) and not NAMES_A_DOMAIN.search(pattern):
            return f"host {pattern!r} is too broad: name a host, or a domain such as *.example.org"
    return ""
