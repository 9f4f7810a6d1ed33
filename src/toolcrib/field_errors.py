"""Turns a validator's errors into field errors that a model can act on: path, expected, got, allowed.

Works from the JSON Schema alone, so that typed and foreign tools are explained alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.errors import FieldError
from toolcrib.json_text.values import kind_of

MAX_SHOWN = 80  # characters of an offending value that are echoed
MAX_ALLOWED = 20  # allowed values that are listed

LIMITS = {
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "propertyNames"),
}


def field_errors(
    schema: Mapping[str, Any], value: Any, failures: Iterable[tuple[tuple[Any, ...], str, str]]
) -> tuple[FieldError, ...]:
    """One FieldError for each failing path; `failures` are (validator's path, kind, message).

    Kinds "missing" and "extra" have messages of their own; a path may contain items that are not keys of the
    value (names of union members), which are skipped.
    """
    found: dict[str, FieldError] = {}
    for raw_path, kind, message in failures:
        path, node, got, owner = _walk(schema, value, raw_path, kind)
        label = path_label(path)
        if label in found:
            continue
        if kind == "missing":
            found[label] = FieldError(
                label, expectation(node, schema), "nothing", allowed_values(node, schema)
            )
        elif kind == "extra":
            known = tuple(_properties(owner, schema))
            found[label] = FieldError(label, "no parameter of this name", show(got), known)
        else:
            expected = expectation(node, schema)
            if kind == "rule":  # a custom validator's own words
                expected = message
            found[label] = FieldError(label, expected, show(got), allowed_values(node, schema))
    return tuple(found.values())


def _walk(
    schema: Mapping[str, Any], value: Any, raw_path: tuple[Any, ...], kind: str
) -> tuple[tuple[Any, ...], Any, Any, Any]:
    """Follow a validator's path through value and schema: (path, schema there, value there, schema above)."""
    path: list[Any] = []
    node: Any = schema
    owner: Any = schema
    for position, item in enumerate(raw_path):
        last = position == len(raw_path) - 1
        inside = (isinstance(value, dict) and item in value) or (
            isinstance(value, list) and isinstance(item, int) and item < len(value)
        )
        if not inside and not (last and kind == "missing"):
            continue
        owner, node = node, step(node, item, schema)
        value = value[item] if inside else None
        path.append(item)
    return tuple(path), node, value, owner


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


def _properties(node: Any, root: Mapping[str, Any]) -> list[str]:
    names: dict[str, None] = {}
    for place in variants(resolve(node, root), root):
        properties = place.get("properties")
        if isinstance(properties, Mapping):
            names.update(dict.fromkeys(properties))
    return list(names)


def allowed_values(node: Any, root: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of an enum or const, of a union's members too."""
    found: list[Any] = []
    for place in variants(resolve(node, root), root):
        if isinstance(place.get("enum"), list):
            found.extend(place["enum"])
        elif "const" in place:
            found.append(place["const"])
    return tuple(found[:MAX_ALLOWED])


def expectation(node: Any, root: Mapping[str, Any]) -> str:
    """What a schema expects, in a few words: "integer, at least 1, at most 14"."""
    from toolcrib.schema.words import sentence

    node = resolve(node, root)
    if not isinstance(node, Mapping) or not node:
        return "any value"
    if isinstance(node.get("enum"), list):
        return "one of " + ", ".join(_literal(value) for value in node["enum"][:MAX_ALLOWED])
    if "const" in node:
        return _literal(node["const"])
    for union in ("anyOf", "oneOf"):
        members = node.get(union)
        if isinstance(members, list) and members:
            return " or ".join(dict.fromkeys(expectation(member, root) for member in members))
    kind = node.get("type", "value")
    words = [" or ".join(str(name) for name in kind) if isinstance(kind, list) else str(kind)]
    if kind == "array" and isinstance(node.get("items"), Mapping):
        words = [f"array of {expectation(node['items'], root)}"]
    if kind == "object" and isinstance(node.get("required"), list) and node["required"]:
        words = ["object with " + ", ".join(str(name) for name in node["required"])]
    limits = [sentence(keyword, value) for keyword, value in node.items() if keyword in LIMITS]
    return ", ".join([*words, *(said[0].lower() + said[1:-1] for said in limits if said)])


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def show(value: Any) -> str:
    """An offending value, with its JSON type, cut to a line."""
    if value is None:
        return "null"
    text = _literal(value)
    if len(text) > MAX_SHOWN:
        text = text[:MAX_SHOWN] + "…"
    return f"{kind_of(value)} {text}"


def path_label(path: tuple[Any, ...]) -> str:
    """A path as a person writes it: `edits[0].name`."""
    label = ""
    for item in path:
        label += f"[{item}]" if isinstance(item, int) else f".{item}" if label else str(item)
    return label
