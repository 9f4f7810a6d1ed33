"""Merges two schemas into one that accepts the values that both accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcrib.json_text.values import same_json
from toolcrib.schema.keywords import ANNOTATIONS, Schema, ordered, types_of

# Keywords that are read together with others of their own node, so that moving one alone changes its meaning.
_GROUPS: Final[tuple[frozenset[str], ...]] = (
    frozenset({"prefixItems", "items"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)
_CLOSING: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})


def merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> Schema | None:
    """One node equivalent to both together; None where that needs `allOf`. Descriptions of `other` win."""
    if not other:
        return dict(one)
    if not one or ANNOTATIONS.issuperset(other):
        return {**one, **other}
    if not ANNOTATIONS.issuperset(one) and _entangled(one, other):
        return None
    out = dict(one)
    for keyword, value in other.items():
        if keyword not in out or keyword in ANNOTATIONS or same_json(out[keyword], value):
            out[keyword] = value
            continue
        combine = _COMBINE.get(keyword)
        combined = None if combine is None else combine(out[keyword], value)
        if combined is None:
            return None
        out[keyword] = combined
    return out


def meet(one: Mapping[str, Any], other: Mapping[str, Any], refused: Callable[[str], object]) -> Schema:
    """Like `merge`, but always gives one node: a keyword of `other` that cannot be merged is passed to `refused`.

    Two closed objects become one closed object with the fields of both, which is what their author meant.
    """
    merged = merge(one, other)
    if merged is not None:
        return merged
    closed = one.get("additionalProperties") is False and other.get("additionalProperties") is False
    out: Schema = {key: value for key, value in one.items() if key not in _CLOSING}
    for keyword, value in other.items():
        if keyword in _CLOSING:
            continue
        joined = merge(out, {keyword: value})
        if joined is None:
            refused(keyword)
        else:
            out = joined
    return {**out, "additionalProperties": False} if closed else out


def both(one: Any, other: Any) -> Any:
    """Like `merge`, for subschemas: falls back to `allOf`."""
    if one is False or other is False:
        return False
    if one is True:
        return other
    if other is True:
        return one
    merged = merge(one, other)
    return {"allOf": [one, other]} if merged is None else ordered(merged)


def _entangled(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if not (_UNEVALUATED.isdisjoint(one) and _UNEVALUATED.isdisjoint(other)):
        return True
    if _closes_over(one, other) or _closes_over(other, one):
        return True
    for group in _GROUPS:
        mine, theirs = group & one.keys(), group & other.keys()
        if not (mine and theirs) or (mine | theirs) == {"items"}:
            continue
        if mine != theirs or any(not same_json(one[keyword], other[keyword]) for keyword in mine):
            return True
    return False


def _closes_over(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether `one` restricts additional properties, and `other` names properties that `one` does not know."""
    if one.get("additionalProperties", True) is True:
        return False
    known: Mapping[str, Any] = one.get("properties", {})
    patterns: Mapping[str, Any] = other.get("patternProperties", {})
    return any(name not in known for name in other.get("properties", {})) or any(
        pattern not in one.get("patternProperties", {}) for pattern in patterns
    )


def _types(one: Any, other: Any) -> Any:
    mine, theirs = types_of({"type": one}), types_of({"type": other})
    # An integer is a number, so that the narrower word survives.
    kept = [name for name in mine if name in theirs or (name == "integer" and "number" in theirs)]
    kept += [name for name in theirs if name == "integer" and "number" in mine and name not in kept]
    if not kept:
        return None
    return kept[0] if len(kept) == 1 else kept


def _values(one: list[Any], other: list[Any]) -> list[Any] | None:
    return [value for value in one if any(same_json(value, known) for known in other)] or None


def _names(one: list[str], other: list[str]) -> list[str]:
    return [*one, *(name for name in other if name not in one)]


def _named(one: Mapping[str, Any], other: Mapping[str, Any]) -> Schema:
    return {**one, **{name: both(one[name], node) if name in one else node for name, node in other.items()}}


def _name_lists(one: Mapping[str, Any], other: Mapping[str, Any]) -> Schema:
    return {**one, **{name: _names(one.get(name, []), names) for name, names in other.items()}}


_COMBINE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "type": _types,
    "enum": _values,
    "required": _names,
    "properties": _named,
    "patternProperties": _named,
    "dependentSchemas": _named,
    "dependentRequired": _name_lists,
    "items": both,
    "additionalProperties": both,
    "propertyNames": both,
    "allOf": lambda one, other: [*one, *other],
    "uniqueItems": lambda one, other: one or other,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
