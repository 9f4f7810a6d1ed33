"""Reads JSON as models write it, if the text has exactly one reading.

Strict JSON is read as it stands. Other text is read only if nothing has to be invented, dropped or guessed: a
missing end, an unescaped quote, an elided item or two different values have no single reading and raise
`Unreadable`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from toolcrib.dataclass import dataclass, replace
from toolcrib.json_text.lenient_grammar import (
    EXCERPT,
    TOO_DEEP,
    Fix,
    Notes,
    Reader,
    ReadNumber,
    Unreadable,
    check_json,
    exact_number,
    written_number,
)
from toolcrib.json_text.values import same_json

_REASONING = "think|thinking|thought|reasoning|analysis|reflection"
_REASONING_BLOCK = re.compile(rf"\s*<({_REASONING})>.*?</\1>", re.DOTALL)
_REASONING_TAG = re.compile(rf"<(?:{_REASONING})>")
_OPENER = re.compile(r"[{\[]")
_PLACEHOLDER = re.compile(r"\{[A-Za-z_][\w .-]{0,40}\}|\[/?[A-Za-z_][\w .-]{0,40}\]")
_OVER_ESCAPED = re.compile(r'\s*[{\[](?:[{\[\s]|\\[nrt])*\\"')
_AROUND = (
    ("special_token", re.compile(r"<[|｜][^<>\n]{1,60}[|｜]>|</?[A-Za-z_][\w.:▁-]{0,40}>")),
    ("code_fence", re.compile(r"`+[\w+-]{0,20}|~~~\w{0,20}")),
    ("byte_order_mark", re.compile("\ufeff")),
    ("escaped_whitespace", re.compile(r"\\[nrt](?!\w)")),
)
_JOINS = (",", "，", "+")
_LISTING = frozenset(",，;+")
_MORE_JSON = re.compile(r"""["'”]\s*[:：]|[{}\[\]]|</?[A-Za-z]""")


PlaceNumbers = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """The one value of a text, the fixes that reading it took, and the words around it."""

    value: Any
    fixes: tuple[Fix, ...] = ()
    around: str = ""


def read_json(text: str, place_numbers: PlaceNumbers | None = None) -> Reading:
    """Reads the one JSON value in `text`: any strict JSON, or one object or array written leniently.

    Raises `Unreadable`, for strict JSON too where it holds duplicate keys with different values, numbers
    that are not finite or lose digits, lone surrogates, or more than `MAX_DEPTH` levels. Linear in the text.

    `place_numbers` is given the value while each number that Python writes differently still has its text,
    and gives the value with each `WrittenNumber` replaced.
    """
    number = exact_number if place_numbers is None else written_number
    try:
        reading = _read_strict(text, number)
        if reading is None:
            reading = _read_lenient(text, number)
        if place_numbers is not None:
            reading = replace(reading, value=place_numbers(reading.value))
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    check_json(reading.value)
    return reading


def read_strict_json(text: str) -> Any:
    """The value of strict JSON. Raises ValueError for any other text, and where a reader would lose something."""
    try:
        reading = _read_strict(text, exact_number)
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    if reading is None or reading.fixes:
        raise Unreadable("The text is not JSON.")
    check_json(reading.value)
    return reading.value


def reading_loses_nothing(text: str, *, written_digits: bool = False) -> bool:
    """Whether reading a JSON text loses nothing: no key stands twice, and no number loses a digit.

    With `written_digits`, a number must also be written as Python writes it, because its text may be wanted.
    """

    def members(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            raise Unreadable("a key that stands twice")

    def number(text: str) -> None:
        if repr(float(text)) != text:
            if written_digits:
                raise Unreadable("a number whose text says more")
            exact_number(text)

    try:
        json.loads(text, object_pairs_hook=members, parse_float=number, parse_constant=_not_finite)
    except (ValueError, RecursionError):
        return False
    return True


def _not_finite(text: str) -> Any:
    raise Unreadable(f"{text} is not a JSON number. Send a finite number, or leave the parameter out.")


def _read_strict(text: str, number: ReadNumber) -> Reading | None:
    notes = Notes()

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = dict(pairs)
        if len(found) < len(pairs):
            found = {}
            for key, value in pairs:
                notes.put(found, key, value)
        return found

    try:
        value = json.loads(text, object_pairs_hook=members, parse_float=number, parse_constant=_not_finite)
    except Unreadable:
        raise
    except ValueError:
        return None
    return Reading(value, notes.done())


def _read_lenient(text: str, number: ReadNumber) -> Reading:
    notes = Notes()
    encoded = _decoded_string(text)
    if encoded is not None:
        return Reading(encoded, (Fix("control_character", text[:EXCERPT], ""),))
    if _OVER_ESCAPED.match(text):
        return _read_over_escaped(text, number)
    start = 0
    block = _REASONING_BLOCK.match(text)
    if block:
        start = block.end()
        notes.note("reasoning_block", block.group().strip())
    values, around = _candidates(text, start, notes, number)
    if not values:
        raise Unreadable("The arguments are not JSON. Send one JSON object.")
    if not all(same_json(values[0], other) for other in values[1:]):
        raise Unreadable("The arguments hold several different JSON values. Send one JSON object a call.")
    if len(values) > 1:
        notes.note("repeated_value", text)
    _check_around(around, notes)
    return Reading(values[0], notes.done(), "\n".join(around))


def _decoded_string(text: str) -> str | None:
    """Reads the whole text as one JSON string that contains raw line breaks."""
    if not text.lstrip().startswith('"'):
        return None
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        return None


def _read_over_escaped(text: str, number: ReadNumber) -> Reading:
    """An object that was written as if it stood inside a string: `{\\"a\\": 1}`, all of it alike."""
    try:
        inner = str(json.loads(f'"{text.strip()}"', strict=False))
    except ValueError:
        raise Unreadable("The arguments mix escaped and unescaped quotes. Send one JSON object.") from None
    reading = _read_strict(inner, number)
    if reading is None:
        if _OVER_ESCAPED.match(inner):
            raise Unreadable("The arguments are escaped more than once. Send one JSON object.")
        reading = _read_lenient(inner, number)
    fix = Fix("over_escaped", text[:EXCERPT], inner[:EXCERPT])
    return Reading(reading.value, (fix, *reading.fixes), reading.around)


def _candidates(text: str, start: int, notes: Notes, number: ReadNumber) -> tuple[list[Any], list[str]]:
    """The outermost objects and arrays, and the words before, between and after them."""
    values: list[Any] = []
    around: list[str] = []
    last = position = start
    while opener := _OPENER.search(text, position):
        reader = Reader(text, Notes(), number)
        try:
            value, position = reader.value(opener.start(), 0)
        except Unreadable:
            # {name} and [INFO] are words; anything else that fails may be the payload, whose inner
            # values must not be taken for it.
            placeholder = _PLACEHOLDER.match(text, opener.start())
            if not placeholder:
                raise
            position = placeholder.end()
            continue
        around.append(text[last : opener.start()])
        last = position
        values.append(value)
        notes.merge(reader.notes)
    return values, [*around, text[last:]]


def _check_around(around: list[str], notes: Notes) -> None:
    """Refuses words around the value that may be more of the arguments."""
    if _REASONING_TAG.search(around[0]):
        raise Unreadable("The arguments stand in a reasoning block. Send one JSON object alone.")
    words = around
    for kind, pattern in _AROUND:
        for part in words:
            found = pattern.search(part)
            if found:
                notes.note(kind, found.group())
        words = [pattern.sub("", part) for part in words]
    left = "".join(words).strip(" \t\r\n")
    words = [_PLACEHOLDER.sub("", part).strip() for part in words]
    if words[-1] and not words[-1].strip("}] \t\r\n") and not words[0]:
        notes.note("extra_closer", words[-1])
        left = left[: -len(words[-1])]
        words[-1] = ""
    head, *gaps, tail = words
    parted = (
        head.endswith(_JOINS)
        or tail.startswith((*_JOINS, ":", "："))
        or any(set(gap) & _LISTING for gap in gaps)
    )
    if parted or any(map(_MORE_JSON.search, words)):
        raise Unreadable("Parts of the arguments stand outside of the JSON object. Send one JSON object.")
    if left.count('"') % 2:
        raise Unreadable("A quote stands outside of the JSON object. Send one JSON object.")
    if left:
        notes.note("prose" if left.strip() else "unusual_space", left)
