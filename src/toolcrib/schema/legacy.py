"""Converts older drafts and neighbouring formats (OpenAPI) to JSON Schema 2020-12."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

# Names that people write where JSON Schema has its own; from real tool definitions.
_TYPE_NAMES: Final[Mapping[str, str]] = {
    "dict": "object", "map": "object", "float": "number", "double": "number", "decimal": "number",
    "int": "integer", "long": "integer", "str": "string", "text": "string", "bool": "boolean",
    "list": "array", "tuple": "array", "set": "array", "none": "null",
}  # fmt: skip


def type_name(written: str, known: frozenset[str]) -> str | None:
    """The JSON type that a misspelt or foreign type name means; None where that is unclear."""
    if written in known:
        return written
    lowered = written.lower()
    return lowered if lowered in known else _TYPE_NAMES.get(lowered)


def modern(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node with the keywords of 2020-12; the same object where nothing had to change."""
    if _OLD.isdisjoint(node):
        return node
    for keyword, rewrite in _REWRITES:
        if keyword in node:
            node = rewrite(node)
    return node


def _without(node: Mapping[str, Any], *keywords: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keywords}


def _tuple(node: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(node["items"], list):
        return node
    out = {"prefixItems" if key == "items" else key: value for key, value in node.items()}
    rest = out.pop("additionalItems", None)
    if not out["prefixItems"]:
        del out["prefixItems"]  # an empty tuple constrains nothing
    return out if rest is None else {**out, "items": rest}


def _additional_items(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return _without(node, "additionalItems")  # says nothing unless `items` is a list


def _dependencies(node: Mapping[str, Any]) -> Mapping[str, Any]:
    given = node["dependencies"]
    out = _without(node, "dependencies")
    if not isinstance(given, Mapping):
        return out
    # Draft 3 also allowed a single name.
    names = {k: [v] if isinstance(v, str) else v for k, v in given.items() if isinstance(v, (list, str))}
    schemas = {k: v for k, v in given.items() if isinstance(v, (Mapping, bool))}
    for keyword, found in (("dependentRequired", names), ("dependentSchemas", schemas)):
        if found:
            out[keyword] = {**found, **out.get(keyword, {})}
    return out


def _exclusive(flag: str, bound: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    def rewrite(node: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(node[flag], bool):
            return node
        out = _without(node, flag)
        if node[flag] and bound in out:
            out[flag] = out.pop(bound)
        return out

    return rewrite


def _dynamic(keyword: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    def rewrite(node: Mapping[str, Any]) -> Mapping[str, Any]:
        # Without a second schema to extend this one, a dynamic reference is an ordinary one.
        return {"$ref": node[keyword], **_without(node, keyword)}

    return rewrite


_REWRITES: Final[tuple[tuple[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]], ...]] = (
    ("items", _tuple),
    ("additionalItems", _additional_items),
    ("dependencies", _dependencies),
    ("exclusiveMinimum", _exclusive("exclusiveMinimum", "minimum")),
    ("exclusiveMaximum", _exclusive("exclusiveMaximum", "maximum")),
    ("$recursiveRef", _dynamic("$recursiveRef")),
    ("$dynamicRef", _dynamic("$dynamicRef")),
)
_OLD: Final = frozenset(keyword for keyword, _ in _REWRITES)
