"""Conditions of a rule on the arguments of a call: a pattern, a value, or the same for members of an object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from toolcrib.json_text.values import DECIMAL_TEXT, has_decimal_text, same_json
from toolcrib.rules.name_patterns import name_matches
from toolcrib.toolbox.policy import PolicyRequest

__all__ = ["arguments_match"]

NUMBER = re.compile(DECIMAL_TEXT)
_ABSENT = object()


def arguments_match(wanted: Mapping[str, Any], request: PolicyRequest, any_item: bool) -> bool:
    """Whether every named argument is as wanted. An argument that is left out is its default.

    All items of a list must match. With `any_item`, one item is enough, and an argument may also match in the form that
    the tool receives, or as a decimal number with more or fewer zeros.
    """
    given = request.arguments
    if not isinstance(given, dict):
        return False
    decimals = any_item and _wants_number(wanted) and has_decimal_text(request.params_schema)
    for name, value in wanted.items():
        written = given[name] if name in given else _default(request, name)
        if _matches(value, written, any_item, decimals):
            continue
        handed = _as_handed(request, name) if any_item else written
        if (type(handed) is str and handed == written) or not _matches(value, handed, any_item, decimals):
            return False
    return True


def _matches(wanted: Any, value: Any, any_item: bool, decimals: bool) -> bool:
    if decimals and isinstance(value, str) and _same_number(wanted, value):
        return True
    if isinstance(wanted, str) and isinstance(value, str):
        return name_matches(wanted, value)
    if isinstance(wanted, Mapping) and wanted and isinstance(value, Mapping):
        return all(
            name in value and _matches(inner, value[name], any_item, decimals)
            for name, inner in wanted.items()
        )
    if isinstance(value, list) and not isinstance(wanted, list):
        matching = (_matches(wanted, item, any_item, decimals) for item in value)
        return bool(value) and (any if any_item else all)(matching)
    return same_json(value, wanted)


def _wants_number(wanted: Any) -> bool:
    """Whether a condition names a number, also as text or within a table."""
    if isinstance(wanted, Mapping):
        return any(map(_wants_number, wanted.values()))
    return not isinstance(wanted, bool) and NUMBER.search(str(wanted)) is not None


def _same_number(wanted: Any, text: str) -> bool:
    """Whether a text is the wanted number, however it is written: "1.50" is 1.5."""
    if isinstance(wanted, Mapping) or not _wants_number(wanted) or NUMBER.search(text) is None:
        return False
    return Decimal(str(wanted)) == Decimal(text)


def _default(request: PolicyRequest, name: str) -> Any:
    """The value of an argument that was left out, as the tool's schema says."""
    declared = request.params_schema.get("properties", {}).get(name)
    return declared.get("default", _ABSENT) if isinstance(declared, Mapping) else _ABSENT


def _as_handed(request: PolicyRequest, name: str) -> Any:
    """An argument as JSON in the form that the tool receives: a UUID written without dashes has its dashes."""
    params = request.prepared.params if request.prepared is not None else None
    value = params.get(name, _ABSENT) if isinstance(params, Mapping) else getattr(params, name, _ABSENT)
    if value is _ABSENT or isinstance(value, str | int | float | None):
        return value
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, by_alias=True)
    except PydanticSerializationError:
        return _ABSENT
