"""Shortens a schema to save tokens: each rewriting accepts exactly the same values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcrib.json_text.values import same_json
from toolcrib.schema.combine import merge
from toolcrib.schema.keywords import ANNOTATIONS, OF_TYPE, Schema, accepts_null, ordered, types_of

# Keywords beside which adding "null" to `type` allows null: they do not constrain it, or are handled one by one.
_BLIND_TO_NULL: Final = frozenset().union(*OF_TYPE.values()) | frozenset(
    ("type", "enum", "const", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
)
_LITERAL: Final = frozenset({"type", "const", "enum"})
_COMPARED: Final = 64  # unions longer than this are not searched for doubles, which takes quadratic time


def shorten(node: Schema) -> Schema:
    """Shortens one node whose children are already canonical."""
    if "allOf" in node:
        node = _all_of(node)
    if "anyOf" in node:
        node = _union(node, "anyOf")
    if "oneOf" in node:
        node = _union(node, "oneOf")
    if len(node.get("allOf", ())) == 1:  # what stood in the way of its one member may be gone now
        node = _all_of(node)
    kind = node.get("type")
    if kind == "object" or (type(kind) is list and "object" in kind):
        node.setdefault("properties", {})
    if "properties" in node:
        node["properties"] = _without_null_defaults(node["properties"], node.get("required", ()))
    return ordered(node)


def nullable(node: Mapping[str, Any]) -> Schema | None:
    """The node with null allowed by its type; None where that needs a union."""
    if not _BLIND_TO_NULL.issuperset(node):
        return None
    out = dict(node)
    if "const" in out:
        out["enum"] = [out.pop("const")]
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    if "type" in out:
        types = types_of(out)
        out["type"] = types if "null" in types else [*types, "null"]
    elif "enum" not in out:
        return None
    return out


def _all_of(node: Schema) -> Schema:
    rest: Schema = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
    members: list[Schema] = []
    for member in node["allOf"]:
        if ANNOTATIONS.issuperset(member):
            rest = {**member, **rest}  # a member that only describes, describes the whole
        else:
            members.append(member)
    if not members:
        return rest
    if len(members) == 1:
        merged = merge(members[0], rest)
        if merged is not None:
            return merged
    return {**rest, "allOf": members}


def _union(node: Schema, keyword: str) -> Schema:
    rest = {key: value for key, value in node.items() if key != keyword}
    exclusive = keyword == "oneOf"
    variants: list[Schema] = node[keyword]
    if not exclusive:
        if any(not variant for variant in variants):
            return rest  # a variant that takes anything makes the others superfluous
        variants = _spliced(variants)
        if len(variants) <= _COMPARED:
            variants = _distinct(variants)
    nulls: list[Schema] = []
    others: list[Schema] = []
    for variant in variants:
        (nulls if _only_null(variant) else others).append(variant)
    if exclusive and nulls and (len(nulls) > 1 or any(_may_be_null(variant) for variant in others)):
        nulls, others = [], variants
    joined = _literals(others, exclusive)
    if joined is not None:
        others = [joined]
    whole = _single(others, nulls)
    if whole is not None:
        merged = merge(whole, rest)
        if merged is not None:
            return merged
    if nulls and len(others) == 1 and others[0].keys() == {"oneOf"}:
        inner: list[Schema] = others[0]["oneOf"]
        if not any(_may_be_null(variant) for variant in inner) and "oneOf" not in rest:
            return {**rest, "oneOf": [*inner, {"type": "null"}]}
    return {**rest, keyword: [*others, {"type": "null"}] if nulls else others}


def _single(others: list[Schema], nulls: list[Schema]) -> Schema | None:
    if not others:
        return {"type": "null"}
    if len(others) > 1:
        return None
    return nullable(others[0]) if nulls else others[0]


def _spliced(variants: list[Schema]) -> list[Schema]:
    """Flattens a union inside a union of the same kind."""
    if not any(variant.keys() == {"anyOf"} for variant in variants):
        return variants
    return [inner for v in variants for inner in (v["anyOf"] if v.keys() == {"anyOf"} else [v])]


def _distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(same_json(value, known) for known in kept):
            kept.append(value)
    return kept


def _only_null(variant: Mapping[str, Any]) -> bool:
    if variant.get("type", "null") != "null" or not variant or not _LITERAL.issuperset(variant):
        return False
    values = variant.get("enum", [variant["const"]] if "const" in variant else [None])
    return bool(values) and all(value is None for value in values)


def _may_be_null(variant: Mapping[str, Any]) -> bool:
    return "type" not in variant or accepts_null(variant) or "null" in types_of(variant)


def _literals(variants: list[Schema], exclusive: bool) -> Schema | None:
    """Variants that are bare constants of one type, as one `enum`."""
    if len(variants) < 2 or any(not _LITERAL.issuperset(variant) for variant in variants):
        return None
    kinds = {tuple(types_of(variant)) for variant in variants}
    if len(kinds) > 1 or any(("const" in variant) == ("enum" in variant) for variant in variants):
        return None
    written = [value for variant in variants for value in variant.get("enum", [variant.get("const")])]
    values = _distinct(written)
    if exclusive and len(values) < len(written):
        return None
    first = variants[0]
    return {**({"type": first["type"]} if "type" in first else {}), "enum": values}


def _without_null_defaults(properties: Mapping[str, Any], required: Any) -> Schema:
    """Drops null and its default from optional parameters: leaving the parameter out means the same."""
    idle = [
        name
        for name, node in properties.items()
        if "default" in node and node["default"] is None and name not in required
        if accepts_null(node) or ANNOTATIONS.issuperset(node)
    ]
    shorter = {name: {k: v for k, v in properties[name].items() if k != "default"} for name in idle}
    return {**properties, **shorter}
