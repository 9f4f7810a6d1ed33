"""Texts with calls, spoiled in every way we know: nothing raises, hangs or runs half, and no cut changes a thing.

The rounds are fixed and seeded, so that a fault found once is found again.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.cases import each
from toolcrib.call import ToolCall
from toolcrib.codecs.text import Parsed, format_named, formats, parse_text, text_parser
from toolcrib.codecs.text.scanner import Scanner, Steps, drive
from toolcrib.messages import CallChunk, Chunk, ReasoningChunk, RestartChunk, TextChunk

ALL = sorted(formats())
TOOLS: dict[str, Any] = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "exact": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {"type": "object", "properties": {"lat": {"type": "number"}}},
        },
    },
    "now": {"type": "object", "properties": {}},
}
VALUES: list[dict[str, Any]] = [
    {"city": "Bern", "days": 3, "exact": True, "tags": ["a", "b"], "place": {"lat": 46.9}},
    {"city": 'He said "hi" {[ \\ ü 😀 }]', "days": 12},
    {},
    {"tags": ["x", "y"], "place": {"lat": 1.5}},
    {"city": "two\n\nlines"},
]
MARKS = sorted({mark for format in formats().values() for mark in format.reserved})
WORDS = [
    *"<>{}[]()\"'\\`=,:/|\n x1é", "get_weather", "now", "city", '{"name": "get_weather", ', '"arguments": {',
    '"parameters": ', '{"name": "now", "arguments": {}}', "get_weather(city='Bern')", "<think>", "</think>",
    "```json\n", "```", "<|", "|>",
    "true", "null", "\ud83d", "\x00", "\uff5c", "<![CDATA[", "]]>", "<tools>", "<city>", "</city>", "functions.now:0",
]  # fmt: skip
SPOILING = ("cut", "twice", "insert", "replace", "end", "move", "odd")
MUTATED, SOUPS, OWN = 30, 12, 20  # rounds for each format


def written(name: str, values: Iterable[dict[str, Any]]) -> str:
    calls = [ToolCall("get_weather", json.dumps(value), f"c{at}") for at, value in enumerate(values)]
    return format_named(name).write_calls(calls)


def spoiled(dice: random.Random, text: str) -> str:
    """A text after some of the things that go wrong."""
    for _ in range(dice.randint(1, 5)):
        start = dice.randint(0, len(text))
        end = min(len(text), start + dice.randint(1, 12))
        match dice.choice(SPOILING):
            case "cut":
                text = text[:start] + text[end:]
            case "twice":
                text = text[:end] + text[start:]
            case "insert":
                text = text[:start] + dice.choice([*MARKS, *WORDS]) + text[start:]
            case "replace":
                text = text[:start] + dice.choice([*MARKS, *WORDS]) + text[end:]
            case "end":
                text = text[:start]
            case "move":
                at = dice.randint(0, len(text))
                text = text[:start] + text[at : at + dice.randint(1, 80)] + text[start:]
            case _:
                text = text[:start] + chr(dice.choice([0, 9, 127, 0xD83D, 0x1F600, 0xFF5C])) + text[end:]
    return text[:4000]


def pieces(dice: random.Random, text: str) -> list[str]:
    most = dice.choice([1, 2, 5, 20, 200])
    found: list[str] = []
    at = 0
    while at < len(text):
        size = dice.randint(1, most)
        found.append(text[at : at + size])
        at += size
    return found


def read(name: str, fed: Iterable[str]) -> tuple[Parsed, list[Chunk]]:
    parser = text_parser(name, TOOLS)
    chunks = [chunk for piece in fed for chunk in parser.feed(piece)]
    chunks += parser.finish()
    return parser.parsed(), chunks


def said(chunks: Iterable[Chunk]) -> tuple[str, str, list[tuple[str, str]]]:
    """The sum of the chunks, as a listener has it."""
    text, thought = "", ""
    calls: dict[int, tuple[str, str]] = {}
    for chunk in chunks:
        if isinstance(chunk, RestartChunk):
            text, thought, calls = "", "", {}
        elif isinstance(chunk, TextChunk):
            text += chunk.text
        elif isinstance(chunk, ReasoningChunk):
            thought += chunk.text
        else:
            name, arguments = calls.get(chunk.index, ("", ""))
            calls[chunk.index] = (name + chunk.name, arguments + chunk.arguments)
    return whole(text), whole(thought), [(name, whole(arguments)) for name, arguments in calls.values()]


def whole(text: str) -> str:
    """A character that was cut into two surrogates is one in a message."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def runnable(parsed: Parsed) -> list[tuple[str, Any]]:
    return [(call.name, value(call.arguments)) for call in parsed.calls if not call.problem]


def value(arguments: Any) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def hold(name: str, text: str, dice: random.Random) -> None:
    """One text, whole and in pieces: the same parts, and chunks that add up to them."""
    once, at_once = read(name, [text])
    fed = pieces(dice, text)
    again, streamed = read(name, fed)
    assert again.parts == once.parts, (text, fed)
    expected = (once.text, once.reasoning, [(call.name, str(call.arguments)) for call in once.calls])
    assert said(at_once) == expected, text
    assert said(streamed) == expected, (text, fed)
    done = {chunk.index for chunk in streamed if isinstance(chunk, CallChunk) and chunk.done}
    assert {at for at, call in enumerate(once.calls) if not call.problem} <= done, text


@each("name", ALL)
def test_spoiled_calls(name: str) -> None:
    dice = random.Random(name)
    for _ in range(MUTATED):
        before = dice.choice(["", "Sure.\n", "<think>hm</think>\n"])
        hold(name, spoiled(dice, before + written(name, dice.choices(VALUES, k=dice.randint(1, 3)))), dice)


@each("name", ALL)
def test_soup(name: str) -> None:
    """Markers of all formats, and of this one alone, in any order."""
    dice = random.Random(f"soup {name}")
    for _ in range(SOUPS):
        hold(name, "".join(dice.choices([*MARKS, *WORDS], k=dice.randint(1, 30))), dice)
    own = [*format_named(name).reserved, *WORDS]
    for _ in range(OWN):
        hold(name, "".join(dice.choices(own, k=dice.randint(1, 25))), dice)


@each("name", ALL)
def test_an_answer_that_breaks_off_runs_no_more_than_what_was_whole(name: str) -> None:
    for values in (VALUES[:1], VALUES[1:2], VALUES[2:5:2]):
        text = written(name, values)
        meant = [("get_weather", item) for item in values]
        assert runnable(parse_text(text, name, TOOLS)) == meant, text
        for end in range(len(text)):
            found = runnable(parse_text(text[:end], name, TOOLS))
            assert found == meant[: len(found)], text[:end]


# Their calls are JSON, Python or lines of text at the beginning of an answer: there is no marker to be missed.
UNMARKED = frozenset(
    {
        "functionary_v3.2",
        "generic_json",
        "json_array",
        "llama3_json",
        "llama4_pythonic",
        "merged_json",
        "pythonic",
        "xlam",
    }
    | {
        "granite",
        "lfm2",
        "tool_call",
    }  # read such a beginning too, as servers take their markers off
)


@each("name", [name for name in ALL if name not in UNMARKED])
def test_without_its_markers_there_is_no_call(name: str) -> None:
    for values in (VALUES[:1], VALUES[2:4]):
        text = written(name, values)
        marks = sorted((mark.strip() for mark in format_named(name).reserved), key=len, reverse=True)
        bare = re.sub(
            "|".join([*(re.escape(mark) for mark in marks if mark), r"</?[\w=]+>|\[[A-Z_]+\]"]), "", text
        )
        assert bare != text
        assert parse_text(bare, name, TOOLS).calls == [], bare
        assert parse_text("As I said: " + bare, name, TOOLS).calls == [], bare


@pytest.mark.parametrize(
    "text", ["[TOOL_CALL]`" + "x" * 20 + "{", "<tool_call " + "x" * 80 + ">{", "```" + "x" * 70 + "\n{"]
)
@pytest.mark.parametrize("name", ["schoober", "tool_call"])
def test_a_word_that_is_too_long_is_so_in_pieces_too(name: str, text: str) -> None:
    assert read(name, text)[0] == read(name, [text])[0]


@pytest.mark.parametrize("text", ["<|tool_call>call:f{s:[}", "<|tool_call>call:f{s:[1}}<tool_call|>"])
def test_a_list_that_the_wrong_bracket_closes(text: str) -> None:
    [call] = parse_text(text, "gemma4", TOOLS).calls
    assert call.problem


Move = tuple[str, Any]
TAGS = ("<a>", "<a", "</a>", "<ab>", "|", "]]", "<<")
MOVES: list[Move] = [
    ("until", TAGS), ("until", ("<a>",)), ("accept", TAGS), ("peek", 1), ("peek", 4), ("skip", 1), ("space", None),
    ("few", re.compile(r"[a-z<]+")), ("run", re.compile(r"[a-z]+")), ("run", re.compile(r"[^<{]+")),
    ("json", ()), ("json", ("</a>", "]]")),
    ("string", '"'),
]  # fmt: skip
LETTERS = [*'ab<>/|{}[]",:\\ \n1', *TAGS, '{"a": [1, "</a>"]}', '"\\""', "\ud83d", "é"]


def walk(scan: Scanner, moves: list[Move], told: list[Any]) -> Steps[None]:
    """Each move, what it gives, what it hands out, and where it ends."""
    for kind, what in moves:
        out: list[str] = []
        result: Any = None
        start = scan.offset
        match kind:
            case "until":
                result = yield from scan.until(what, out.append)
            case "accept":
                result = yield from scan.accept(what)
            case "peek":
                result = yield from scan.peek(what)
            case "skip":
                yield from scan.peek(what)
                scan.skip(what, out.append)
            case "space":
                result = yield from scan.skip_space(out.append)
            case "run":
                result = yield from scan.take_while(what, out.append)
            case "few":
                result = yield from scan.take_while(what, out.append, 3)
            case "json":
                result = yield from scan.json_value(out.append, what)
            case _:
                result = yield from scan.string_rest(what, out.append)
        told.append((kind, result, "".join(out), scan.offset, scan.since(start)))
    told.append(scan.since(0))
    yield from scan.until(())


def walked(fed: Iterable[str], moves: list[Move]) -> list[Any]:
    scan, told = Scanner(), list[Any]()
    steps = walk(scan, moves, told)
    going = drive(steps)
    for piece in fed:
        scan.feed(piece)
        going = going and drive(steps)
    scan.end()
    assert not (going and drive(steps)), "it wants more text than there is"
    return told


def test_a_scanner_finds_the_same_however_its_text_comes() -> None:
    dice = random.Random(7)
    for _ in range(2000):
        text = "".join(dice.choices(LETTERS, k=dice.randint(0, 30)))
        moves = dice.choices(MOVES, k=dice.randint(1, 8))
        told = walked([text], moves)
        fed = pieces(dice, text)
        assert walked(fed, moves) == told, (text, moves, fed)
        assert text.startswith(told[-1])


def test_a_scanner_may_be_asked_before_anything_came() -> None:
    makers: list[Callable[[Scanner], Steps[Any]]] = [
        lambda scan: scan.until(("a",)),
        lambda scan: scan.accept(("a",)),
        lambda scan: scan.json_value(list[str]().append),
    ]
    for make in makers:
        scan = Scanner()
        steps = make(scan)
        assert drive(steps)
        scan.end()
        assert not drive(steps)
