"""The incremental JSON parser against the suites and the recorded cases of others."""

from __future__ import annotations

import base64
import json
import random
import re
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib.jsonstream import JsonStream, JsonStreamError

NOTHING = "(nothing)"


def _text(case: dict[str, Any]) -> bytes:
    return base64.b64decode(case["b64"]) if case["b64"] is not None else case["repeat"].encode() * case["n"]


def _outcome(chunks: list[bytes]) -> tuple[bool, str, str]:
    stream = JsonStream()
    try:
        for chunk in chunks:
            stream.feed(chunk)
        stream.close()
    except JsonStreamError as error:
        return False, str(error), repr(stream.value)
    return True, "", repr(stream.value)


def _cuts(text: bytes) -> list[list[bytes]]:
    dice = random.Random(len(text))
    found = [[text], [text[at : at + 1] for at in range(len(text))]]
    for longest in (2, 5, 30):
        chunks: list[bytes] = []
        at = 0
        while at < len(text):
            size = dice.randint(1, longest)
            chunks.append(text[at : at + size])
            at += size
        found.append(chunks)
    return found


# Where the suite leaves it open: what starts like this is refused, the rest is taken.
REFUSED_WHERE_OPEN = {
    "i_number_huge_exp": "infinity is no JSON",
    "i_number_neg_int_huge_exp": "infinity is no JSON",
    "i_number_pos_double_huge_exp": "infinity is no JSON",
    "i_number_real_neg_overflow": "infinity is no JSON",
    "i_number_real_pos_overflow": "infinity is no JSON",
    "i_string_UTF-8_invalid_sequence": "bytes are UTF-8",
    "i_string_UTF8_surrogate": "bytes are UTF-8",
    "i_string_invalid_utf-8": "bytes are UTF-8",
    "i_string_iso_latin_1": "bytes are UTF-8",
    "i_string_lone_utf8_continuation_byte": "bytes are UTF-8",
    "i_string_not_in_unicode_range": "bytes are UTF-8",
    "i_string_overlong_sequence": "bytes are UTF-8",
    "i_string_truncated-utf-8": "bytes are UTF-8",
    "i_string_UTF-16": "bytes are UTF-8",
    "i_string_utf16": "bytes are UTF-8",
    "i_structure_500_nested_arrays": "deeper than Pydantic would validate",
    "i_structure_UTF-8_BOM": "RFC 8259 section 8.1 forbids to add one; no provider sends it inside a stream",
}


@each("case", load_cases("corpora/json-test-suite/parsing.jsonl"), ids=lambda case: case["name"])
def test_json_test_suite(case: dict[str, Any]) -> None:
    text = _text(case)
    outcomes = {_outcome(chunks) for chunks in _cuts(text)}
    assert len(outcomes) == 1, "depends on where the text is cut"
    accepted, _, value = outcomes.pop()
    if case["expect"] == "i":
        assert accepted is not case["name"].startswith(tuple(REFUSED_WHERE_OPEN))
    else:
        assert accepted is (case["expect"] == "y")
    if accepted:
        assert value == repr(_mended(json.loads(text)))


def _mended(value: Any) -> Any:
    """The value with U+FFFD for half a surrogate pair, which is the one thing that we read otherwise."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize(
    "case", load_cases("cases/partial-json/stream_vectors.json"), ids=lambda case: case["name"]
)
def test_what_is_shown_after_each_character(case: dict[str, Any]) -> None:
    stream = JsonStream()
    events: list[list[Any]] = []
    steps: list[list[Any]] = []
    for count, character in enumerate(case["input"], 1):
        events += [
            ["start" if kind == "open" else kind, list(path), value]
            for kind, path, value in stream.feed(character)
        ]
        steps.append(json.loads(json.dumps([count, stream.value, stream.has_value, stream.complete])))
    events += [[kind, list(path), value] for kind, path, value in stream.close()]
    assert steps == case["steps"]
    assert events == case["events_1char"]
    assert stream.value == case["final"]
    assert stream.warnings == case["warnings"]


@pytest.mark.parametrize(
    "case", load_cases("cases/partial-json/bad_vectors.json"), ids=lambda case: case["name"]
)
def test_where_it_is_refused(case: dict[str, Any]) -> None:
    stream = JsonStream()
    taken = 0
    with pytest.raises(JsonStreamError) as refusal:
        for character in case["input"]:
            stream.feed(character)
            taken += 1
        stream.close()
    assert taken == case["error_after_chars"]
    assert refusal.value.position == taken
    assert stream.value == case["value_before_error"]


@pytest.mark.parametrize("case", load_cases("cases/beyond/partial_json.json"), ids=lambda case: case["name"])
def test_what_is_shown_after_each_chunk(case: dict[str, Any]) -> None:
    stream = JsonStream()
    for chunk, expected in zip(case["input"]["chunks"], case["expected"]["after_each_chunk"], strict=True):
        stream.feed(chunk)
        assert (stream.value if stream.has_value else {}) == expected


# Others close what is open, and so show what the next character may take back. Where a text stops inside one
# of these, we show the same without it.
NOT_SHOWN_UNFINISHED = {
    "a number may go on: it is shown when something follows it": r"-?[0-9][-+.eE0-9]*|-",
    "a literal is shown when its last letter came": r"t|tr|tru|f|fa|fal|fals|n|nu|nul",
}
UNFINISHED = re.compile(rf"(?:^|[\[:,\s])(?:{'|'.join(NOT_SHOWN_UNFINISHED.values())})$")


def _stops_inside_a_scalar(text: str) -> bool:
    outside_strings = re.sub(r"\\.", "", text).count('"') % 2 == 0
    return outside_strings and UNFINISHED.search(text) is not None


def _without_last_scalar(value: Any) -> Any:
    if isinstance(value, dict) and value:
        *others, (key, last) = value.items()
        kept = _without_last_scalar(last)
        return dict(others) if kept is NOTHING else {**dict(others), key: kept}
    if isinstance(value, list) and value:
        kept = _without_last_scalar(value[-1])
        return value[:-1] if kept is NOTHING else [*value[:-1], kept]
    return NOTHING


def _shown(text: str) -> Any:
    stream = JsonStream()
    stream.feed(text)
    return stream.value if stream.has_value else NOTHING


@pytest.mark.parametrize(
    "case", load_cases("cases/partial-json/vercel_fix_json.json"), ids=lambda case: case["name"]
)
def test_closed_texts(case: dict[str, Any]) -> None:
    expected = json.loads(case["expected_text"]) if case["expected_text"] else NOTHING
    if expected is not NOTHING and _stops_inside_a_scalar(case["input"]):
        expected = _without_last_scalar(expected)
    assert _shown(case["input"]) == expected


@pytest.mark.parametrize(
    "case", load_cases("cases/partial-json/langchain_partial.json"), ids=lambda case: case["name"]
)
def test_partial_values(case: dict[str, Any]) -> None:
    expected = case["expected"]
    if _stops_inside_a_scalar(case["input"]):
        expected = _without_last_scalar(expected)
    assert _shown(case["input"]) == expected
