"""One request with all its redirects: how many, where from, until when; and what its answer may hold.

A client makes a new request of each redirect but hands on the old one's extensions; the chain travels there.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from toolcrib.net.guard import NetGuard, RequestLimits
from toolcrib.net.urls import NetworkRefused, Target

EXTENSION = "toolcrib.redirects"
CHUNK = 65_536

# What may go on to another host; a header that is not known may be a credential.
HARMLESS = frozenset(
    {"accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-length"}
    | {"content-type", "host", "range", "transfer-encoding", "user-agent"}
)
GUARDED_ENCODINGS = "gzip, deflate"  # those that we decode ourselves, and can stop decoding

# Until when the reads and writes of the current request may take; connections are shared, so they ask here.
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

    def step(self, target: Target, headers: MutableMapping[str, str], *, body: bool) -> None:
        """Take the next hop; credentials are dropped from `headers` when the host changes. Raises NetworkRefused."""
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
            for name in [name for name in headers if name.lower() not in HARMLESS]:
                del headers[name]
        headers["accept-encoding"] = GUARDED_ENCODINGS
        self.check()

    def check(self) -> None:
        """Raises NetworkRefused when the time is up."""
        if self.clock() >= self.until:
            host = self.hops[-1].host.name if self.hops else "the host"
            raise NetworkRefused(f"{host} took longer than {self.limits.seconds:g} s")

    def timeouts(self, given: Mapping[str, float | None]) -> dict[str, float | None]:
        """No single wait longer than what is left of all."""
        left = max(0.001, self.until - self.clock())
        return {name: min(left, given.get(name) or left) for name in ("connect", "read", "write", "pool")}


def redirect_chain(extensions: MutableMapping[str, Any], guard: NetGuard) -> RedirectChain:
    """The chain that a request is part of; a new one if it is the first."""
    found = extensions.get(EXTENSION)
    if not isinstance(found, RedirectChain):
        found = extensions[EXTENSION] = RedirectChain(guard.limits)
    return found


class Body:
    """Decodes an answer piece by piece and counts what comes out. Raises NetworkRefused past the limit."""

    def __init__(self, chain: RedirectChain, encoding: str) -> None:
        self._chain = chain
        self._left = chain.limits.bytes
        self._zlib: Any = None
        self._raw_deflate_tried = False
        match encoding.strip().lower():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip":
                self._zlib = zlib.decompressobj(31)
            case "deflate":
                self._zlib = zlib.decompressobj(15)
            case other:
                raise NetworkRefused(f"the answer is encoded as {other[:40]}, which was not asked for")

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded pieces of one raw piece."""
        self._chain.check()
        if self._zlib is None:
            yield self._counted(data)
            return
        while data:
            out = self._decompressed(data)
            yield self._counted(out)
            data = self._zlib.unconsumed_tail
            if self._zlib.eof and self._zlib.unused_data:
                data = self._zlib.unused_data  # gzip may come in several members
                self._zlib = zlib.decompressobj(31)

    def _decompressed(self, data: bytes) -> bytes:
        try:
            out: bytes = self._zlib.decompress(data, CHUNK)
            return out
        except zlib.error:
            if self._raw_deflate_tried:
                raise NetworkRefused("the answer's encoding is broken") from None
            self._raw_deflate_tried = True  # some servers send deflate without its header
            self._zlib = zlib.decompressobj(-15)
            return self._decompressed(data)

    def _counted(self, out: bytes) -> bytes:
        self._left -= len(out)
        if self._left < 0:
            raise NetworkRefused(f"the answer is longer than {self._chain.limits.bytes} bytes")
        return out
