"""Every class of models against a server that fails at random at every stage: each request has one true outcome.

A seed says what happens; `--hypothesis-profile=nightly` tries many more of them.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.test_model_bodies import (
    WHOLE,
    Peer,
    Send,
    answer_of,
    chunk,
    end,
    head,
    kind_of,
    made,
    pieces_of,
    streaming,
)
from tests.test_model_classes import CLASSES, KEY, REQUEST
from toolcrib.messages import Response, RestartChunk, TextChunk
from toolcrib.models import ModelError, answer_body
from toolcrib.retry import Retry

pytestmark = pytest.mark.slow
SILENCE, DEADLINE = 0.3, 2.0
SLACK = 5.0  # for a machine that does other things too
ATTEMPTS = 3
CODES = ("204 N", "302 F", "400 B", "401 U", "408 T", "413 L", "429 S", "500 E", "503 B", "529 O")
WAITS = ("0", "-1", "3600", "1e400", "nan", "soon", "Fri, 31 Dec 9999 23:59:59 GMT", "9" * 400)
Fault = Callable[[random.Random, str, Send], Awaitable[None]]


def recut(dice: random.Random, data: bytes) -> list[bytes]:
    """The data as chunks that are cut anywhere."""
    places = sorted(dice.randrange(len(data) + 1) for _ in range(dice.randrange(6)))
    pieces = (data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True))
    return [chunk(piece) for piece in pieces if piece]


async def say(send: Send, *pieces: bytes) -> None:
    for piece in pieces:
        await send(piece)
        await asyncio.sleep(0)


async def hang_up(dice: random.Random, *, patience: float = 0.3) -> None:
    """Ends the connection, now or after the client has lost its patience."""
    if dice.random() < patience:
        await asyncio.sleep(SILENCE * 3)
    raise ConnectionError


async def end_somehow(dice: random.Random, send: Send) -> None:
    match dice.randrange(4):
        case 0:
            await send(b"0\r\n\r\n")
        case 1:
            await say(send, chunk(dice.randbytes(dice.randrange(1, 2000))), b"no chunk\r\n")
        case 2:
            while True:
                await send(chunk(b": still here\n\n"))
                await asyncio.sleep(0.01)
        case _:
            await hang_up(dice)


async def whole_stream(dice: random.Random, name: str, send: Send) -> None:
    await say(send, head(kind_of(name)).encode(), *recut(dice, b"".join(pieces_of(name))))
    await end_somehow(dice, send)


async def whole_body(dice: random.Random, name: str, send: Send) -> None:
    await say(send, head(WHOLE).encode(), *recut(dice, json.dumps(CLASSES[name][1]).encode()))
    await end_somehow(dice, send)


async def torn_stream(dice: random.Random, name: str, send: Send) -> None:
    data = b"".join(pieces_of(name)[:-3])
    await say(send, head(kind_of(name)).encode(), *recut(dice, data[: dice.randrange(len(data))]))
    if dice.random() < 0.5:
        await send(b"0\r\n\r\n")
    else:
        await hang_up(dice)


async def damaged_stream(dice: random.Random, name: str, send: Send) -> None:
    data = bytearray(b"".join(pieces_of(name)))
    for _ in range(dice.randrange(1, 4)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    await say(send, head(kind_of(name)).encode(), *recut(dice, bytes(data)))
    await end_somehow(dice, send)


async def refusal(dice: random.Random, name: str, send: Send) -> None:
    bodies: list[bytes] = [
        json.dumps({"error": {"message": f"no {KEY}"}, "message": f"no {KEY}"}).encode(),
        b"<html>" + KEY.encode() * dice.randrange(20_000),
        b"{" * dice.randrange(1, 100_000),
        gzip.compress(b"x" * 3_000_000),
        b"\xff\xfe\xe2\x82",
        b" ",
    ]
    more = [
        "transfer-encoding: chunked",
        f"retry-after: {dice.choice(WAITS)}",
        f"location: {dice.choice([f'http://{KEY}@127.0.0.1:9/', 'http://[', f'/{KEY}'])}",
        dice.choice(["content-encoding: gzip", "content-encoding: br, nothing", f"x-echo: {KEY}"]),
    ]
    lines = "".join(f"{line}\r\n" for line in more)
    first = head(dice.choice([WHOLE, "text/html"]), dice.choice(CODES), lines)
    await say(send, first.encode(), *recut(dice, dice.choice(bodies)))
    await end_somehow(dice, send)


async def page(dice: random.Random, name: str, send: Send) -> None:
    """A proxy's page with status 200."""
    data = f"<html>sign in, {KEY}</html>\n\n".encode() * dice.randrange(1, 2_000)
    first = head(dice.choice(["text/html", WHOLE, kind_of(name)]))
    await say(send, first.encode(), chunk(data), b"0\r\n\r\n")


async def flood(dice: random.Random, name: str, send: Send) -> None:
    unit = dice.choice([b": nothing\n\n", b"data: ", b"x", b"\n", b"[", pieces_of(name)[0]])
    piece = chunk(unit * (65_536 // len(unit)))
    await say(send, head(dice.choice([WHOLE, kind_of(name)])).encode(), *[piece] * 100)
    await hang_up(dice)


async def no_head(dice: random.Random, name: str, send: Send) -> None:
    whole = head(kind_of(name)).encode()
    many = b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 60_000
    cut = whole[: dice.randrange(len(whole) - 4)]
    await send(
        dice.choice([b"", cut, b"HTTP/9 what\r\n\r\n", b"\x16\x03\x01 TLS", many, dice.randbytes(300)])
    )
    await hang_up(dice)


async def silence(dice: random.Random, name: str, send: Send) -> None:
    await send(dice.choice([b"", head(kind_of(name)).encode(), head(WHOLE).encode()]))
    await hang_up(dice, patience=1.0)


FAULTS: list[Fault] = [whole_stream] * 3  # as often as ends are no answer at all
FAULTS += [whole_body, torn_stream, damaged_stream, refusal, page, flood, no_head, silence]
MAY_ANSWER = (whole_stream, whole_body, damaged_stream)


class Heard(logging.Handler):
    """What was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.words.append(record.getMessage())


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


async def once(model: Any) -> AsyncIterator[Any]:
    yield await model.respond(REQUEST)


async def one_outcome(name: str, seed: int, expected: Response, heard: Heard) -> None:
    dice, faults = random.Random(seed), list[Fault]()

    async def script(send: Send) -> None:
        faults.append(dice.choice(FAULTS))
        await faults[-1](dice, name, send)

    stream = dice.random() < 0.7
    items: list[Any] = []
    failed: ModelError | None = None
    async with Peer(script, "").serving() as peer, asyncio.timeout(DEADLINE + SLACK):
        model = made(name, peer.address, timeout=SILENCE, deadline=DEADLINE)
        model.retry = Retry(ATTEMPTS, 0.001, max_delay=0.05)
        async with model:
            try:
                asked = model.stream(REQUEST) if stream else once(model)
                items = [item async for item in asked]
            except ModelError as error:
                failed = error
    assert 1 <= peer.requests <= ATTEMPTS
    last = faults[-1]
    shown = [*heard.words, f"{failed} {failed.args} {failed.__cause__}" if failed is not None else ""]
    assert all(KEY[: len(KEY) // 2] not in words and len(words) < 8_000 for words in shown)
    if failed is not None:
        late = "did not answer within" in failed.message or "timed out" in failed.message.lower()
        assert not stream or last is not whole_stream or late, failed
        return
    assert last in MAY_ANSWER
    assert [isinstance(item, Response) for item in items].count(True) == 1
    answer = items[-1]
    assert isinstance(answer, Response)
    restarts = [place for place, item in enumerate(items) if isinstance(item, RestartChunk)]
    told = "".join(
        item.text for item in items[max(restarts, default=-1) + 1 :] if isinstance(item, TextChunk)
    )
    if last is whole_stream and stream:
        assert answer.message == expected.message
        assert not answer.message.text or told.startswith(answer.message.text)


def test_a_request_has_one_true_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, seconds in {"LAST_WORDS": 0.1, "REST_SECONDS": 0.02, "ERROR_SECONDS": 0.1}.items():
        monkeypatch.setattr(answer_body, limit, seconds)
    heard, problems = Heard(), list[Any]()
    log = logging.getLogger("toolcrib")

    async def clean(name: str) -> Response:
        async with streaming(name, end).serving() as peer, made(name, peer.address) as model:
            return await answer_of(model)

    async def trial(seed: int) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        await asyncio.gather(
            *(one_outcome(name, seed + at, expected[name], heard) for at, name in enumerate(CLASSES))
        )
        gc.collect()
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    @examples(15)
    @given(st.integers(0, 2**32))
    def tried(seed: int) -> None:
        heard.words.clear()
        before = open_files()
        asyncio.run(trial(seed))
        assert not problems
        assert open_files() <= before

    expected = {name: asyncio.run(clean(name)) for name in CLASSES}
    log.addHandler(heard)
    try:
        tried()
    finally:
        log.removeHandler(heard)
