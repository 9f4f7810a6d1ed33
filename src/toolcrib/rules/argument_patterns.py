"""Conditions of a rule on the arguments of a call: a pattern, a value, or the same for members of an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.json_text.values import same_json
from toolcrib.rules.name_patterns import name_matches
from toolcrib.toolbox.policy import PolicyRequest

__all__ = ["arguments_match"]

_ABSENT = object()


def arguments_match(wanted: Mapping[str, Any], request: PolicyRequest, any_item: bool) -> bool:
    """Whether every named argument is as wanted. An argument that is left out is its default.

    Of a list, `any_item` is enough; else all items must match. With `any_item` an argument may also match in the form
    in which the tool is handed it.
    """
    given = request.arguments
    if not isinstance(given, dict):
        return False
    for name, value in wanted.items():
        written = given[name] if name in given else _default(request, name)
        if _matches(value, written, any_item):
            continue
        handed = _as_handed(request, name) if any_item else written
        if (type(handed) is str and handed == written) or not _matches(value, handed, any_item):
            return False
    return True


def _matches(wanted: Any, value: Any, any_item: bool) -> bool:
    if isinstance(wanted, str) and isinstance(value, str):
        return name_matches(wanted, value)
    if isinstance(wanted, Mapping) and wanted and isinstance(value, Mapping):
        return all(name in value and _matches(inner, value[name], any_item) for name, inner in wanted.items())
    if isinstance(value, list) and not isinstance(wanted, list):
        return bool(value) and (any if any_item else all)(_matches(wanted, item, any_item) for item in value)
    return same_json(value, wanted)


def _default(request: PolicyRequest, name: str) -> Any:
    """The value of an argument that was left out, as the tool's schema says."""
    if request.prepared is None:
        return _ABSENT
    return (
        request.prepared.tool.definition.params.schema.get("properties", {})
        .get(name, {})
        .get("default", _ABSENT)
    )


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
