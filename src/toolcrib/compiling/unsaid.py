"""What Pydantic checks and JSON Schema has no keyword for, as sentences for the description of a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from pydantic_core import to_jsonable_python

from toolcrib.visible import counted

__all__ = ["KEY_WORDS", "RULES", "UNSAID", "limit_text", "tell", "unsaid"]

UNSAID = "x-unsaid"  # the key under which the sentences stand until the descriptions are known

BOUNDS: Final = {
    "gt": ("More than", "After"),
    "ge": ("At least", "Not before"),
    "lt": ("Less than", "Before"),
    "le": ("At most", "Not after"),
}
# Keys of a map that are no texts in Python, and of which a JSON Schema therefore says nothing.
KEY_WORDS: Final[Mapping[str, str]] = {
    "int": 'an integer such as "3"',
    "float": 'a number such as "1.5", without zeros at its end',
    "decimal": 'a number such as "1.5", without zeros at its end',
    "bool": '"true" or "false"',
    "date": 'a date such as "2024-12-31"',
    "datetime": 'a date and time such as "2024-12-31T23:59:59"',
    "time": 'a time such as "23:59:59"',
    "timedelta": 'a duration such as "PT1H"',
    "uuid": "a UUID",
}
TIMES: Final = frozenset(("date", "datetime", "time"))


def limit_text(limit: Any) -> str:
    """A limit as a model may write it: 5 for 5.0, 2024-12-31, PT1H."""
    if isinstance(limit, timedelta):
        return str(to_jsonable_python(limit))
    if isinstance(limit, float | Decimal) and limit == int(limit):
        return str(int(limit))
    return str(to_jsonable_python(limit))


def unsaid(core: Mapping[str, Any]) -> list[str]:
    """The sentences about one core schema."""
    kind = core["type"]
    said: list[str] = []
    if kind in (*TIMES, "timedelta", "decimal"):
        said += (
            f"{words[kind in TIMES]} {limit_text(core[key])}." for key, words in BOUNDS.items() if key in core
        )
    if kind == "decimal":
        if core.get("multiple_of") is not None:
            said.append(f"A multiple of {core['multiple_of']}.")
        if core.get("max_digits") is not None:
            said.append(f"At most {core['max_digits']} digits in total.")
        if core.get("decimal_places") is not None:
            said.append(f"At most {core['decimal_places']} digits after the decimal point.")
    if "now_op" in core:
        said.append(f"In the {core['now_op']}.")
    if core.get("tz_constraint") == "aware":
        said.append('With an offset from UTC, such as "Z" or "+02:00".')
    elif core.get("tz_constraint") == "naive":
        said.append("Without an offset from UTC.")
    elif isinstance(core.get("tz_constraint"), int):
        said.append(f"With an offset of {counted(core['tz_constraint'], 'second')} from UTC.")
    if core.get("ascii_only"):
        said.append("ASCII characters only.")
    if core.get("allowed_schemes"):
        said.append(f"Begins with {' or '.join(f'{name}://' for name in core['allowed_schemes'])}.")
    if kind == "complex":
        said.append('A complex number such as "1+2j".')
    of_keys = core.get("keys_schema", {}) if kind == "dict" else {}
    keys = str(of_keys.get("metadata", {}).get("key_type", of_keys.get("type")))
    if keys in KEY_WORDS:
        said.append(f"Each key is {KEY_WORDS[keys]}.")
    return said


RULES: Final = frozenset(
    (*TIMES, "timedelta", "decimal", "str", "url", "multi-host-url", "complex", "dict")
)  # the core schemas that `unsaid` knows


def tell(schema: Any) -> Any:
    """A raw JSON Schema with the sentences in its descriptions."""
    from toolcrib.schema.words import with_sentences

    if isinstance(schema, list):
        return [tell(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    new = {key: tell(item) for key, item in schema.items()}
    said = new.pop(UNSAID, None)
    if isinstance(said, list):
        new["description"] = with_sentences(str(new.get("description", "")), said)
    return new
