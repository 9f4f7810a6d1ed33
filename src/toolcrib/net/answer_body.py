"""Decodes the body of an answer and counts its bytes, so that a small answer cannot grow without a limit."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from toolcrib.net.redirects import RedirectChain
from toolcrib.net.urls import NetworkRefused

__all__ = ["AnswerBody"]

CHUNK = 65_536  # bytes that are decoded at a time


class AnswerBody:
    """Decodes one answer piece by piece. Raises NetworkRefused when the decoded bytes exceed the limit."""

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
        """Decode a piece of the answer; yields decoded pieces."""
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
