"""Answers of every wire format, spoiled in every way we know: an answer comes out, or our error, and no cut matters.

The rounds are fixed and seeded, so that a fault found once is found again.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.wire_streams import BODIES, STREAMS, Event
from toolcrib.codecs import Codec, Decoder, JSONEvents, ModelError
from toolcrib.codecs.catalog import CODECS, codec_named
from toolcrib.codecs.codec import last_chunks
from toolcrib.codecs.ndjson import JSONLines
from toolcrib.codecs.wire_json import encodable
from toolcrib.messages import CallChunk, Chunk, Request, Response, RestartChunk, TextChunk


def nested(depth: int) -> Any:
    return json.loads('{"a":[' * depth + "]}" * depth)


JUNK: list[Any] = [
    None, True, -1, 10**400, 1e308, float("nan"), "", "x", "null", "\ud83d", "{}{}", '{"a": ', [], {}, [None], [[]],
    {"x": None}, {"type": "text"}, {"": {"": [""]}}, [{"type": 1, "text": 2, "name": 3, "id": 4}],
]  # fmt: skip
SOME = 6  # values that are tried at each path of a stream
BYTES = 150  # rounds with spoiled bytes, for each format


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a value."""
    if here:
        yield here
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from paths(child, (*here, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a value with another at one place."""
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


Outcome = tuple[str, Any]


def outcome(work: Callable[[], Response]) -> Outcome:
    try:
        return "answer", work()
    except ModelError as error:
        return "error", error.message


def decoded(decoder: Decoder, events: list[Event], chunks: list[Chunk]) -> Response:
    for event in events:
        chunks += decoder.feed(event)
    chunks += last_chunks(decoder)
    return decoder.finish()


def sent_back(codec: Codec, result: Outcome) -> None:
    """An answer can be sent back, whatever it was made of."""
    if result[0] == "answer":
        body = codec.request(Request([result[1].message]), model="m", stream=False)
        json.dumps(encodable(body), allow_nan=False).encode()


SAID_AGAIN = frozenset({"openai_responses"})  # at the end all comes once more, and it is that which counts


def add_up(name: str, chunks: list[Chunk], response: Response, said: Any) -> None:
    """The chunks tell the calls of the answer, and no text that is not in it; a lost piece may come at its end."""
    last = max((at for at, chunk in enumerate(chunks) if isinstance(chunk, RestartChunk)), default=-1)
    told = "".join(chunk.text for chunk in chunks[last + 1 :] if isinstance(chunk, TextChunk))
    names: dict[int, str] = {}
    for chunk in chunks[last + 1 :]:
        if isinstance(chunk, CallChunk):
            names[chunk.index] = names.get(chunk.index, "") + chunk.name
    told_names = [names[index] for index in sorted(names)]
    if name not in SAID_AGAIN:
        assert sorted(names) == list(range(len(response.message.calls))), said
        assert told_names == [call.name for call in response.message.calls], said
        assert Counter(whole(told)) <= Counter(response.message.text), said


def whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def test_every_wire_format_has_a_stream_here() -> None:
    assert set(STREAMS) == set(BODIES) == set(CODECS)


@pytest.mark.parametrize("name", STREAMS)
def test_the_streams_and_answers_are_whole(name: str) -> None:
    codec, chunks = codec_named(name), list[Chunk]()
    response = decoded(codec.decoder(), STREAMS[name], chunks)
    assert [call.name for call in response.message.calls][:1] == ["weather"]
    assert response.message.text
    add_up(name, chunks, response, name)
    assert codec.response(BODIES[name]).message.calls[0].name == "weather"


@pytest.mark.parametrize("name", STREAMS)
def test_a_wrong_value_anywhere_in_an_answer(name: str) -> None:
    codec = codec_named(name)
    deep = nested(300)
    for path in paths(BODIES[name]):
        for junk in (*JUNK, deep):
            body = put(BODIES[name], path, junk)
            sent_back(codec, outcome(lambda body=body: codec.response(body)))  # type: ignore[misc]


@pytest.mark.parametrize("name", STREAMS)
def test_a_wrong_value_anywhere_in_a_stream(name: str) -> None:
    codec, events = codec_named(name), STREAMS[name]
    wrong = itertools.cycle([*JUNK, nested(300)])
    for path in paths(events):
        for junk in itertools.islice(wrong, SOME):
            spoiled = put(events, path, junk)
            spoiled = [event for event in spoiled if isinstance(event, dict)]
            chunks: list[Chunk] = []
            result = outcome(lambda: decoded(codec.decoder(), spoiled, chunks))  # noqa: B023
            sent_back(codec, result)
            if result[0] == "answer":
                add_up(name, chunks, result[1], (path, junk))


def framed(name: str, events: list[Event]) -> list[bytes]:
    """The events as the server's bytes."""
    if name == "ollama":
        return [json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in events]
    return [
        (f"event: {event['type']}\n" if "type" in event else "").encode()
        + b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
        for event in events
    ]  # fmt: skip


def spoiled_bytes(dice: random.Random, frames: list[bytes]) -> bytes:
    """A stream after some of the things that go wrong."""
    frames = [*frames]
    for _ in range(dice.randint(0, 3)):
        at = dice.randrange(len(frames))
        match dice.randrange(4):
            case 0:
                frames.insert(at, dice.choice(frames))
            case 1:
                frames.append(frames.pop(at))
            case 2 if len(frames) > 1:
                del frames[at]
            case _:
                dice.shuffle(frames)
    data = b"".join(frames)
    for _ in range(dice.randint(0, 3)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0:
                data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[at + dice.randint(1, 40) :]
            case 2:
                data = data[: at + 30] + data[at:]
            case 3:
                odd = [
                    b"\\ud83d",
                    b"[" * 2000,
                    b"9" * 5000,
                    b"\xff\xfe",
                    b"\r",
                    b"\n\n",
                    b"data:",
                    b"null",
                    b'"',
                    b"1e999",
                ]
                data = data[:at] + dice.choice(odd) + data[at:]
            case _:
                data = data[:at]
    return data


def by_pieces(name: str, data: list[bytes], chunks: list[Chunk]) -> Response:
    """A stream as a transport reads it."""
    reader = JSONLines() if name == "ollama" else JSONEvents()
    decoder = codec_named(name).decoder()
    for piece in data:
        for event in reader.feed(piece):
            chunks += decoder.feed(event)
    return decoded(decoder, reader.finish(), chunks)


@pytest.mark.parametrize("name", STREAMS)
def test_spoiled_bytes_however_they_are_cut(name: str) -> None:
    dice = random.Random(name)
    codec, frames = codec_named(name), framed(name, STREAMS[name])
    for _ in range(BYTES):
        data = spoiled_bytes(dice, frames)
        size = dice.choice([1, 3, 50, 1000])
        chunks: list[list[Chunk]] = [[], []]
        once = outcome(lambda: by_pieces(name, [data], chunks[0]))  # noqa: B023
        cut = [data[at : at + size] for at in range(0, len(data), size)]
        again = outcome(lambda: by_pieces(name, cut, chunks[1]))  # noqa: B023
        assert repr(again) == repr(once), data  # by words, as NaN is not itself
        sent_back(codec, once)
        if once[0] == "answer":
            assert chunks[1] == chunks[0], data
            add_up(name, chunks[1], once[1], data)
