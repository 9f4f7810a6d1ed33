"""Makes the root of a schema an object, as a tool's input must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcrib.json_text.values import same_json
from toolcrib.schema.combine import meet, merge
from toolcrib.schema.keywords import OF_TYPE, Schema, types_of
from toolcrib.schema.recursion import Definitions
from toolcrib.schema.shorten import shorten
from toolcrib.schema.words import quote

_FORMS: Final = 8  # alternatives that are spelled out in the description
_HOPS: Final = 8  # references that are followed to reach what stands at the root

Lose = Callable[[str, str, bool], None]  # keyword, detail, whether fewer values are left


def object_root(root: Schema, definitions: Definitions, told: list[str], lose: Lose) -> Schema:
    """The root as a plain object schema; unchanged where it already is one."""
    out = root
    if "allOf" in out:
        out = _joined(out, definitions, lose)
    for keyword in ("anyOf", "oneOf"):
        if keyword in out:
            out = _flattened(out, keyword, definitions, told, lose)
    types = types_of(out)
    if types == ["object"]:
        return out
    if "object" in types or types == ["null"] or (not types and _looks_like_object(out)):
        return shorten({**{key: value for key, value in out.items() if key != "enum"}, "type": "object"})
    lose("type", "not an object: sent as the field `value`", True)
    return {"type": "object", "properties": {"value": out}, "required": ["value"]}


def _looks_like_object(node: Schema) -> bool:
    foreign = set().union(*(words for name, words in OF_TYPE.items() if name != "object"))
    valued = any(keyword in node for keyword in ("enum", "const", "anyOf", "oneOf"))
    return not OF_TYPE["object"].isdisjoint(node) or not (valued or foreign & node.keys())


def _joined(node: Schema, definitions: Definitions, lose: Lose) -> Schema:
    out: Schema = {key: value for key, value in node.items() if key != "allOf"}
    for member in node["allOf"]:
        followed = _followed(member, definitions)
        merged = merge(followed, out)
        if merged is None:
            merged = merge(_open(followed), _open(out))
            lose("additionalProperties", "further keys are not ruled out", False)
        if merged is None:
            merged = meet(
                followed, out, lambda keyword: lose(keyword, "cannot be joined with the rest", False)
            )
        out = merged
    return _joined(out, definitions, lose) if "allOf" in out else out


def _open(node: Schema) -> Schema:
    closing = ("additionalProperties", "unevaluatedProperties")
    return {key: value for key, value in node.items() if key not in closing}


def _followed(node: Schema, definitions: Definitions) -> Schema:
    """The target of the root's references, merged with the keywords beside them."""
    for _ in range(_HOPS):
        if "$ref" not in node:
            return node
        beside = {key: value for key, value in node.items() if key != "$ref"}
        target = definitions.target(node["$ref"])
        node = merge(target, beside) or {**target, **beside}
    return {key: value for key, value in node.items() if key != "$ref"}


def _flattened(node: Schema, keyword: str, definitions: Definitions, told: list[str], lose: Lose) -> Schema:
    """The fields of all alternatives in one object; the description says which belong together."""
    rest = {key: value for key, value in node.items() if key != keyword}
    variants = [_flat(_followed(variant, definitions), definitions, told, lose) for variant in node[keyword]]
    objects = [v for v in variants if "object" in types_of(v) or (not types_of(v) and _looks_like_object(v))]
    if not objects and "object" not in types_of(rest) and OF_TYPE["object"].isdisjoint(rest):
        return node
    for variant in variants:
        if not any(variant is known for known in objects) and types_of(variant) != ["null"]:
            lose(keyword, f"not an object: {quote(variant)}", False)
    own: Mapping[str, Any] = rest.get("properties", {})
    properties: Schema = {**own}
    for variant in objects:
        for name, field in variant.get("properties", {}).items():
            if name not in properties:
                properties[name] = field
            elif name not in own:
                properties[name] = _either(properties[name], field)
    first = objects[0].get("required", ()) if objects else ()
    shared = [name for name in first if all(name in variant.get("required", ()) for variant in objects)]
    required = list(dict.fromkeys([*rest.get("required", ()), *shared]))
    out: Schema = {**rest, "type": "object", "properties": properties}
    if required:
        out["required"] = required
    closed = all(variant.get("additionalProperties") is False for variant in objects)
    if closed and objects:
        out["additionalProperties"] = False
    text = _forms(objects, keyword)
    told.append(text)
    lose(keyword, text or "alternatives read as one object", False)
    return shorten(out)


def _flat(variant: Schema, definitions: Definitions, told: list[str], lose: Lose) -> Schema:
    if "allOf" in variant:
        variant = _joined(variant, definitions, lose)
    for keyword in ("anyOf", "oneOf"):
        if keyword in variant and all("$ref" not in inner for inner in variant[keyword]):
            variant = _flattened(variant, keyword, definitions, told, lose)
    return variant


def _either(one: Schema, other: Schema) -> Schema:
    if same_json(one, other):
        return one
    tags = [_tags(one), _tags(other)]
    if tags[0] is not None and tags[1] is not None and types_of(one) == types_of(other):
        values = [
            *tags[0],
            *(value for value in tags[1] if not any(same_json(value, known) for known in tags[0])),
        ]
        return {**{key: value for key, value in one.items() if key != "const"}, "enum": values}
    known = one["anyOf"] if set(one) == {"anyOf"} else [one]
    return shorten({"anyOf": [*known, other]})


def _tags(node: Schema) -> list[Any] | None:
    values = node.get("enum", [node["const"]] if "const" in node else None)
    return values if isinstance(values, list) else None


def _forms(objects: list[Schema], keyword: str) -> str:
    """A sentence that says which fields belong together."""
    forms: list[str] = []
    for variant in objects:
        fields: Mapping[str, Any] = variant.get("properties", {})
        names = list(variant.get("required", ())) or list(fields)
        shown = [_named(name, fields.get(name, {})) for name in names]
        if shown:
            forms.append(", ".join(shown))
    forms = list(dict.fromkeys(forms))
    if len(forms) < 2:
        return ""
    more = f"; and {len(forms) - _FORMS} more" if len(forms) > _FORMS else ""
    count = "exactly one" if keyword == "oneOf" else "at least one"
    return f"Send {count} of these sets of fields: {'; '.join(forms[:_FORMS])}{more}."


def _named(name: str, node: Mapping[str, Any]) -> str:
    tags = _tags(dict(node)) if isinstance(node, Mapping) else None
    return f"{name}={quote(tags[0])}" if tags is not None and len(tags) == 1 else name
