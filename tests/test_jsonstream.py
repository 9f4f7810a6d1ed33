"""The incremental JSON parser, case by case: what is shown, what is said, what is refused, what it costs."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.cases import each
from tests.growth import growth
from toolcrib.jsonstream import JsonEvent, JsonStream, JsonStreamError

NOTHING = object()


def shown(stream: JsonStream) -> Any:
    return stream.value if stream.has_value else NOTHING


def read(text: str | bytes, step: int = 1) -> tuple[JsonStream, list[JsonEvent]]:
    stream = JsonStream()
    events: list[JsonEvent] = []
    for at in range(0, len(text), step):
        events += stream.feed(text[at : at + step])
    return stream, events + stream.close()


SHOWN_AFTER = [
    # what was fed so far, and what is shown of it
    ("", NOTHING),
    ("  ", NOTHING),
    ("{", {}),
    ('{"a', {}),
    ('{"a"', {}),
    ('{"a":', {}),
    ('{"a": ', {}),
    ('{"a": "', {"a": ""}),
    ('{"a": "b', {"a": "b"}),
    ('{"a": [', {"a": []}),
    ('{"a": {', {"a": {}}),
    ('{"a": 1', {}),
    ('{"a": 1 ', {"a": 1}),
    ('{"a": 1,', {"a": 1}),
    ('{"a": 1.5e', {}),
    ('{"a": -0}', {"a": 0}),
    ('{"a": tru', {}),
    ('{"a": true', {"a": True}),
    ('{"a": null', {"a": None}),
    ("12", NOTHING),
    ("12 ", 12),
    ("nul", NOTHING),
    ("null", None),
    ("[1, 2", [1]),
    ("[[1], [", [[1], []]),
    ('["a\\', ["a"]),
    ('["a\\n', ["a\n"]),
    ('["a\\\\', ["a\\"]),
    ('["\\u4f6', [""]),
    ('["\\u4f60', ["你"]),
    ('["\\ud83c', [""]),
    ('["\\ud83c\\', [""]),
    ('["\\ud83c\\udf2', [""]),
    ('["\\ud83c\\udf24', ["🌤"]),
    ('["\\ud83c\\n', ["\ufffd\n"]),
    ('["\\ud83cx', ["\ufffdx"]),
    ('["\\ud83c"', ["\ufffd"]),
    ('["\\ud83c\\ud83c\\udf24', ["\ufffd🌤"]),
    ('["\\udf24', ["\ufffd"]),
    ('["\\ud83c🌤', ["\ufffd🌤"]),
    ('["\ud83c', [""]),
    ('["\ud83c\udf24', ["🌤"]),
    ('["\ud83c\\udf24', ["🌤"]),
    ('{"\\ud83c\\udf24": 1 ', {"🌤": 1}),
    ('{"a": 1, "a"', {}),
    ('{"a": 1, "b": 2, "a": 3}', {"b": 2, "a": 3}),
]


@each(("text", "value"), SHOWN_AFTER)
@each("step", [1, 2, 1000])
def test_shows_what_no_later_character_can_contradict(text: str, value: Any, step: int) -> None:
    stream = JsonStream()
    for at in range(0, len(text), step):
        stream.feed(text[at : at + step])
    assert shown(stream) == value


@pytest.mark.parametrize("text", ["é", "你好", "🌤", "a🌤b你é"])
@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_utf8_cut_anywhere(text: str, step: int) -> None:
    stream, _ = read(json.dumps({text: text}, ensure_ascii=False).encode(), step)
    assert stream.value == {text: text}


def test_events_character_by_character() -> None:
    _, events = read('{"a": "xy", "b": [1, {}]}')
    assert events == [
        ("open", (), "object"),
        ("open", ("a",), "string"),
        ("delta", ("a",), "x"),
        ("delta", ("a",), "y"),
        ("value", ("a",), "xy"),
        ("open", ("b",), "array"),
        ("value", ("b", 0), 1),
        ("open", ("b", 1), "object"),
        ("value", ("b", 1), {}),
        ("value", ("b",), [1, {}]),
        ("value", (), {"a": "xy", "b": [1, {}]}),
    ]


def test_a_string_gives_one_delta_a_chunk() -> None:
    stream = JsonStream()
    stream.feed('["')
    assert stream.feed("a\\n\\u4f60b") == [("delta", (0,), "a\n你b")]
    assert stream.feed("") == []


def test_events_read_by_name() -> None:
    (event,) = JsonStream().feed("[")
    assert (event.kind, event.path, event.value) == ("open", (), "array")


def test_a_number_alone_is_finished_by_the_end() -> None:
    stream = JsonStream()
    assert stream.feed("-1.5e3") == []
    assert stream.close() == [("value", (), -1500.0)]
    assert stream.complete


def test_without_events_the_value_is_the_same() -> None:
    stream = JsonStream(events=False)
    assert stream.feed('{"a": ["b", 1], "c": "d') == []
    assert stream.value == {"a": ["b", 1], "c": "d"}
    assert stream.feed('"}') == []
    assert stream.close() == []
    assert stream.complete


def test_each_feed_gives_a_list_of_its_own() -> None:
    stream = JsonStream()
    first = stream.feed("[1,")
    kept = list(first)
    stream.feed("2]")
    assert first == kept


def test_the_live_value_stays_the_same_object() -> None:
    stream = JsonStream()
    stream.feed('{"a": {"b": "')
    value = stream.value
    stream.feed('x"}, "c": 1}')
    assert value is stream.value
    assert value == {"a": {"b": "x"}, "c": 1}


WARNED = [
    ('{"a": 1, "a": 2}', ["duplicate_key:a"]),
    ('{"a": 1, "\\u0061": 2, "b": {"a": 1}}', ["duplicate_key:a"]),
    ('["\\ud83c", "\\udf24\\udf24"]', ["lone_surrogate"] * 3),
    ('["\\ud83c\\udf24"]', []),
]


@pytest.mark.parametrize(("text", "warnings"), WARNED)
@pytest.mark.parametrize("step", [1, 1000])
def test_says_what_it_read_otherwise(text: str, warnings: list[str], step: int) -> None:
    assert read(text, step)[0].warnings == warnings


REFUSED = [
    # the text, and how much of it could still have become JSON
    ("]", 0),
    ("x", 0),
    ("[1,]", 3),
    ("[,", 1),
    ("[1 2]", 3),
    ("[01]", 2),
    ("[-x", 2),
    ("[.5]", 1),
    ("[1.]", 3),
    ("[1ee", 3),
    ("[+1]", 1),
    ("[1e999]", 6),
    ("[trux", 4),
    ("[nulL", 4),
    ("NaN", 0),
    ("Infinity", 0),
    ("-Infinity", 1),
    ("{a", 1),
    ("{'a", 1),
    ('{"a" 1', 5),
    ('{"a":}', 5),
    ('{"a":1,}', 7),
    ('{"a":1]', 6),
    ('{"a":1 "b', 7),
    ("[1}", 2),
    ('["a\nb"]', 3),
    ('{"a\tb', 3),
    ('["\\x41"]', 3),
    ('["\\u12g4"]', 6),
    ('["\\ud83c\\x', 9),
    ('{"\\q', 3),
    ('{"a":1}{"b":2}', 7),
    ('{"a":1} \n x', 10),
    ("{} //", 3),
    ("12 3", 3),
    ("\ufeff{}", 0),
    ("\x00", 0),
    ("\f1", 0),
    ("\u00a01", 0),
]


@each(("text", "position"), REFUSED)
@each("step", [1, 3, 1000])
def test_refuses_at_the_first_impossible_character(text: str, position: int, step: int) -> None:
    stream = JsonStream()
    with pytest.raises(JsonStreamError) as refusal:
        for at in range(0, len(text), step):
            stream.feed(text[at : at + step])
    assert refusal.value.position == position
    JsonStream().feed(text[:position])


UNFINISHED = [
    "",
    " ",
    "{",
    "[",
    '"',
    '"\\',
    '"\\u12',
    '"\\ud83c',
    '{"a',
    '{"a"',
    '{"a":',
    "[1",
    "[1,",
    "-",
    "1.",
    "1e",
    "tru",
]


@pytest.mark.parametrize("text", UNFINISHED)
def test_only_the_end_refuses_what_is_unfinished(text: str) -> None:
    stream = JsonStream()
    stream.feed(text)
    assert not stream.complete
    with pytest.raises(JsonStreamError) as refusal:
        stream.close()
    assert refusal.value.position == len(text)


NOT_UTF8 = [
    (b'["\xff', 2),
    (b'["\xc0\xaf', 2),
    (b'["\xed\xa0', 2),  # a surrogate, seen before its last byte
    (b'["\xf4\x90', 2),
    (b'["\xe0\xff', 2),
    ('["你'.encode() + b"\x80", 3),
    (b'["\\ud83c\xff', 8),
    (b"\xff\xfe[\x00", 0),
]


@pytest.mark.parametrize(("text", "position"), NOT_UTF8)
@pytest.mark.parametrize("step", [1, 2, 1000])
def test_refuses_bytes_that_are_not_utf8(text: bytes, position: int, step: int) -> None:
    with pytest.raises(JsonStreamError, match="UTF-8") as refusal:
        read(text, step)
    assert refusal.value.position == position


def test_refuses_text_after_half_a_character() -> None:
    stream = JsonStream()
    stream.feed(b'["\xe4\xbd')
    with pytest.raises(JsonStreamError, match="UTF-8"):
        stream.feed("a")


def test_a_text_may_not_end_inside_a_character() -> None:
    stream = JsonStream()
    stream.feed(b"1 \xe4")
    with pytest.raises(JsonStreamError):
        stream.close()


def test_what_was_read_stays_after_a_refusal_and_the_refusal_too() -> None:
    stream = JsonStream()
    with pytest.raises(JsonStreamError):
        stream.feed('{"a": "b\n')
    assert stream.value == {"a": "b"}
    for again in (lambda: stream.feed('c"}'), lambda: stream.feed(""), stream.close):
        with pytest.raises(JsonStreamError) as refusal:
            again()
        assert refusal.value.position == 8


@pytest.mark.parametrize("step", [1, 5, 1000])
def test_glued_texts_can_be_told_apart(step: int) -> None:
    glued = '{"a": "é"} {"b": 2}\n[3]'
    found: list[Any] = []
    while glued:
        stream = JsonStream()
        try:
            for at in range(0, len(glued), step):
                stream.feed(glued[at : at + step])
            glued = ""
        except JsonStreamError as refusal:
            assert stream.complete
            glued = glued[refusal.position :]
        found.append(stream.value)
    assert found == [{"a": "é"}, {"b": 2}, [3]]


def test_depth_is_limited() -> None:
    JsonStream(max_depth=3).feed("[[[1]]]")
    with pytest.raises(JsonStreamError) as refusal:
        JsonStream(max_depth=3).feed("[[{}, [[")
    assert refusal.value.position == 7
    with pytest.raises(JsonStreamError):
        JsonStream().feed("[" * 100_000)


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("text", ['["abcdefgh"]', '["\\ud83c\\udf24"]', '["你你你你"]'])
def test_length_is_limited(text: str, step: int) -> None:
    for chunks in (text, text.encode()):
        stream = JsonStream(max_chars=6)
        with pytest.raises(JsonStreamError) as refusal:
            for at in range(0, len(chunks), step):
                stream.feed(chunks[at : at + step])
        assert refusal.value.position == 6
    JsonStream(max_chars=len(text)).feed(text)


def test_integers_with_too_many_digits_are_refused() -> None:
    with pytest.raises(JsonStreamError, match="digits"):
        JsonStream().feed("[" + "9" * 5000 + "]")


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(JsonStreamError("trailing data", 7)))
    assert (str(error), error.position) == ("trailing data at character 7", 7)


# ---- cost


def pieces(text: str | bytes, size: int) -> list[Any]:
    return [text[at : at + size] for at in range(0, len(text), size)]


LINE = "    return value  # as the caller expects\n"
EDIT = {"old_text": "total(order)", "new_text": "sum(order, 1)", "line": 12, "all": True}
GROWING: dict[str, Callable[[int], Sequence[str | bytes]]] = {
    "long text": lambda n: pieces(
        json.dumps({"path": "a.py", "content": LINE * (n // len(LINE))}).encode(), 16
    ),
    "long text, one character each": lambda n: pieces(json.dumps(LINE * (n // len(LINE))), 1),
    "long text outside ASCII": lambda n: pieces(
        json.dumps("é你" * (n // 5), ensure_ascii=False).encode(), 16
    ),
    "surrogate pairs": lambda n: pieces(json.dumps("🌤" * (n // 12)), 5),
    "many objects": lambda n: pieces(json.dumps({"edits": [EDIT] * (n // 85)}).encode(), 16),
    "many strings with escapes at once": lambda n: [json.dumps(["\n"] * (n // 6))],
    "a long key": lambda n: pieces(json.dumps({"k" * n: 1}), 3),
    "a long key with escapes": lambda n: pieces(json.dumps({"k\n" * (n // 3): 1}), 3),
    "a long number": lambda n: pieces("[0." + "1" * n + "]", 3),
    "much space": lambda n: pieces("[" + " " * n + "1]", 3),
    "deep, shallow, deep": lambda n: pieces(json.dumps([[[[[[[["a"]]]]]]]] * (n // 20)), 4),
    "repeated keys": lambda n: pieces("{" + '"a":1,' * (n // 6) + '"a":1}', 16),
}


@pytest.mark.slow
@pytest.mark.parametrize("events", [True, False])
@pytest.mark.parametrize("build", GROWING.values(), ids=GROWING)
def test_cost_grows_with_the_text_and_no_faster(
    build: Callable[[int], Sequence[str | bytes]], events: bool
) -> None:
    def reading(size: int) -> Callable[[], object]:
        chunks = build(size)

        def work() -> None:
            stream = JsonStream(events=events)
            for chunk in chunks:
                stream.feed(chunk)
                stream.value  # noqa: B018 - kept by nobody: a string that is kept has to be copied to grow

        return work

    # Eight times the text: quadratic would be 64 times the time.
    assert growth(reading, 50_000, 400_000, 32, floor=0) < 32
