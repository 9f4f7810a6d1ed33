"""What a parameter's text says, by the schema of the tool that is called.

Formats with a tag for each parameter write strings as they are and everything else as JSON, so that only the
schema tells `7` from `"7"`. Text becomes another value where the schema takes no text; where it takes both,
only null and JSON objects and arrays do, for there is no other way to write those. What cannot be read stays
text, and the validator says what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcrib.json_text.lenient_grammar import Unreadable
from toolcrib.json_text.lenient_reader import read_json
from toolcrib.json_text.schema_shape import KINDS, Shape, Shapes
from toolcrib.json_text.values import kind_of

Tools = Mapping[str, Mapping[str, Any]]  # wire name to input schema; empty where the tools are not known
Kinds = frozenset[str]
ANYTHING: Final = KINDS
TEXT: Final[Kinds] = frozenset({"string"})
# No JSON Schema, but what hand-written tools say.
ALIASES: Final = {
    "str": "string",
    "text": "string",
    "enum": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
    "map": "object",
    "none": "null",
}
_WORDS: Final[dict[str, tuple[str, bool | None]]] = {
    "true": ("boolean", True),
    "false": ("boolean", False),
    "null": ("null", None),
    "none": ("null", None),
}
_NULLS: Final = frozenset({"null", "Null", "NULL"})  # "none" is a usual value of an enum
_UNREAD: Final = object()


class Place:
    """Where in a tool's arguments a value stands: which kinds of value it takes, and the places inside."""

    __slots__ = ("_shape", "_shapes", "kinds")

    def __init__(self, shapes: Shapes | None, shape: Shape | None, kinds: Kinds = ANYTHING) -> None:
        self._shapes = shapes
        self._shape = shape
        self.kinds = kinds

    @property
    def is_text(self) -> bool:
        """Whether nothing but text can stand here, so that it can be handed on while it is written."""
        return self.kinds == TEXT

    @property
    def is_known(self) -> bool:
        return self._shape is not None

    def declares(self, name: str) -> bool:
        return any(name in way.properties for way in self._ways())

    def member(self, name: str) -> Place:
        ways = self._ways()
        for way in ways:
            if name in way.properties:
                return self._at(way.properties[name])
        return next((self._at(way.extra) for way in ways if isinstance(way.extra, Mapping)), NOWHERE)

    def item(self, index: int) -> Place:
        for way in self._ways():
            if index < len(way.prefix):
                return self._at(way.prefix[index])
            if isinstance(way.items, Mapping):
                return self._at(way.items)
        return NOWHERE

    def _at(self, schema: Any) -> Place:
        assert self._shapes is not None
        place = Place(self._shapes, self._shapes.shape(schema))
        place.kinds = _aliased(schema) or frozenset[str]().union(*map(_own_kinds, place._ways(leaves=True)))
        return place

    def _ways(self, *, leaves: bool = False) -> list[Shape]:
        """The shape and what its unions lead to, or only what they end in; each once."""
        ways: list[Shape] = []
        waiting = [] if self._shape is None else [self._shape]
        seen = set[int]()
        while waiting and self._shapes is not None:
            shape = waiting.pop()
            if id(shape) in seen:
                continue
            seen.add(id(shape))
            inner = self._shapes.variants(shape)
            if not (leaves and inner):
                ways.append(shape)
            waiting.extend(reversed(inner))
        return ways


NOWHERE: Final = Place(None, None)


def _own_kinds(shape: Shape) -> Kinds:
    null: Kinds = frozenset({"null"} if shape.nullable else ())
    kinds = shape.kinds
    if kinds == KINDS and shape.properties:
        kinds = frozenset({"object"})
    if shape.allowed is not None:
        kinds &= {kind_of(item) for item in shape.allowed}
    return kinds | null


def _aliased(schema: Any) -> Kinds:
    named = schema.get("type") if isinstance(schema, Mapping) else None
    kind = ALIASES.get(named.lower()) if isinstance(named, str) else None
    return frozenset({kind} if kind else ())


class Parameters:
    """The places of the arguments of a request's tools, each worked out once."""

    __slots__ = ("_places", "_roots", "_tools")

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._roots: dict[str, Place] = {}
        self._places: dict[tuple[str, str], Place] = {}

    def of(self, tool: str) -> Place:
        """The arguments of a tool; `NOWHERE` for one that is not known."""
        if tool not in self._tools:
            return NOWHERE
        if tool not in self._roots:
            shapes = Shapes(self._tools[tool])
            self._roots[tool] = Place(shapes, shapes.root, frozenset({"object"}))
        return self._roots[tool]

    def place(self, tool: str, name: str) -> Place:
        """One parameter of a tool."""
        root = self.of(tool)
        if not root.declares(name):
            return root.member(name)
        key = (tool, name)
        if key not in self._places:
            self._places[key] = root.member(name)
        return self._places[key]


def read_value(text: str, kinds: Kinds, *, untyped_json: bool = False) -> Any:
    """The value that a text stands for where these kinds of value are taken.

    Where anything is taken it stays text, or with `untyped_json` becomes what strict JSON makes of it.
    """
    bare = text.strip()
    if kinds == TEXT or (kinds == ANYTHING and not untyped_json):
        return text
    if kinds == ANYTHING:
        value = _read_json(bare)
        return text if value is _UNREAD or isinstance(value, str) else value
    if "string" in kinds:
        if "null" in kinds and bare in _NULLS:
            return None
        value = _read_json(bare) if bare.startswith(("{", "[")) else _UNREAD
        return value if kind_of(value) in kinds else text
    kind, word = _WORDS.get(bare.lower(), ("", None))
    if kind in kinds:
        return word
    value = _read_json(bare)
    return text if value is _UNREAD else value


def read_json_value(text: str) -> Any:
    """The value of a text that is said to be JSON; the text where it is none."""
    value = _read_json(text.strip())
    return text if value is _UNREAD else value


def _read_json(text: str) -> Any:
    """Strict JSON, or an object or array written leniently, with nothing beside it."""
    try:
        reading = read_json(text)
    except Unreadable:
        return _UNREAD
    return _UNREAD if reading.around.strip() else reading.value
