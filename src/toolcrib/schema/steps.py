"""Steps from one place of a schema to another: into a key or element, to a union's members, along a reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["property_names", "resolve", "step", "variants"]


def step(node: Any, item: Any, root: Mapping[str, Any]) -> Any:
    """The schema of one key or element below a schema; {} when it says nothing about it."""
    node = resolve(node, root)
    for place in variants(node, root):
        if isinstance(item, int) and not isinstance(item, bool):
            prefix = place.get("prefixItems")
            if isinstance(prefix, list) and item < len(prefix):
                return prefix[item]
            if "items" in place:
                return place["items"]
            continue
        properties = place.get("properties")
        if isinstance(properties, Mapping) and item in properties:
            return properties[item]
    for place in variants(node, root):
        if isinstance(place.get("additionalProperties"), Mapping):
            return place["additionalProperties"]
    return {}


def variants(node: Any, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A schema and the members of its unions, one level deep and flattened."""
    if not isinstance(node, Mapping):
        return []
    found: list[Mapping[str, Any]] = [node]
    for union in ("anyOf", "oneOf", "allOf"):
        members = node.get(union)
        for member in members if isinstance(members, list) else ():
            inner = resolve(member, root)
            if isinstance(inner, Mapping):
                found.append(inner)
    return found


def resolve(node: Any, root: Mapping[str, Any]) -> Any:
    """A schema with a reference into the root's $defs followed; bounded, so that circles end."""
    for _ in range(16):
        if not (isinstance(node, Mapping) and isinstance(node.get("$ref"), str)):
            return node
        reference = node["$ref"]
        if reference == "#":
            return root
        defs = root.get("$defs")
        target = defs.get(reference.removeprefix("#/$defs/")) if isinstance(defs, Mapping) else None
        if target is None:
            return {}
        node = target
    return {}


def property_names(node: Any, root: Mapping[str, Any]) -> list[str]:
    """The names of an object's properties, of a union's members too."""
    names: dict[str, None] = {}
    for place in variants(resolve(node, root), root):
        properties = place.get("properties")
        if isinstance(properties, Mapping):
            names.update(dict.fromkeys(properties))
    return list(names)
