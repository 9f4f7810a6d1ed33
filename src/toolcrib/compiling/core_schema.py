"""Pydantic's core schemas, made strict: what the arguments of a call are validated with."""

from __future__ import annotations

import re
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator, core_schema, to_json

__all__ = ["core_schema_of", "has_reference", "has_type", "strict"]

EXTRA_BEHAVIOUR = {"model-fields", "typed-dict", "dataclass-args"}
FIELDS = {"model-field", "typed-dict-field", "dataclass-field"}
DATES = {"date": re.compile(r"\d{4}-\d\d-\d\d"), "datetime": re.compile(r"\d{4}-\d\d-\d\d[Tt _]\d.*")}
DATE_FORMS = {"date": "2024-12-31", "datetime": "2024-12-31T23:59:59"}
# Keys of a core schema that hold data or objects, never schemas.
NOT_SCHEMA = {
    "cls",
    "config",
    "default",
    "default_factory",
    "expected",
    "function",
    "metadata",
    "serialization",
}


def core_schema_of(hint: Any) -> Any:
    """Pydantic's core schema of a type; an exception of Pydantic's where there is none."""
    adapter: Any = TypeAdapter(hint)
    if not isinstance(adapter.core_schema, dict):  # a name in it could not be resolved yet
        adapter.rebuild(force=True)
    return adapter.core_schema


def has_type(core: Any, kind: str) -> bool:
    """Whether a core schema has a part of this type."""
    if isinstance(core, dict):
        return core.get("type") == kind or any(
            has_type(item, kind) for key, item in core.items() if key not in NOT_SCHEMA
        )
    return isinstance(core, list | tuple) and any(has_type(item, kind) for item in core)


def has_reference(core: Any) -> bool:
    """Whether a core schema has definitions that other parts of it refer to."""
    if isinstance(core, dict):
        return "ref" in core or "definitions" in core or any(has_reference(item) for item in core.values())
    return isinstance(core, list | tuple) and any(has_reference(item) for item in core)


def strict(core: Any) -> Any:
    """A core schema that drops nothing unknown, lets `X | None` be left out, and takes only finite numbers.

    What a type says itself (`extra="allow"`, a default, `allow_inf_nan=True`) stays as it says.
    """
    if isinstance(core, list):
        return [strict(item) for item in core]
    if isinstance(core, tuple):  # tagged choices are (schema, label)
        return tuple(strict(item) for item in core)
    if not isinstance(core, dict):
        return core
    new = {key: value if key in NOT_SCHEMA else strict(value) for key, value in core.items()}
    kind = new.get("type")
    if kind in EXTRA_BEHAVIOUR:
        # Pydantic writes "ignore" for what a TypedDict leaves open; only its config says what it meant.
        undecided = new.get("extra_behavior", "ignore") == "ignore"
        if undecided and "extra_fields_behavior" not in (new.get("config") or {}):
            new["extra_behavior"] = "forbid"
    elif kind in ("model", "dataclass"):
        behaviour = (new.get("config") or {}).get("extra_fields_behavior")
        if behaviour:
            new["schema"] = _with_extras(new.get("schema"), behaviour)
    elif kind in FIELDS:
        inner = new.get("schema")
        if isinstance(inner, dict) and inner.get("type") == "nullable":
            if kind == "typed-dict-field" and not new.get("required"):
                return new  # a key that may be missing stays missing
            new["schema"] = {"type": "default", "schema": inner, "default": None}
            if kind == "typed-dict-field":
                new["required"] = False
    elif kind in DATES:
        return _written_date(kind, new)
    elif kind == "float" and "allow_inf_nan" not in new:
        new["allow_inf_nan"] = False
    return new


def _with_extras(core: Any, behaviour: str) -> Any:
    """The fields of a class with what its config says of further ones; its validators may stand around them."""
    if not isinstance(core, dict):
        return core
    if core.get("type") in EXTRA_BEHAVIOUR:
        return {**core, "extra_behavior": behaviour}
    if str(core.get("type")).startswith("function-"):
        return {**core, "schema": _with_extras(core.get("schema"), behaviour)}
    return core


def _written_date(kind: str, core: Any) -> Any:
    """A date in ISO form only: Pydantic reads "2024" as seconds since 1970, even strictly."""
    read = SchemaValidator(core).validate_json

    def check(given: Any) -> Any:
        if not isinstance(given, str) or not DATES[kind].fullmatch(given):
            raise ValueError(f"a {kind.replace('time', ' and time')} in the form {DATE_FORMS[kind]}")
        return read(to_json(given), strict=True)

    shown: Any = {"pydantic_js_functions": [lambda _, handler: handler(core)]}
    return core_schema.no_info_plain_validator_function(check, metadata=shown)
