"""The shape that a JSON Schema gives a value, for repair: follows references, `allOf` and unions.

The schema may be foreign, recursive or broken; a part that is not understood counts as allowing everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from toolcrib.dataclass import dataclass, field, replace
from toolcrib.json_text.values import DECIMAL_TEXT, kind_of, same_json, step_into

KINDS: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_NEVER_EMPTY: Final = frozenset({
    *("date", "date-time", "time", "duration", "email", "idn-email", "hostname", "idn-hostname"),
    *("ipv4", "ipv6", "ipvanyaddress", "ipvanynetwork", "ipvanyinterface", "uri", "iri", "url", "uuid"),
    *("path", "file-path", "directory-path"),
})  # fmt: skip
_MAX_MERGED = 3  # how often a union inside a union inside … is multiplied out with what stands beside it


@dataclass(slots=True, eq=False)
class Shape:
    """A schema with its references and `allOf` merged, reduced to the facts that repair needs."""

    kinds: frozenset[str] = KINDS
    allowed: list[Any] | None = None
    nullable: bool = False
    properties: dict[str, Any] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    extra: Any = None  # additionalProperties, None where the schema does not say
    patterns: bool = False
    prefix: list[Any] = field(default_factory=list)
    items: Any = True
    min_items: Any = 0
    empty_text: bool = True  # whether its constraints let an empty text pass
    decimal_text: bool = False  # whether it is a decimal number as text, whose digits all count
    unions: list[list[Any]] = field(default_factory=list)
    merged: int = 0

    @property
    def is_only_a_union(self) -> bool:
        plain = replace(self, unions=[], nullable=False, merged=0)
        return len(self.unions) == 1 and all(
            getattr(plain, name) == getattr(_ANYTHING, name) for name in Shape.__slots__
        )


_ANYTHING: Final = Shape()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _kinds_named(value: Any) -> frozenset[str]:
    names = {name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)}
    kinds = frozenset(names | {"integer"} if "number" in names else names) & KINDS
    return kinds or KINDS


def _takes_empty_text(schema: Mapping[str, Any]) -> bool:
    """Whether a schema's constraints on texts let an empty one pass."""
    least, pattern = schema.get("minLength", 0), schema.get("pattern")
    if schema.get("format") in _NEVER_EMPTY or (isinstance(least, int | float) and least > 0):
        return False
    try:
        return not isinstance(pattern, str) or re.search(pattern, "") is not None
    except re.error:  # the dialect of another language
        return True


def _absorb(shape: Shape, schema: Mapping[str, Any]) -> None:
    """Narrows a shape by what one schema says by itself."""
    if "type" in schema:
        shape.kinds &= _kinds_named(schema["type"])
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(allowed, list):
        shape.allowed = allowed
    shape.empty_text = shape.empty_text and _takes_empty_text(schema)
    shape.decimal_text = shape.decimal_text or schema.get("pattern") == DECIMAL_TEXT
    shape.nullable = shape.nullable or schema.get("nullable") is True
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            both = name in shape.properties and shape.properties[name] != inner
            shape.properties[name] = {"allOf": [shape.properties[name], inner]} if both else inner
    shape.required |= {name for name in _listed(schema.get("required")) if isinstance(name, str)}
    shape.extra = schema.get("additionalProperties", shape.extra)
    shape.patterns = shape.patterns or bool(schema.get("patternProperties"))
    items = schema.get("items", shape.items)
    shape.prefix = _listed(schema.get("prefixItems")) or _listed(items) or shape.prefix
    shape.items = True if isinstance(items, list) else items
    shape.min_items = schema.get("minItems", shape.min_items)
    shape.unions += [found for word in ("anyOf", "oneOf") if (found := _listed(schema.get(word)))]


class Shapes:
    """Answers questions about one schema. Answers are cached, so that each value is compared once with each
    part of the schema, however deeply unions and references nest; a cache entry keeps the objects alive whose
    ids are its key.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._shapes: dict[int, tuple[Any, Shape]] = {}
        self._variants: dict[int, tuple[Shape, list[Shape]]] = {}
        self._kinds: dict[int, frozenset[str]] = {}
        self._fits: dict[tuple[int, int], tuple[Any, bool]] = {}
        self.root = self.shape(schema)

    def shape(self, schema: Any) -> Shape:
        known = self._shapes.get(id(schema))
        if known is None:
            known = self._shapes[id(schema)] = (schema, self._merge(Shape(), schema))
        return known[1]

    def _merge(self, shape: Shape, schema: Any) -> Shape:
        waiting, seen = [schema], set[int]()
        while waiting:
            part = waiting.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            if part is False:
                shape.kinds = frozenset()
            elif isinstance(part, Mapping):
                _absorb(shape, part)
                waiting.extend(_listed(part.get("allOf")))
                if "$ref" in part:
                    waiting.append(self._resolve(part["$ref"]))
        return shape

    def _resolve(self, pointer: Any) -> Any:
        """The target of a local reference; a schema that allows everything where there is no target."""
        if not isinstance(pointer, str) or not pointer.startswith("#"):
            return True
        place = self._schema
        if "%" in pointer:
            from urllib.parse import unquote  # loads much for what is rare

            pointer = unquote(pointer)
        for token in pointer[1:].split("/")[1:]:
            try:
                place = step_into(place, token)
            except LookupError:
                return True
        return place

    def variants(self, shape: Shape) -> list[Shape]:
        """The alternatives of the shape's first union, each merged with the keywords beside it; empty without a
        union.
        """
        known = self._variants.get(id(shape))
        if known is None:
            known = self._variants[id(shape)] = (shape, list(self._expand(shape)))
        return known[1]

    def _expand(self, shape: Shape) -> Iterator[Shape]:
        if shape.is_only_a_union:
            yield from map(self.shape, shape.unions[0])
        elif shape.unions and shape.merged < _MAX_MERGED:
            for variant in shape.unions[0]:
                beside = replace(
                    shape, properties=dict(shape.properties), unions=shape.unions[1:], merged=shape.merged + 1
                )
                yield self._merge(beside, variant)

    def kinds(self, shape: Shape) -> frozenset[str]:
        """The kinds of which a shape accepts any value; an enum of strings does not count as "string"."""
        known = self._kinds.get(id(shape))
        if known is None:
            self._kinds[id(shape)] = shape.kinds
            known = shape.kinds | ({"null"} if shape.nullable else set())
            if shape.allowed is not None:
                known &= {kind_of(item) for item in shape.allowed} - {"string"}
            variants = self.variants(shape)
            if variants:
                known &= frozenset[str]().union(*map(self.kinds, variants)) | (known & {"null"})
            self._kinds[id(shape)] = known
        return known

    def names(self, shape: Shape) -> tuple[set[str], set[str]]:
        """The parameters that any variant knows, and those that any variant requires."""
        names, required = set[str](), set[str]()
        for part in self.with_variants([shape]):
            names |= part.properties.keys()
            required |= part.required
        return names, required

    def with_variants(self, shapes: Iterable[Shape]) -> list[Shape]:
        """The shapes and the alternatives of their unions, however deeply these nest."""
        found: dict[int, Shape] = {}
        waiting = list(shapes)
        while waiting:
            part = waiting.pop()
            if id(part) not in found:
                found[id(part)] = part
                waiting.extend(self.variants(part))
        return list(found.values())

    def fits(self, value: Any, shape: Shape) -> bool:
        """Whether a value has the shape. Constraints that repair never changes (lengths, ranges, patterns,
        formats) are ignored: accepting too much means one repair fewer, never a wrong one.
        """
        key = (id(value), id(shape))
        known = self._fits.get(key)
        if known is None:
            self._fits[key] = (value, False)  # a union that refers to nothing but itself is never met
            known = self._fits[key] = (value, self._does_fit(value, shape))
        return known[1]

    def _does_fit(self, value: Any, shape: Shape) -> bool:
        if value is None and shape.nullable:
            return True
        if kind_of(value) not in shape.kinds:
            return False
        if value == "" and not shape.empty_text:
            return False
        if shape.allowed is not None and not any(same_json(value, item) for item in shape.allowed):
            return False
        variants = self.variants(shape)
        if variants:
            return any(self.fits(value, variant) for variant in variants)
        if isinstance(value, dict):
            return shape.required <= value.keys() and all(
                self.fits(item, self.member(shape, name)) for name, item in value.items()
            )
        if isinstance(value, list):
            return all(self.fits(item, self.item(shape, index)) for index, item in enumerate(value))
        return True

    def member(self, shape: Shape, name: str) -> Shape:
        other = True if shape.patterns or shape.extra is None else shape.extra
        return self.shape(shape.properties.get(name, other))

    def item(self, shape: Shape, index: int) -> Shape:
        return self.shape(shape.prefix[index] if index < len(shape.prefix) else shape.items)
