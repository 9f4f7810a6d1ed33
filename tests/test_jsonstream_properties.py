"""The incremental JSON parser, against the strict parser of the standard library: any value, any cut."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.jsonstream import JsonEvent, JsonPath, JsonStream, JsonStreamError

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
spelled = st.builds(
    lambda value, ascii_only, indent: json.dumps(value, ensure_ascii=ascii_only, indent=indent),
    values,
    st.booleans(),
    st.sampled_from([None, 1]),
)
cuts = st.lists(st.integers(min_value=1, max_value=30), min_size=1, max_size=20)
# What JSON is made of, so that garbage comes close to it.
halves = ["\\u", "\\ud83d", "\\ude00", "d83d", "\ud83d", "\ude00"]
fragments = st.sampled_from([*'{}[]:,"\\ \n-+.eE019tfnué😀\0', "true", "null", '"a"', '":', *halves])
garbage = st.lists(fragments, max_size=40).map("".join)


def pieces(text: Any, sizes: list[int]) -> list[Any]:
    """The text cut into pieces of these sizes, over and over."""
    found: list[Any] = []
    at = 0
    while at < len(text):
        size = sizes[len(found) % len(sizes)]
        found.append(text[at : at + size])
        at += size
    return found


def read(stream: JsonStream, chunks: list[Any]) -> tuple[list[JsonEvent], JsonStreamError | None]:
    events: list[JsonEvent] = []
    try:
        for chunk in chunks:
            events += stream.feed(chunk)
        events += stream.close()
    except JsonStreamError as error:
        return events, error
    return events, None


def same(one: Any, other: Any) -> bool:
    """Equal, and 1 is not 1.0 nor True."""
    return repr(one) == repr(other)


@given(spelled, cuts, st.booleans())
def test_the_finished_value_is_that_of_json(text: str, sizes: list[int], as_bytes: bool) -> None:
    stream = JsonStream()
    _, error = read(stream, pieces(text.encode() if as_bytes else text, sizes))
    assert error is None
    assert stream.complete
    assert not stream.warnings
    assert same(stream.value, json.loads(text))


def grew(before: Any, after: Any, open_ended: bool = True) -> bool:
    """Whether ``after`` is ``before`` with more at its end; only the last of a container may still grow."""
    if type(before) is not type(after):
        return False
    if isinstance(before, str):
        return after.startswith(before) if open_ended else after == before
    if isinstance(before, dict):
        if list(after)[: len(before)] != list(before) or (len(after) > len(before) and not open_ended):
            return False
        before, after = list(before.values()), list(after.values())
    if isinstance(before, list):
        return (
            (open_ended or len(before) == len(after))
            and len(before) <= len(after)
            and all(same(a, b) for a, b in zip(before[:-1], after, strict=False))
            and all(
                grew(a, b, open_ended) for a, b in zip(before[-1:], after[len(before) - 1 :], strict=False)
            )
        )
    return same(before, after)


@given(spelled, cuts)
def test_the_live_value_only_grows(text: str, sizes: list[int]) -> None:
    stream = JsonStream()
    seen: list[Any] = []
    for chunk in pieces(text, sizes):
        stream.feed(chunk)
        if stream.has_value:
            seen.append(json.loads(json.dumps(stream.value)))
    stream.close()
    seen.append(stream.value)
    for before, after in pairwise(seen):
        assert grew(before, after), (before, after)


def at_path(whole: Any, path: JsonPath) -> Any:
    for step in path:
        whole = whole[step]
    return whole


@given(spelled, cuts)
def test_events_tell_the_whole_value(text: str, sizes: list[int]) -> None:
    whole = json.loads(text)
    events, _ = read(JsonStream(), pieces(text, sizes))
    grown: dict[JsonPath, str] = defaultdict(str)
    kinds = {dict: "object", list: "array", str: "string"}
    opened: set[JsonPath] = set()
    finished: list[JsonPath] = []
    for kind, path, value in events:
        if kind == "open":
            assert value == kinds[type(at_path(whole, path))]
            opened.add(path)
        elif kind == "delta":
            assert value and path in opened and path not in finished
            grown[path] += value
        else:
            assert same(value, at_path(whole, path))
            assert (path in opened) == (type(value) in kinds)
            assert not isinstance(value, str) or grown[path] == value
            finished.append(path)
    assert finished[-1] == ()
    assert len(set(finished)) == len(finished) == count(whole)


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@given(spelled | garbage, cuts, cuts)
def test_cuts_change_nothing(text: str, one: list[int], other: list[int]) -> None:
    outcomes: list[str] = []
    for sizes in (one, other):
        stream = JsonStream()
        events, error = read(stream, pieces(text, sizes))
        settled = [event for event in events if event.kind != "delta"] if error is None else None
        outcomes.append(repr((stream.value, stream.complete, stream.warnings, str(error), settled)))
    assert outcomes[0] == outcomes[1]


@given(garbage, cuts)
def test_accepts_what_json_accepts(text: str, sizes: list[int]) -> None:
    try:
        expected = json.loads(text, parse_constant=lambda name: json.loads(""))
    except ValueError:
        expected = None
        accepted = False
    else:
        accepted = True
    stream = JsonStream()
    _, error = read(stream, pieces(text, sizes))
    assert (error is None) == accepted or "too great" in str(error)
    if error is None and not stream.warnings and not any("\ud800" <= c <= "\udfff" for c in text):
        assert same(stream.value, expected)


@given(spelled, cuts)
def test_the_value_before_an_error_is_the_value_of_the_good_part(text: str, sizes: list[int]) -> None:
    broken = text + " }"
    stream = JsonStream()
    _, error = read(stream, pieces(broken, sizes))
    assert error is not None and error.position == len(text) + 1
    assert stream.complete
    assert same(stream.value, json.loads(text))


@given(st.binary(max_size=60) | garbage.map(lambda text: text.encode("utf-8", "surrogatepass")), cuts)
def test_bytes_that_are_garbage_are_refused_alike_however_cut(text: bytes, sizes: list[int]) -> None:
    whole, cut = JsonStream(), JsonStream()
    _, one = read(whole, [text])
    _, other = read(cut, pieces(text, sizes))
    assert str(one) == str(other)
    assert repr(whole.value) == repr(cut.value)


@given(st.sampled_from(["[", '{"a":', '[{"a":[', "[1,["]), st.integers(min_value=1, max_value=3000), cuts)
def test_depth_never_ends_in_a_recursion_error(opening: str, times: int, sizes: list[int]) -> None:
    _, error = read(JsonStream(), pieces(opening * times, sizes))
    assert isinstance(error, JsonStreamError)
