"""JSON values as plain data: their type, their equality, and steps of a JSON pointer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (str, "string"),
    (bool, "boolean"),  # before int, which it is in Python
    (int, "integer"),
    (float, "number"),
    (Mapping, "object"),
    (list, "array"),
    (type(None), "null"),
)

DECIMAL_TEXT: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
"""The pattern of a decimal number as text: a number as JSON writes it."""

_OF_TIME = r"T([0-9]+H([0-9]+M)?([0-9]+(\.[0-9]+)?S)?|[0-9]+M([0-9]+(\.[0-9]+)?S)?|[0-9]+(\.[0-9]+)?S)"
DURATION_TEXT: Final = rf"^P([0-9]+W|[0-9]+D({_OF_TIME})?|{_OF_TIME})$"
"""The pattern of a duration as text (ISO 8601), without years and months, whose lengths differ."""


def has_decimal_text(schema: object) -> bool:
    """Whether a schema has a place for a decimal number as text, whose digits all count."""
    return repr(DECIMAL_TEXT) in repr(schema)


def kind_of(value: object) -> str:
    """The JSON type of a Python value ("integer" apart from "number"); "value" for what is not JSON."""
    return next((kind for known, kind in _KINDS if isinstance(value, known)), "value")


def same_json(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 equals 1.0, but not true."""
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def escape(name: str) -> str:
    """A name escaped as one token of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def step_into(place: Any, token: str) -> Any:
    """The member of an object or array at one token of a JSON pointer; raises LookupError without one."""
    name = token.replace("~1", "/").replace("~0", "~")
    if isinstance(place, Mapping):
        return place[name]
    if isinstance(place, list) and name.isdecimal() and len(name) < 10:
        return place[int(name)]
    raise LookupError(token)
