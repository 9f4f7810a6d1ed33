"""An incremental JSON parser: a model's arguments can be read while they are still being written.

Fed with chunks of any size, it knows at every moment the value so far, and the events since the last chunk.
It costs the same per character however the text is cut, and it is strict: RFC 8259 and nothing else, refused
at the first character that no JSON text could have there.

What is shown is never contradicted by a later character:

- a number, ``true``, ``false`` and ``null`` are shown when they are finished, not before;
- a key is shown when the kind of its value is known;
- a string only grows, an array or object only gains elements at its end; half an escape, surrogate pair or
  UTF-8 sequence is held back;
- the finished value is what ``json.loads`` makes of the text.

Two texts that ``json.loads`` takes are not taken as they are: half of a surrogate pair becomes U+FFFD, because
such a string could not be encoded again, and a number too great for a float is refused, because infinity is
no JSON. Of keys that repeat the last wins; the earlier value goes from view when its key is repeated. Both
the replacement and the repetition are said in ``warnings``.

**States.** A state is a method that reads from one place of a chunk and returns where it stopped. Whitespace
stays in the state, what the table lacks is refused.

==============  ==================================================  ===========================================
state           reads                                               goes to
==============  ==================================================  ===========================================
_value          ``"``                                               _string, or after when the chunk closes it
                ``-`` or digit                                      _number, or after when the chunk ends it
                ``t`` ``f`` ``n``                                   _literal, or after when the chunk ends it
                ``{`` ``[``                                         _first_key, _first_element
_first_element  ``]`` or a value                                    after, or as _value
_first_key      ``}`` or ``"``                                      after, or _key
_key            characters, then ``"``                              _colon
_colon          ``:``                                               _value
_string         characters, then ``"``                              after
_number         the rest of a number that a chunk cut               after
_literal        the rest of a literal that a chunk cut              after
_next_member    ``,`` or ``}``                                      _next_key, or after
_next_key       ``"``                                               _key
_next_element   ``,`` or ``]``                                      _value, or after
_done           nothing
==============  ==================================================  ===========================================

*After* a value comes _next_member in an object, _next_element in an array, and _done for the whole text.
"""

from __future__ import annotations

import re
import sys
from codecs import utf_8_decode
from collections.abc import Callable
from math import isinf
from typing import Any, Literal, NamedTuple, NoReturn

__all__ = ["JsonEvent", "JsonPath", "JsonStream", "JsonStreamError"]

JsonPath = tuple[str | int, ...]
"""Where a value stands: keys and indexes from the outside in; ``()`` is the whole."""


class JsonEvent(NamedTuple):
    """One thing that became known: ``kind`` says what, ``path`` where, and ``value`` is

    - of ``"open"``: ``"object"``, ``"array"`` or ``"string"``, of which nothing is read yet;
    - of ``"delta"``: the text by which the string grew (one delta a string and chunk);
    - of ``"value"``: the finished value. Numbers and literals come as this alone.

    ``"open"`` and ``"value"`` events are the same however the text is cut.
    """

    kind: Literal["open", "delta", "value"]
    path: JsonPath
    value: Any


class JsonStreamError(ValueError):
    """The text is not JSON. ``position`` counts the characters before the one that is refused."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason, position)
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        return f"{self.reason} at character {self.position}"


_Container = dict[str, Any] | list[Any]
_State = Callable[["JsonStream", str, int], int]

# An event is made for every token: tuple's own constructor takes half the time of the class's.
_new = tuple.__new__

# Surrogates in a str chunk are halves of a pair that a provider cut: they are read like escaped ones.
_TEXT = r"[ !#-\[\]-\ud7ff\ue000-\U0010ffff]*"
_SPACE = r"[ \t\n\r]*"
_HIGH = r"\\u[dD][89abAB][0-9a-fA-F]{2}|[\ud800-\udbff]"
_LOW = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}|[\udc00-\udfff]"

_skip_space = re.compile(_SPACE).match
_read_text = re.compile(_TEXT).match
_read_key = re.compile(rf'{_SPACE}"({_TEXT})"{_SPACE}:').match
_read_member = re.compile(rf'{_SPACE},{_SPACE}"({_TEXT})"{_SPACE}:').match

# What a chunk holds whole. A number is whole when something that cannot belong to it follows.
_read_value = re.compile(
    rf'{_SPACE}(?:"({_TEXT})"|([\[{{"])'
    r"|(-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?))(?=[ \t\n\r,\]}])|(true|false|null))"
).match
_TEXT_GROUP, _OPENING_GROUP, _NUMBER_GROUP, _FRACTION_GROUP, _LITERAL_GROUP = range(1, 6)

_read_character = re.compile(
    rf'({_TEXT[:-1]}+)|\\(["\\/bfnrt])|({_HIGH})({_LOW})|(\\u[0-9a-fA-F]{{4}}|[\ud800-\udfff])'
).match
_RUN_GROUP, _SIMPLE_GROUP, _HIGH_GROUP, _LOW_GROUP, _UNIT_GROUP = range(1, 6)
_SIMPLE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_is_unfinished = re.compile(rf"(?:{_HIGH})?(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?\Z").match
_read_escape_start = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?").match

_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


def _arrows(**arrows: str) -> dict[str, str]:
    """A row of the table of numbers: every character of ``arrows`` to the phase that it leads to."""
    return {character: phase for phase, characters in arrows.items() for character in characters}


_NUMBER_PHASES = {
    "start": _arrows(minus="-", zero="0", whole="123456789"),
    "minus": _arrows(zero="0", whole="123456789"),
    "zero": _arrows(point=".", e="eE"),
    "whole": _arrows(whole="0123456789", point=".", e="eE"),
    "point": _arrows(fraction="0123456789"),
    "fraction": _arrows(fraction="0123456789", e="eE"),
    "e": _arrows(sign="+-", exponent="0123456789"),
    "sign": _arrows(exponent="0123456789"),
    "exponent": _arrows(exponent="0123456789"),
}
_NUMBER_ENDS = ("zero", "whole", "fraction", "exponent")
_INTEGER_ENDS = ("zero", "whole")


class JsonStream:
    """Reads one JSON text as it arrives.

    Args:
        max_depth: How deeply arrays and objects may nest; deeper is refused. 200, which is what Pydantic takes.
        max_chars: How long the text may be; longer is refused. No limit when left out.
        events: ``False`` when only ``value`` is looked at: ``feed`` and ``close`` then return empty lists.

    ``warnings`` lists what was read otherwise than it was written: ``"duplicate_key:NAME"`` and
    ``"lone_surrogate"``, once each time.

    >>> stream = JsonStream()
    >>> for kind, path, value in stream.feed('{"path": "a.txt", "content": "one li'):
    ...     print(kind, path, value)
    open () object
    open ('path',) string
    delta ('path',) a.txt
    value ('path',) a.txt
    open ('content',) string
    delta ('content',) one li
    >>> stream.value
    {'path': 'a.txt', 'content': 'one li'}
    """

    __slots__ = (
        "_after",
        "_cut_bytes",
        "_error",
        "_events",
        "_held",
        "_here",
        "_holder",
        "_max_chars",
        "_max_depth",
        "_outer",
        "_parts",
        "_path",
        "_phase",
        "_position",
        "_slot",
        "_state",
        "_top",
        "_wants_events",
        "warnings",
    )

    def __init__(self, *, max_depth: int = 200, max_chars: int | None = None, events: bool = True) -> None:
        self._max_depth = max_depth
        self._max_chars = sys.maxsize if max_chars is None else max_chars
        self._wants_events = events
        self._events: list[JsonEvent] | None = None
        self.warnings: list[str] = []

        self._state: _State = JsonStream._value
        self._position = 0  # of the first character that no state has taken
        self._error: tuple[str, int] | None = None

        self._top: list[Any] = []  # holds the whole, so that it is placed like any other value
        self._holder: _Container = self._top  # the innermost open container,
        self._path: JsonPath = ()  # where it stands,
        self._slot: Any = -1  # where in it a string grows
        self._after: _State = JsonStream._done  # and what follows a value in it
        self._outer: list[tuple[_Container, JsonPath, Any, _State]] = []
        self._here: JsonPath = ()  # where the value stands that is being read

        self._cut_bytes = b""  # the start of a UTF-8 sequence
        self._held = ""  # half an escape or surrogate pair, read again with what follows
        self._parts: list[str] = []  # of a key, number or literal that a chunk cut
        self._phase = ""  # of a number or literal

    @property
    def value(self) -> Any:
        """The value so far, None where there is none; valid until the next ``feed``, not to be changed."""
        return self._top[0] if self._top else None

    @property
    def has_value(self) -> bool:
        """Whether ``value`` is the beginning of the value, and not None because nothing is known yet."""
        return bool(self._top)

    @property
    def complete(self) -> bool:
        """Whether a whole JSON text was read. Stays true when what follows it is refused."""
        return self._state is JsonStream._done

    def feed(self, chunk: str | bytes) -> list[JsonEvent]:
        """Read on; gives the events of this chunk.

        Raises:
            JsonStreamError: where no JSON text could go on like this, and on every call after it. What was
                read before stays in ``value``. Where the text was already ``complete``, a second one
                begins at the error's ``position``.
        """
        if self._error is not None:
            raise JsonStreamError(*self._error)
        events: list[JsonEvent] = []
        self._events = events if self._wants_events else None
        if isinstance(chunk, str):
            if self._cut_bytes and chunk:
                self._refuse("unfinished UTF-8 sequence", 0)
            self._read(chunk)
        elif chunk.isascii() and not self._cut_bytes:
            self._read(chunk.decode())
        else:
            self._read_bytes(chunk)
        return events

    def close(self) -> list[JsonEvent]:
        """Say that nothing follows; gives the last events (a number alone is only finished by its end).

        Raises:
            JsonStreamError: the text is not complete, or was refused before.
        """
        self.feed("")
        events = self._events
        if self._state is JsonStream._number and not self._outer and self._phase in _NUMBER_ENDS:
            self._finish_number("".join(self._parts), self._phase in _INTEGER_ENDS, 0)
        if self._state is not JsonStream._done:
            self._refuse("text ends too early", len(self._held))
        return events or []

    # ---- from chunks to characters

    def _read_bytes(self, chunk: bytes) -> None:
        sequence = self._cut_bytes + chunk
        try:
            text, used = utf_8_decode(sequence, "strict", False)
        except UnicodeDecodeError as error:
            self._cut_bytes = b""
            self._read(sequence[: error.start].decode())
            self._refuse("invalid UTF-8", len(self._held))
        self._cut_bytes = sequence[used:]
        self._read(text)

    def _read(self, text: str) -> None:
        if self._held:
            text = self._held + text
            self._held = ""
        size = len(text)
        room = self._max_chars - self._position
        at = 0
        if size > room:
            self._read(text[:room])
            self._refuse("longer than max_chars", len(self._held))
        while at < size:
            at = self._state(self, text, at)
        self._position += size - len(self._held)

    def _refuse(self, reason: str, at: int) -> NoReturn:
        self._error = (reason, self._position + at)
        raise JsonStreamError(*self._error)

    def _unexpected(self, text: str, at: int, wanted: str) -> NoReturn:
        self._refuse(f"expected {wanted}, got {text[at]!r}", at)

    # ---- states: before a value

    def _value(self, text: str, at: int) -> int:
        found = _read_value(text, at)
        if found is None:
            return self._cut_value(text, at)
        group = found.lastindex
        if group == _TEXT_GROUP:
            self._finish_text(found[_TEXT_GROUP])
        elif group == _OPENING_GROUP:
            self._open(found[_OPENING_GROUP], found.end() - 1)
        elif group == _NUMBER_GROUP:
            self._finish_number(found[_NUMBER_GROUP], not found[_FRACTION_GROUP], found.end())
        else:
            self._finish(_LITERALS[found[_LITERAL_GROUP]])
        return found.end()

    def _cut_value(self, text: str, at: int) -> int:
        at = _skip_space(text, at).end()  # type: ignore[union-attr]
        return at
