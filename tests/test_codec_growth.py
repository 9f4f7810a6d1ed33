"""Reading costs as much as there is to read, whatever that is: decoders of wire formats, parsers of text formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cases import each
from tests.growth import growth
from tests.test_fuzz_codecs import decoded
from tests.wire_streams import STREAMS, Event
from toolcrib.call import ToolCall
from toolcrib.codecs import JSONEvents, ModelError
from toolcrib.codecs.catalog import codec_named
from toolcrib.codecs.ndjson import JSONLines
from toolcrib.codecs.text import format_named, formats, text_parser

pytestmark = pytest.mark.slow

PLACES = frozenset({"index", "output_index", "content_index", "contentBlockIndex"})
IDS = frozenset({"id", "item_id", "call_id", "toolUseId", "tool_use_id"})
AT_MOST = 30  # times as much for eight times the input: a square would be 64


def moved(value: Any, by: int, key: str = "") -> Any:
    """An event as it would be further on: with other places and other ids."""
    if isinstance(value, dict):
        return {name: moved(item, by, name) for name, item in value.items()}
    if isinstance(value, list):
        return [moved(item, by, key) for item in value]
    if key in PLACES and isinstance(value, int):
        return value + 10 * by
    return f"{value}{by}" if key in IDS and isinstance(value, str) else value


def again(events: list[Event], times: int) -> Iterator[Event]:
    """Every answer's middle as often, each time as something new; its end stays at the end."""
    yield events[0]
    for number in range(times):
        yield from (moved(event, number) for event in events[1:-2])
    yield from events[-2:]


def same(events: list[Event], times: int) -> Iterator[Event]:
    """Every event as often as it was."""
    for event in events:
        yield from [event] * times


def backwards(events: list[Event], times: int) -> Iterator[Event]:
    """Ends before beginnings."""
    yield from reversed([*again(events, times)])


def decoding(name: str, events: list[Event]) -> Callable[[], object]:
    def work() -> None:
        try:
            decoded(codec_named(name).decoder(), events, [])
        except ModelError:
            pass  # of such a stream no answer need come

    return work


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("make", [again, same, backwards])
def test_a_stream_of_many_events(name: str, make: Callable[[list[Event], int], Iterator[Event]]) -> None:
    def work(times: int) -> Callable[[], object]:
        return decoding(name, [*make(STREAMS[name], times)])

    assert growth(work, 25, 200, AT_MOST, floor=0.002) < AT_MOST


# where a piece of one call's arguments stands in the streams above
PIECES: dict[str, tuple[int, tuple[Any, ...]]] = {
    "openai_chat": (5, ("choices", 0, "delta", "tool_calls", 0, "function", "arguments")),
    "openai_responses": (12, ("delta",)),
    "anthropic_messages": (17, ("delta", "partial_json")),
    "cohere": (11, ("delta", "message", "tool_calls", "function", "arguments")),
}
ODD = {
    "one character each": "x",
    "closed objects": '{"a":1}',
    "brackets": '{"a":[',
    "quotes": '"',
    "backslashes": "\\",
    "nothing": "",
}


def with_piece(event: Event, path: tuple[Any, ...], text: str) -> Event:
    changed: Event = json.loads(json.dumps(event))
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = text
    return changed


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_one_call_in_many_pieces(name: str, text: str) -> None:
    at, path = PIECES[name]
    events = STREAMS[name]
    piece = with_piece(events[at], path, text)

    def work(times: int) -> Callable[[], object]:
        return decoding(name, [*events[:at], *[piece] * times, *events[at + 1 :]])

    assert growth(work, 500, 4_000, AT_MOST, floor=0.002) < AT_MOST


@pytest.mark.parametrize("reader", [JSONEvents, JSONLines])
@pytest.mark.parametrize(
    "line", [b"data: {}\n\n", b"{}\n", b"\n", b"\r", b":", b"data: {", b"[", b'data: {"a": "']
)
def test_bytes_one_by_one(reader: type[JSONEvents | JSONLines], line: bytes) -> None:
    def work(times: int) -> Callable[[], object]:
        data = line * times

        def read() -> None:
            made = reader()
            try:
                for at in range(len(data)):
                    made.feed(data[at : at + 1])
                made.finish()
            except ModelError:
                pass

        return read

    assert growth(work, 500, 4_000, AT_MOST, floor=0.002) < AT_MOST


TOOLS: dict[str, Any] = {"f": {"type": "object", "properties": {"a": {"type": "string"}}}}
# One format for each parser, and rows of a table that are read in ways of their own.
KINDS = {
    (
        getattr(form.read, "__func__", form.read),
        bool(form.parameter),
        "{call}" in form.call,
        form.special_tokens,
    ): name
    for name, form in formats().items()
}
ROWS = {
    "apertus",
    "command_r_plus",
    "generic_json",
    "granite",
    "hermes",
    "json_array",
    "llama3_json",
    "phi4_mini_json",
}
FORMATS = sorted({*KINDS.values(), *ROWS})


def heads(name: str) -> tuple[str, str]:
    """How a call begins: up to its name, and up to its first value."""
    text = format_named(name).write_calls([ToolCall("f", '{"a": "VALUE"}', "c1")])
    value = text.index("VALUE")
    return text[: text.rindex("f", 0, text.index("a", text.index("f")) + 1) + 1], text[:value]


def hostile(name: str) -> dict[str, tuple[str, str]]:
    """What a text begins with, and what then goes on for ever."""
    opening, head = heads(name)
    marks = [mark for mark in format_named(name).reserved if mark.strip()] or ["<tool_call>", "</tool_call>"]
    return {
        "calls that only begin": ("", head),
        "names without arguments": ("", opening),
        "all marks": ("", "".join(marks)),
        "half marks": ("", "".join(mark[:-1] for mark in marks)),
        "half marks in a value": (head, "".join(mark[:-1] for mark in marks)),
        "brackets in a value": (head, '[{"'),
    }


def reading(name: str, head: str, text: str, length: int, size: int) -> Callable[[], object]:
    whole = head + text * (length // len(text) + 1)

    def work() -> None:
        parser = text_parser(name, TOOLS)
        for at in range(0, len(whole), size):
            parser.feed(whole[at : at + size])
        parser.finish()
        parser.parsed()

    return work


@each("name", FORMATS)
def test_a_text_at_once(name: str) -> None:
    for pattern, (head, text) in hostile(name).items():
        ratio = growth(lambda n: reading(name, head, text, n, 10**9), 3_000, 24_000, AT_MOST, floor=0.002)  # noqa: B023
        assert ratio < AT_MOST, (pattern, head, text)


@each("name", FORMATS)
def test_a_text_one_character_a_piece(name: str) -> None:
    head = heads(name)[1]
    for text in ("x", "<", " \n"):
        ratio = growth(lambda n: reading(name, head, text, n, 1), 500, 4_000, AT_MOST, floor=0.002)  # noqa: B023
        assert ratio < AT_MOST, text
