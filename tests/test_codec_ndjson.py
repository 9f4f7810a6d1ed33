"""JSON objects, one a line, from bytes that were cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.codecs import ModelError
from toolcrib.codecs.ndjson import JSONLines

LINES = {
    "two lines": (b'{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
    "no line break at the end": (b'{"a":1}', [{"a": 1}]),
    "blank lines and a byte order mark": (b'\xef\xbb\xbf\r\n{"a":1}\r\n\n', [{"a": 1}]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", LINES)
def test_lines(name: str) -> None:
    data, expected = LINES[name]
    for step in (1, 3, 100):
        reader = JSONLines()
        pieces = [reader.feed(data[start : start + step]) for start in range(0, len(data), step)]
        assert [item for piece in [*pieces, reader.finish()] for item in piece] == expected


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_lines_of_anything_are_objects_or_our_error(pieces: list[bytes]) -> None:
    reader = JSONLines()
    try:
        found = [item for piece in pieces for item in reader.feed(piece)] + reader.finish()
    except ModelError:
        return
    assert all(isinstance(item, dict) for item in found)


@pytest.mark.parametrize("data", [b"[1]\n", b"{'a'}\n", b"data: {}\n", b"[" * 100_000, b'{"a": \xff}'])
def test_a_line_that_is_no_object(data: bytes) -> None:
    reader = JSONLines()
    with pytest.raises(ModelError, match="not a JSON object"):
        _ = [*reader.feed(data), *reader.finish()]


def test_what_came_before_a_broken_line_is_handed_out_first() -> None:
    reader = JSONLines()
    assert reader.feed(b'{"a": 1}\noops\n{"a": 2}\n') == [{"a": 1}]
    with pytest.raises(ModelError, match="not a JSON object"):
        reader.finish()
