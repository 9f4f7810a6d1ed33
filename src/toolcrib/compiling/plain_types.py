"""The types that most parameters have, with the core schema and the JSON Schema that Pydantic gives for them.

They stand here because loading Pydantic takes longer than all else until a program's first call. `tests/test_params.py`
compares them with Pydantic's own.
"""

from __future__ import annotations

from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

__all__ = ["plain_type"]

Schemas = tuple[dict[str, Any], dict[str, Any]]

ATOMS: Final[dict[Any, Schemas]] = {
    str: ({"type": "str"}, {"type": "string"}),
    int: ({"type": "int"}, {"type": "integer"}),
    float: ({"type": "float"}, {"type": "number"}),
    bool: ({"type": "bool"}, {"type": "boolean"}),
    Any: ({"type": "any"}, {}),
}


def plain_type(hint: Any) -> Schemas | None:
    """The core schema and the JSON Schema of a type; None if only Pydantic knows them."""
    if hint.__hash__ is not None and hint in ATOMS:
        core, schema = ATOMS[hint]
        return dict(core), dict(schema)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is list:
        return _list(*arguments)
    if origin is dict and arguments[0] is str:
        return _dict(arguments[1])
    if origin in (Union, UnionType) and len(arguments) == 2 and arguments[1] is type(None):
        return _nullable(arguments[0])
    if origin is Literal and len(arguments) > 1 and all(type(item) is str for item in arguments):
        words = list(arguments)
        return {"type": "literal", "expected": words}, {"enum": words, "type": "string"}
    return None


def _list(hint: Any) -> Schemas | None:
    if (item := plain_type(hint)) is None:
        return None
    return {"type": "list", "items_schema": item[0]}, {"items": item[1], "type": "array"}


def _dict(hint: Any) -> Schemas | None:
    if (item := plain_type(hint)) is None:
        return None
    core = {"type": "dict", "keys_schema": {"type": "str"}, "values_schema": item[0]}
    return core, {"additionalProperties": item[1] or True, "type": "object"}


def _nullable(hint: Any) -> Schemas | None:
    if hint is Any or (inner := plain_type(hint)) is None:
        return None
    return {"type": "nullable", "schema": inner[0]}, {"anyOf": [inner[1], {"type": "null"}]}
