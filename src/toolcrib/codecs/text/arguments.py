"""The arguments of a call whose parameters are written as text, turned into JSON by the tool's schema.

Formats with a tag for each parameter write strings as they are and everything else as JSON, so that only the
schema tells `7` from `"7"`. Text becomes another value where the schema takes no text; where it takes both,
only null and JSON objects and arrays do, for there is no other way to write those. What cannot be read stays
text, and the validator says what was expected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from toolcrib.codecs.text.answer import AnswerBuilder
from toolcrib.json_text.lenient_grammar import Unreadable
from toolcrib.json_text.lenient_reader import read_json
from toolcrib.json_text.schema_shape import KINDS, Shape, Shapes
from toolcrib.json_text.values import kind_of

__all__ = [
    "ANYTHING",
    "TEXT",
    "ArgumentWriter",
    "Kinds",
    "Parameters",
    "Place",
    "TextValue",
    "Tools",
    "Trim",
    "escaped",
    "read_json_value",
    "read_value",
]

Tools = Mapping[str, Mapping[str, Any]]  # wire name to input schema; empty where the tools are not known
Kinds = frozenset[str]
ANYTHING: Final = KINDS
TEXT: Final[Kinds] = frozenset({"string"})
# Type names that are no JSON Schema, as hand-written tools use them.
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
    """A place in a tool's arguments: which kinds of value it takes, and the places inside of it."""

    __slots__ = ("_shape", "_shapes", "kinds")

    def __init__(self, shapes: Shapes | None, shape: Shape | None, kinds: Kinds = ANYTHING) -> None:
        self._shapes = shapes
        self._shape = shape
        self.kinds = kinds

    @property
    def is_text(self) -> bool:
        """Whether only text can stand here, which is then handed on while it is read."""
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
        """The shape and the alternatives of its unions, or only those without further alternatives; each once."""
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
    """The places in the arguments of all tools, each computed once."""

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
    """The value of a text at a place that takes these kinds of value.

    At a place that takes anything it stays text, or with `untyped_json` is read as strict JSON.
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
    """The value of a text that should be JSON; the text itself where it is not."""
    value = _read_json(text.strip())
    return text if value is _UNREAD else value


def _read_json(text: str) -> Any:
    """Strict JSON, or an object or array written leniently, with nothing beside it."""
    try:
        reading = read_json(text)
    except Unreadable:
        return _UNREAD
    return _UNREAD if reading.around.strip() else reading.value


# Which line breaks at the ends of a value are layout. "wrapped": one at each end, where the value begins on
# a line of its own. "lines": one at each end, each by itself. "none": all of them belong to the value.
Trim = Literal["wrapped", "lines", "none"]


def escaped(text: str) -> str:
    """A piece of a JSON string, without its quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class ArgumentWriter:
    """Writes the arguments of the open call: takes names and values, gives JSON text to the answer."""

    __slots__ = ("_answer", "_wrapper", "names")

    def __init__(self, answer: AnswerBuilder) -> None:
        self._answer = answer
        self._wrapper: tuple[str, Any] | None = None
        self.names: set[str] = set()

    def name(self, name: str) -> None:
        """A parameter begins; what is written until the next name is its value."""
        wrapper, self._wrapper = self._wrapper, None
        if wrapper is not None:
            self.name(wrapper[0])
            self.value(wrapper[1])
        self.json(f"{', ' if self.names else '{'}{json.dumps(name, ensure_ascii=False)}: ")
        self.names.add(name)

    def value(self, value: Any) -> None:
        self.json(json.dumps(value, ensure_ascii=False))

    def json(self, piece: str) -> None:
        """A piece of JSON text."""
        self._answer.arguments(piece)

    def wrapper(self, name: str, value: dict[str, Any]) -> None:
        """A first parameter that holds all of the arguments, unless others follow it."""
        self._wrapper = (name, value)

    def end(self) -> None:
        """The last parameter was written."""
        if self._wrapper is not None:
            self.value(self._wrapper[1])
        else:
            self.json("}" if self.names else "{}")


class TextValue:
    """A value that is written as text; where it can only be a string, it is handed on while it is read.

    `as_json` is what the format says of the value: it is JSON, it is a string, or nothing (None).
    """

    __slots__ = (
        "_as_json",
        "_break",
        "_drops_last",
        "_kinds",
        "_last",
        "_pending",
        "_pieces",
        "_started",
        "_untyped",
        "_writer",
    )

    def __init__(
        self,
        writer: ArgumentWriter,
        kinds: Kinds,
        trim: Trim,
        *,
        untyped_json: bool = False,
        as_json: bool | None = None,
    ) -> None:
        self._writer = writer
        self._kinds = TEXT if as_json is False and "string" in kinds else kinds
        self._untyped = untyped_json
        self._as_json = as_json
        self._pieces: list[str] | None = None if self._kinds == TEXT and not as_json else []
        self._pending = ""  # a line break that may turn out to be layout
        self._started = trim == "none"
        self._drops_last = trim == "lines"
        self._break = "\n"  # as the value's first line break is written
        self._last = "\n"
        if self._pieces is None:
            writer.json('"')

    @property
    def streams(self) -> bool:
        """Whether the value can only be a string."""
        return self._pieces is None

    @property
    def at_line_start(self) -> bool:
        return self._last == "\n"

    def add(self, piece: str) -> None:
        self._last = piece[-1:] or self._last
        piece = self._pending + piece
        self._pending = ""
        if not self._started:
            if piece in ("", "\r"):
                self._pending = piece
                return
            self._started = True
            layout = next((line for line in ("\n", "\r\n") if piece.startswith(line)), "")
            self._break = layout or self._break
            self._drops_last = self._drops_last or bool(layout)
            piece = piece[len(layout) :]
        kept = piece.removesuffix("\n").removesuffix("\r")
        self._pending = piece[len(kept) :]
        self._write(kept)

    def end(self, *, closed: bool = True) -> None:
        """The value is complete; one that is not `closed` ends with the line before what follows."""
        drops = self._drops_last or not closed
        self._write(self._pending.removesuffix(self._break) if drops else self._pending)
        if self._pieces is None:
            self._writer.json('"')
        else:
            self._writer.value(self.read())

    def read(self) -> Any:
        """The value of the text, where it was not handed on."""
        text = "".join(self._pieces or ())
        if self._as_json and self._kinds in (ANYTHING, TEXT):
            value = read_json_value(text)
            return value if self._kinds == ANYTHING or isinstance(value, str) else text
        return read_value(text, self._kinds, untyped_json=self._untyped)

    def _write(self, piece: str) -> None:
        if self._pieces is not None:
            self._pieces.append(piece)
        elif piece:
            self._writer.json(escaped(piece))
