"""Server-sent events from bytes that were cut anywhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.growth import growth
from toolcrib.codecs import JSONEvents, ModelError, ServerEvent, SSEReader

CASES: dict[str, tuple[bytes, list[ServerEvent]]] = {
    "one": (b"data: a\n\n", [ServerEvent("a")]),
    "no space": (b"data:a\n\n", [ServerEvent("a")]),
    "only one space is taken": (b"data:  a\n\n", [ServerEvent(" a")]),
    "CRLF": (b"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [ServerEvent("a", "x"), ServerEvent("b")]),
    "CR": (b"data: a\r\rdata: b\r\r", [ServerEvent("a"), ServerEvent("b")]),
    "comments": (b": OPENROUTER PROCESSING\n\n:\ndata: a\n: x\n\n", [ServerEvent("a")]),
    "several lines": (b"data: a\ndata\ndata: b\n\n", [ServerEvent("a\n\nb")]),
    "id stays": (b"id: 1\ndata: a\n\ndata: b\n\n", [ServerEvent("a", "", "1"), ServerEvent("b", "", "1")]),
    "unknown fields": (b"retry: 9\nfoo: bar\ndata: a\n\n", [ServerEvent("a")]),
    "no data, no event": (b"event: x\n\ndata: a\n\n", [ServerEvent("a")]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [ServerEvent("a")]),
    "no empty line at the end": (b"data: a\n\ndata: b", [ServerEvent("a"), ServerEvent("b")]),
    "characters of several bytes": ("data: héé😀\n\n".encode(), [ServerEvent("héé😀")]),
    "other line ends are text": (
        "data: a\u2028b\u0085c\x0bd\n\n".encode(),
        [ServerEvent("a\u2028b\u0085c\x0bd")],
    ),
}


def read(data: bytes, size: int) -> list[ServerEvent]:
    reader = SSEReader()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return [event for piece in pieces for event in reader.feed(piece)] + reader.finish()


@each("name", CASES)
@each("size", [1, 2, 3, 7, 1000])
def test_cases(name: str, size: int) -> None:
    data, events = CASES[name]
    assert read(data, size) == events


@given(
    st.lists(st.sampled_from([b"data", b": ", b":", b"\r", b"\n", b"a", b"\xf0", b"event", b"\xef\xbb\xbf"]))
)
def test_cuts_change_nothing(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    whole = read(data, max(len(data), 1))
    assert read(data, 1) == whole
    assert read(data, 3) == whole


def test_json_events() -> None:
    reader = JSONEvents()
    data = b'data: {"a": 1}\n\nevent: ping\ndata: {}\n\ndata:\n\ndata: [DONE]\n\n'
    assert reader.feed(data) == [{"a": 1}, {"type": "ping"}, {"[DONE]": True}]


@pytest.mark.parametrize("data", [b"data: oops\n\n", b"data: [1]\n\n", b"data: 3\n\n", b"data: {\n\n"])
def test_what_is_no_json_object_is_an_error(data: bytes) -> None:
    with pytest.raises(ModelError, match="not a JSON object"):
        JSONEvents().feed(data)


def test_what_came_before_a_broken_event_is_handed_out_first() -> None:
    reader = JSONEvents()
    assert reader.feed(b'data: {"a": 1}\n\ndata: oops\n\ndata: {"a": 2}\n\n') == [{"a": 1}]
    with pytest.raises(ModelError, match="not a JSON object"):
        reader.feed(b"")
    with pytest.raises(ModelError, match="not a JSON object"):
        reader.finish()


def test_an_error_event_in_plain_words() -> None:
    assert JSONEvents().feed(b"event: error\ndata: out of memory\n\n") == [
        {"type": "error", "error": "out of memory"}
    ]


@pytest.mark.slow
def test_one_long_line_in_small_pieces_is_linear() -> None:
    def reading(size: int) -> Callable[[], object]:
        data = b"data: " + b"x" * size + b"\n\n"
        return lambda: read(data, 16)

    assert growth(reading, 50_000, 400_000, 40) < 40
