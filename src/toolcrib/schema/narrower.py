"""Whether a schema that a tool gives for one turn only narrows the schema that it declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.schema.references import References

__all__ = ["widening"]

LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
ALL_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})


def widening(declared: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """The first place where `shown` takes what `declared` refuses, in words; "" if none is found.

    What cannot be compared (two different patterns, conditions) counts as narrower: a call is validated against both
    schemas in any case.
    """
    return next(_wider(_Node(declared, References(declared)), _Node(shown, References(shown)), "", 0), "")


class _Node:
    """A schema, and what its references point to."""

    __slots__ = ("references", "schema")

    def __init__(self, schema: Any, references: References) -> None:
        self.references = references
        for _ in range(20):  # a reference may lead to a reference; circles end here
            if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
                break
            found = references.resolve(schema["$ref"], references.root)
            schema = found[0] if found is not None else {}
        self.schema: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}

    def get(self, key: str) -> Any:
        return self.schema.get(key)

    def at(self, schema: Any) -> _Node:
        return _Node(schema, self.references)

    def types(self) -> frozenset[str]:
        named = self.get("type")
        if named is None:
            return ALL_TYPES
        types = frozenset([named] if isinstance(named, str) else named)
        return types | {"integer"} if "number" in types else types

    def values(self) -> list[Any] | None:
        """The values that an enum or const allows; None if neither is there."""
        if "const" in self.schema:
            return [self.schema["const"]]
        listed = self.get("enum")
        return listed if isinstance(listed, list) else None


def _wider(declared: _Node, shown: _Node, path: str, depth: int) -> Iterator[str]:
    if depth > 20:  # a schema that contains itself
        return
    where = f"parameter {path!r}" if path else "the arguments"
    for key in ("anyOf", "oneOf"):
        if shown.get(key):
            for branch in shown.get(key):
                yield from _wider(declared, shown.at(branch), path, depth + 1)
            return
    for key in ("anyOf", "oneOf"):
        branches = [declared.at(branch) for branch in declared.get(key) or ()]
        found = [next(_wider(branch, shown, path, depth + 1), "") for branch in branches]
        if found and all(found):
            yield found[0] if len(found) == 1 else f"{where} is declared narrower than it is shown"
            return
    values = shown.values()
    if values is not None:
        from toolcrib.schema.validator import offline_validator

        root = declared.references.root.node
        defs = {key: root[key] for key in ("$defs", "definitions") if key in root}
        validator = offline_validator({**declared.schema, **defs})
        for value in values:
            if not validator.is_valid(value):
                yield f"{where} does not take {value!r}"
        return
    if extra := shown.types() - declared.types():
        yield f"{where} does not take the type {', '.join(sorted(extra))}"
        return
    if declared.values() is not None:
        yield f"{where} is declared with a list of values, which is not shown"
    yield from _wider_bounds(declared, shown, where)
    yield from _wider_properties(declared, shown, path, depth)
    if isinstance(declared.get("items"), Mapping) and "array" in shown.types():
        yield from _wider(
            declared.at(declared.get("items")), shown.at(shown.get("items")), f"{path}[]", depth + 1
        )


def _wider_bounds(declared: _Node, shown: _Node, where: str) -> Iterator[str]:
    for keys, looser in ((LOWER, min), (UPPER, max)):
        for key in keys:
            bound, given = declared.get(key), shown.get(key)
            other = shown.get({"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}.get(key, ""))
            given = other if given is None else given
            if bound is not None and (given is None or (looser(bound, given) == given and given != bound)):
                yield f"{where} is declared with {key} {bound}"


def _wider_properties(declared: _Node, shown: _Node, path: str, depth: int) -> Iterator[str]:
    known, offered = declared.get("properties") or {}, shown.get("properties") or {}
    prefix = f"{path}." if path else ""
    for name, schema in offered.items():
        if name in known:
            yield from _wider(declared.at(known[name]), shown.at(schema), f"{prefix}{name}", depth + 1)
        elif declared.get("additionalProperties") is False:
            yield f"parameter {prefix + name!r} is not declared"
    for name in declared.get("required") or ():
        if name not in (shown.get("required") or ()):
            yield f"parameter {prefix + name!r} is required"
