"""A call's arguments written out as JSON while they are read, parameter by parameter."""

from __future__ import annotations

import json
from typing import Any, Literal

from toolcrib.codecs.text.answer import Answer
from toolcrib.codecs.text.parameter_values import ANYTHING, TEXT, Kinds, read_json_value, read_value

# Which line breaks at the ends of a value are layout. "wrapped": one at each end, where the value begins on
# a line of its own. "lines": one at each end, each by itself. "none": all of them belong to the value.
Trim = Literal["wrapped", "lines", "none"]


def escaped(text: str) -> str:
    """A piece of a JSON string, without its quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class ArgumentWriter:
    """The arguments of one open call: names and values in, JSON text to the answer."""

    __slots__ = ("_answer", "_wrapper", "names")

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._wrapper: tuple[str, Any] | None = None
        self.names: set[str] = set()

    def name(self, name: str) -> None:
        """A parameter begins; what is written until the next one is its value."""
        held, self._wrapper = self._wrapper, None
        if held is not None:
            self.name(held[0])
            self.value(held[1])
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
    """A value that is written as text, handed on as it comes where it can only be a string.

    `as_json` is what the format itself says of it: JSON, a string, or nothing.
    """

    __slots__ = (
        "_as_json",
        "_begun",
        "_break",
        "_drops_last",
        "_held",
        "_kinds",
        "_last",
        "_pieces",
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
        self._held = ""  # a line break that may turn out to be layout
        self._begun = trim == "none"
        self._drops_last = trim == "lines"
        self._break = "\n"  # as the value's first line break is written
        self._last = "\n"
        if self._pieces is None:
            writer.json('"')

    @property
    def streams(self) -> bool:
        """Whether it can only be a string."""
        return self._pieces is None

    @property
    def at_line_start(self) -> bool:
        return self._last == "\n"

    def add(self, piece: str) -> None:
        self._last = piece[-1:] or self._last
        piece = self._held + piece
        self._held = ""
        if not self._begun:
            if piece in ("", "\r"):
                self._held = piece
                return
            self._begun = True
            layout = next((line for line in ("\n", "\r\n") if piece.startswith(line)), "")
            self._break = layout or self._break
            self._drops_last = self._drops_last or bool(layout)
            piece = piece[len(layout) :]
        kept = piece.removesuffix("\n").removesuffix("\r")
        self._held = piece[len(kept) :]
        self._write(kept)

    def end(self, *, closed: bool = True) -> None:
        """The value is complete; one that is not `closed` ends with the line before what follows."""
        drops = self._drops_last or not closed
        self._write(self._held.removesuffix(self._break) if drops else self._held)
        if self._pieces is None:
            self._writer.json('"')
        else:
            self._writer.value(self.read())

    def read(self) -> Any:
        """What the text says, where it is not handed on."""
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
