"""A raw JSON Schema without what tells a model nothing."""

from __future__ import annotations

from typing import Any

__all__ = ["DATA", "slim"]

DATA = {"default", "const", "enum", "examples"}  # keys of a JSON Schema that hold data


def slim(schema: Any) -> Any:
    """A raw schema without a null that is the default.

    A parameter that may be left out and then is None needs no null beside its type.
    """
    if isinstance(schema, list):
        return [slim(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    new = {key: item if key in DATA else slim(item) for key, item in schema.items()}
    properties = new.get("properties")
    if isinstance(properties, dict):
        required = new.get("required", ())
        for name, node in properties.items():
            if name not in required and isinstance(node, dict) and node.get("default", 0) is None:
                members = node.get("anyOf")
                if isinstance(members, list) and {"type": "null"} in members:
                    rest = [member for member in members if member != {"type": "null"}]
                    node = {key: item for key, item in node.items() if key not in ("anyOf", "default")}
                    properties[name] = {**rest[0], **node} if len(rest) == 1 else {**node, "anyOf": rest}
    return new
