"""Pydantic's errors as failures in the words of a JSON Schema: no name of a Python type reaches a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from pydantic_core import ErrorDetails, core_schema

from toolcrib.compiling.unsaid import KEY_WORDS, limit_text
from toolcrib.field_errors import Failure
from toolcrib.visible import counted

__all__ = ["failure"]

DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d")
MAX_RULE = 300  # characters of what a custom validator says
KEY = "[key]"  # how Pydantic marks the key of a map in the path of an error

KINDS: Final[Mapping[str, str]] = {
    "missing": "missing",
    "extra_forbidden": "extra",
    "unexpected_keyword_argument": "extra",
    "union_tag_invalid": "tag",
    "union_tag_not_found": "tag",
    "value_error": "rule",
    "assertion_error": "rule",
}
ITEMS: Final = {"List": "item", "Set": "item", "Frozenset": "item", "Tuple": "item", "Dictionary": "key"}
NO_TYPE: Final = ("_parsing", "_parsing_size", "_invalid")  # of the right JSON type, but unreadable


def _bound(number: str, moment: str) -> Callable[[Any], str]:
    def say(limit: Any) -> str:
        text = limit_text(limit)
        return f"{moment if DATE.match(text) else number} {text}"

    return say


# What a limit says, with the value of its context that the words need. The schema has no keyword for most of them.
WORDS: Final[Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    "greater_than": ("gt", _bound("greater than", "after")),
    "greater_than_equal": ("ge", _bound("at least", "not before")),
    "less_than": ("lt", _bound("less than", "before")),
    "less_than_equal": ("le", _bound("at most", "not after")),
    "multiple_of": ("multiple_of", lambda n: f"a multiple of {n}"),
    "decimal_max_digits": ("max_digits", lambda n: f"at most {counted(n, 'digit')} in total"),
    "decimal_max_places": (
        "decimal_places",
        lambda n: f"at most {counted(n, 'digit')} after the decimal point",
    ),
    "decimal_whole_digits": (
        "whole_digits",
        lambda n: f"at most {counted(n, 'digit')} before the decimal point",
    ),
    "decimal_parsing": ("", lambda _: 'a number, which may be written as text such as "12.50"'),
    "finite_number": ("", lambda _: "a finite number"),
    "date_past": ("", lambda _: "in the past"),
    "date_future": ("", lambda _: "in the future"),
    "datetime_past": ("", lambda _: "in the past"),
    "datetime_future": ("", lambda _: "in the future"),
    "timezone_naive": ("", lambda _: "without an offset from UTC"),
    "timezone_aware": ("", lambda _: 'with an offset from UTC, such as "Z" or "+02:00"'),
    "timezone_offset": ("tz_expected", lambda n: f"with an offset of {counted(n, 'second')} from UTC"),
    "string_not_ascii": ("", lambda _: "ASCII characters only"),
    "string_unicode": ("", lambda _: "whole characters"),
    "bytes_too_short": ("min_length", lambda n: f"at least {counted(n, 'byte')}"),
    "bytes_too_long": ("max_length", lambda n: f"at most {counted(n, 'byte')}"),
    "bytes_invalid_encoding": ("encoding", lambda name: f"written in {name}"),
    "too_short": ("min_length", lambda n: f"at least {counted(n, 'item')}"),
    "too_long": ("max_length", lambda n: f"at most {counted(n, 'item')}"),
    "string_too_short": ("min_length", lambda n: f"at least {counted(n, 'character')}"),
    "string_too_long": ("max_length", lambda n: f"at most {counted(n, 'character')}"),
    "string_pattern_mismatch": ("pattern", lambda text: f"matches {text}"),
    "set_item_not_hashable": ("", lambda _: "items that are no lists and no objects"),
    "int_parsing_size": ("", lambda _: "an integer of fewer digits"),
    "json_invalid": ("", lambda _: "valid JSON as text"),
    "url_scheme": ("expected_schemes", lambda names: f"that begins with {_schemes(names)}"),
    "url_too_long": ("max_length", lambda n: f"at most {counted(n, 'character')}"),
    "uuid_version": ("expected_version", lambda n: f"of version {n}"),
    "date_parsing": ("error", str),
    "date_from_datetime_parsing": ("error", str),
    "date_from_datetime_inexact": ("", lambda _: "without a time"),
    "datetime_parsing": ("error", str),
    "datetime_from_date_parsing": ("error", str),
    "datetime_object_invalid": ("error", str),
    "time_parsing": ("error", str),
    "time_delta_parsing": ("error", str),
    "complex_type": ("", lambda _: 'a complex number such as "1+2j"'),
    "complex_str_parsing": ("", lambda _: 'a complex number such as "1+2j"'),
    "fraction_type": ("", lambda _: 'a fraction such as "3/4"'),
    "fraction_parsing": ("", lambda _: 'a fraction such as "3/4"'),
}
# The words of these say what was wrong, not what is expected.
REASONS: Final = frozenset(kind for kind, (key, _) in WORDS.items() if key == "error")
BUILT_IN: Final = frozenset(get_args(core_schema.ErrorType))


def failure(error: ErrorDetails) -> Failure:
    """One error of Pydantic as a failure."""
    path, kind, context = error["loc"], error["type"], error.get("ctx", {})
    known = KINDS.get(kind)
    if known == "rule" or kind not in BUILT_IN:
        said = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        return Failure(_without_key(path), "rule", " ".join(said.split())[:MAX_RULE] or "a valid value")
    if known == "tag":
        return Failure(path, "tag", str(context.get("discriminator", "")))
    key, say = WORDS.get(kind, ("", None))
    words = say(context.get(key)) if say is not None else ""
    if kind in REASONS and words:
        words = f"({words})"
    if path and path[-1] == KEY:
        return Failure(path[:-1], "key", words or KEY_WORDS.get(kind.partition("_")[0], "valid"))
    if "field_type" in context:
        words = words.replace("item", ITEMS.get(context["field_type"], "character"))
    limit = kind in WORDS and not kind.endswith(NO_TYPE)
    return Failure(path, known or ("limit" if limit else "type"), words)


def _without_key(path: tuple[int | str, ...]) -> tuple[int | str, ...]:
    return path[:-2] if path and path[-1] == KEY else path


def _schemes(names: str) -> str:
    return " or ".join(f"{name}://" for name in names.split("'")[1::2]) or names
