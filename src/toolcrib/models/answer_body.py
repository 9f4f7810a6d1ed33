"""Reads the bodies of answers: no more than their limits, and no further than the point where an answer is complete.

A server may leave the connection open after its answer, send more, or break off. What counts is what the answer's
own format says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Protocol, TypeVar

from toolcrib.codecs.codec import Decoder, ModelError, has_ended, is_complete
from toolcrib.codecs.sse import DONE
from toolcrib.codecs.wire_json import wire_value

T = TypeVar("T")
MEBIBYTE = 1024 * 1024
LONGEST_BODY = 32 * MEBIBYTE  # of an answer in one piece, which is parsed at once
LONGEST_STREAM = 256 * MEBIBYTE  # of a streamed answer, whose events are parsed one by one
HEAVY = 256 * 1024  # bytes that take so long to parse that it is done in a thread
LONGEST_ERROR = 65_536  # bytes of an error's body that are read: what fails may be a page, or never end
ERROR_SECONDS = 5.0  # for reading an error's body
# After its stop reason an answer may bring its usage, which comes at once where it comes at all.
LAST_WORDS = 3.0
REST_SECONDS = (
    0.25  # for the end of a body whose answer is complete, so that its connection can serve the next one
)


class RawResponse(Protocol):
    """The part of an SDK's streamed response that is used."""

    headers: Mapping[str, str]

    def iter_bytes(self) -> AsyncGenerator[bytes]: ...


class EventReader(Protocol):
    """Takes the bytes of a stream and gives its parsed events."""

    def feed(self, data: bytes) -> list[dict[str, Any]]: ...
    def finish(self) -> list[dict[str, Any]]: ...


class ErrorResponse(Exception):
    """A response whose status says an error or a redirect: it has the attributes of an SDK's exceptions.

    `body` is the parsed JSON of its body, or the beginning of its text.
    """

    def __init__(self, response: Any, body: Any) -> None:
        super().__init__(f"status {response.status_code}")
        self.response = response
        self.status_code: int = response.status_code
        self.body = body


async def refuse_errors(response: Any) -> None:
    """Raises ErrorResponse for a response of HTTPX with any status but success, whose body is read up to a limit.

    Redirects are refused too: a key is for the host that it was given for. As a hook of the client it comes before
    the SDKs, which would read an error's body to its end.
    """
    if response.status_code < 300:
        return
    data = bytearray()
    with suppress(Exception):  # an error whose body breaks off, or does not end, is still that error
        async with asyncio.timeout(ERROR_SECONDS), aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > LONGEST_ERROR:
                    break
    await response.aclose()
    text = bytes(data[:LONGEST_ERROR])
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = text[:500].decode("utf-8", "replace").strip()
    raise ErrorResponse(response, body or response.reason_phrase or "no words")


async def parsed(read: Callable[[bytes], T], data: bytes, size: int) -> T:
    """The value of `read(data)`: computed in a thread if `size` bytes take long to parse, so that the loop goes on."""
    return await asyncio.to_thread(read, data) if size > HEAVY else read(data)


def _last_words(ends: float | None) -> float:
    """The seconds to wait for what may follow an answer that seems complete; the wait ends before the deadline."""
    left = LAST_WORDS if ends is None else (ends - asyncio.get_running_loop().time()) / 2
    return min(LAST_WORDS, left)


async def read_body(raw: RawResponse, ends: float | None = None) -> bytes:
    """The whole body of an answer in one piece.

    A body that breaks off, or whose end does not come, is whole if it is a complete JSON object.
    """
    data = bytearray()
    loop = asyncio.get_running_loop()
    async with aclosing(raw.iter_bytes()) as pieces:
        while True:
            try:
                async with asyncio.timeout(None) as silence:
                    checked = loop.call_later(_last_words(ends), _end_if_whole, data, silence)
                    try:
                        data += await anext(pieces)
                    finally:
                        checked.cancel()
            except StopAsyncIteration:
                break
            except Exception:
                if _is_whole(data):
                    break
                raise
            if len(data) > LONGEST_BODY:
                raise ModelError(f"the answer is longer than {LONGEST_BODY // MEBIBYTE} MiB")
    return bytes(data)


def _end_if_whole(data: bytearray, silence: asyncio.Timeout) -> None:
    if _is_whole(data):
        silence.reschedule(asyncio.get_running_loop().time())


def _is_whole(data: bytearray) -> bool:
    """Whether this is a complete JSON object, after which nothing can come. Of a heavy one the braces are counted."""
    if not data.rstrip().endswith(b"}") or (len(data) > HEAVY and data.count(b"{") != data.count(b"}")):
        return False
    if len(data) > HEAVY:
        return True
    try:
        return isinstance(wire_value(bytes(data)), dict)
    except (ValueError, RecursionError):
        return False


class StreamedBody:
    """Reads the events of a streamed answer, up to the one with which its format says that it is complete.

    Where that event is missing, an answer that has its stop reason is complete too: when nothing more of it comes for
    `LAST_WORDS` seconds, or when the connection breaks off. `plain` is a body that holds no event at all.
    """

    def __init__(
        self, raw: RawResponse, reader: EventReader, decoder: Decoder, ends: float | None = None
    ) -> None:
        self._pieces = raw.iter_bytes()
        self._reader = reader
        self._decoder = decoder
        self._ends = ends  # when the deadline passes
        self._unread: (
            list[bytes] | None
        ) = []  # until the first event: what is none may be an error's plain words

    @property
    def plain(self) -> bytes | None:
        return b"".join(self._unread or ()).strip() or None

    async def events(self) -> AsyncGenerator[dict[str, Any]]:
        """The events, for the decoder to be fed with one by one."""
        decoder, size, pending, over = self._decoder, 0, 0, False
        ends: float | None = None  # the wait for what may follow a stop reason
        while not over:
            try:
                try:
                    data = await (anext(self._pieces) if ends is None else self._next_until(ends))
                except StopAsyncIteration:
                    over, found = True, self._reader.finish()
                else:
                    size += len(data)
                    pending += len(data)
                    if self._unread is not None:
                        self._unread.append(data)
                    most = LONGEST_STREAM if self._unread is None else LONGEST_BODY
                    if size > most:
                        raise ModelError(f"the streamed answer is longer than {most // MEBIBYTE} MiB")
                    found = (
                        await parsed(self._reader.feed, data, pending)
                        if pending > HEAVY
                        else self._reader.feed(data)
                    )
            except Exception:
                if has_ended(decoder):
                    return
                raise
            for event in found:
                self._unread = None
                yield event
                if DONE in event or is_complete(decoder):
                    return
            if found:  # comments that keep the connection open are not waited for
                pending = 0
                wait = _last_words(self._ends) if has_ended(decoder) else None
                ends = None if wait is None else asyncio.get_running_loop().time() + wait

    async def _next_until(self, ends: float) -> bytes:
        async with asyncio.timeout_at(ends):
            return await anext(self._pieces)

    async def rest(self) -> None:
        """Reads the end of a body whose answer is complete, if it comes at once."""
        size = 0
        with suppress(Exception):
            async with asyncio.timeout(REST_SECONDS):
                async for data in self._pieces:
                    size += len(data)
                    if size > LONGEST_ERROR:
                        break

    async def aclose(self) -> None:
        """Stop reading."""
        await self._pieces.aclose()
