"""Checks a request with all its redirects: their number, from where to where they lead, and the time for all together.

A client makes a new request for each redirect and copies the extensions of the old one; the chain is kept there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

from toolcrib.dataclass import dataclass, field
from toolcrib.net.guard import NetGuard, RequestLimits
from toolcrib.net.urls import NetworkRefused, Target

__all__ = ["UNTIL", "RedirectChain", "redirect_chain"]

EXTENSION = "toolcrib.redirects"

# Headers that are sent on to another host; a header that is not in the list may be a credential.
SENT_ON = frozenset(
    {"accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-length"}
    | {"content-type", "host", "range", "transfer-encoding", "user-agent"}
)
DECODED_ENCODINGS = "gzip, deflate"  # `AnswerBody` decodes them, and can stop

# The deadline of the current request. Connections are shared by requests, so they look it up here.
UNTIL: ContextVar[float | None] = ContextVar("toolcrib.net.until", default=None)


@dataclass(slots=True)
class RedirectChain:
    """The state of one request over its redirects."""

    limits: RequestLimits
    clock: Callable[[], float] = time.monotonic
    until: float = 0.0
    hops: list[Target] = field(default_factory=list[Target])

    def __post_init__(self) -> None:
        self.until = self.clock() + self.limits.seconds

    def follow(self, target: Target, headers: MutableMapping[str, str], *, body: bool) -> None:
        """Note the next redirect; removes credentials from `headers` if the host changes. Raises NetworkRefused."""
        before = self.hops[-1] if self.hops else None
        self.hops.append(target)
        if len(self.hops) > self.limits.redirects + 1:
            raise NetworkRefused(f"{target.host.name}: more than {self.limits.redirects} redirects")
        if before is not None and before.origin != target.origin:
            if before.scheme == "https" and target.scheme == "http":
                raise NetworkRefused(f"{before.host.name} redirects from https to http")
            if body:
                raise NetworkRefused(
                    f"{before.host.name} redirects what was sent to it to {target.host.name}"
                )
            for name in [name for name in headers if name.lower() not in SENT_ON]:
                del headers[name]
        headers["accept-encoding"] = DECODED_ENCODINGS
        self.check()

    def check(self) -> None:
        """Raises NetworkRefused when the time is up."""
        if self.clock() >= self.until:
            host = self.hops[-1].host.name if self.hops else "the host"
            raise NetworkRefused(f"{host} took longer than {self.limits.seconds:g} s")

    def timeouts(self, given: Mapping[str, float | None]) -> dict[str, float | None]:
        """The given timeouts, none of them longer than the time that is left."""
        left = max(0.001, self.until - self.clock())
        return {name: min(left, given.get(name) or left) for name in ("connect", "read", "write", "pool")}


def redirect_chain(extensions: MutableMapping[str, Any], guard: NetGuard) -> RedirectChain:
    """The chain that a request is part of; a new chain for a first request."""
    found = extensions.get(EXTENSION)
    if not isinstance(found, RedirectChain):
        found = extensions[EXTENSION] = RedirectChain(guard.limits)
    return found
