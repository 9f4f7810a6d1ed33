"""Wraps a schema whose root a server does not take: it becomes the field `value` of an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcrib.schema.keywords import KINDS, NAMED, NODE, NODES, types_of

__all__ = ["needs_wrapper", "unwrapped_path", "wrapped"]

FIELD: Final = "value"
_INNER: Final = f"/properties/{FIELD}"
_NOT_AT_ROOT: Final = ("anyOf", "oneOf", "allOf", "$ref", "not", "enum", "const", "if")


def needs_wrapper(schema: Mapping[str, Any]) -> bool:
    """Whether the root of a canonical schema is anything but one plain object with properties of its own."""
    return types_of(schema) != ["object"] or any(word in schema for word in _NOT_AT_ROOT)


def wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object whose field `value` fits a canonical schema."""
    definitions = schema.get("$defs")
    inner = _moved({word: value for word, value in schema.items() if word != "$defs"})
    out: dict[str, Any] = {"type": "object", "properties": {FIELD: inner}, "required": [FIELD]}
    out["additionalProperties"] = False
    if definitions:
        out["$defs"] = {name: _moved(node) for name, node in definitions.items()}
    return out


def unwrapped_path(path: str) -> str:
    """The JSON pointer into the schema that was wrapped."""
    return path.removeprefix(_INNER)


def _moved(node: Any) -> Any:
    """Rewrites a schema's references to its root, so that they lead to the place where the root stands now."""
    if not isinstance(node, Mapping):
        return node
    out = dict(node)
    if out.get("$ref") == "#":
        out["$ref"] = f"#{_INNER}"
    for word, value in node.items():
        kind = KINDS.get(word)
        if kind == NODE:
            out[word] = _moved(value)
        elif kind == NODES:
            out[word] = [_moved(item) for item in value]
        elif kind == NAMED:
            out[word] = {name: _moved(item) for name, item in value.items()}
    return out
