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

In three things it differs from ``json.loads``: half of a surrogate pair becomes U+FFFD, because such a
string could not be encoded again; a number too great for a float is refused, because infinity is no JSON; and
where a key repeats, the earlier value is removed as soon as the key is read again: the last one wins, and
stands in its own place. What was replaced or repeated is said in ``warnings``.

States. Each is a function that reads on from one place of a chunk and returns where it stopped. Whitespace
leaves a state as it is; any character that is not in its row is refused. ``after`` a value comes next_member
in an object, next_element in an array, done for the whole.

============== ============================================== =============================================
state          reads                                          goes to
============== ============================================== =============================================
value          ``"``, ``-`` or digit, ``t`` ``f`` ``n``       string, number, literal; or after, if the chunk
                                                              has it whole
               ``{``, ``[``                                   first_key, first_element
first_element  ``]``, or as value                             after, or as value
next_element   ``]``, ``,``                                   after, value
first_key      ``}``, ``"``                                   after, key
next_member    ``}``, ``,``                                   after, next_key
next_key       ``"``                                          key
key            characters until ``"``                         colon
colon          ``:``                                          value
string         characters until ``"``                         after
number         what can go on the number                      after
literal        the rest of ``true``, ``false`` or ``null``    after
done           nothing                                        ---
============== ============================================== =============================================

Where a chunk holds several of these at once, a pattern of `json_text/tokens.py` takes them in one step, to the state
that the single characters would have led to.
"""

from __future__ import annotations

import re
import sys
from codecs import utf_8_decode
from collections.abc import Callable
from math import isinf
from typing import Any, Literal, NamedTuple, NoReturn

from toolcrib.json_text.tokens import (
    CUT_KEY,
    CUT_STRING,
    FRACTION,
    INTEGER_ENDS,
    KEY,
    LITERAL,
    LITERAL_STARTS,
    LITERALS,
    NUMBER,
    NUMBER_ENDS,
    NUMBER_PHASES,
    OPENING,
    STRING,
    match_escape_start,
    match_first_member,
    match_member,
    match_next_member,
    match_next_value,
    match_value,
    read_text,
)

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


class JsonStream:
    """Reads one JSON text as it arrives.

    Args:
        max_depth: How deeply arrays and objects may nest; deeper is refused. 200, as in Pydantic.
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
        *("warnings", "_wants_events", "_events", "_max_depth", "_max_chars", "_error", "_position"),
        *("_state", "_after", "_top", "_holder", "_path", "_slot", "_outer", "_here"),
        *("_cut_bytes", "_held", "_parts", "_phase"),
    )

    def __init__(self, *, max_depth: int = 200, max_chars: int | None = None, events: bool = True) -> None:
        self.warnings: list[str] = []
        self._wants_events = events
        self._events: list[JsonEvent] | None = None
        self._max_depth = max_depth
        self._max_chars = sys.maxsize if max_chars is None else max_chars
        self._error: tuple[str, int] | None = None
        self._position = 0  # of the first character that no state has taken

        self._state: _State = _value
        self._after: _State = _done  # what follows a value in the innermost open container,
        self._top: list[Any] = []  # (the whole is held like any other value)
        self._holder: _Container = self._top  # that container,
        self._path: JsonPath = ()  # where it stands,
        self._slot: Any = -1  # and where in it a string grows
        self._outer: list[tuple[_Container, JsonPath, Any, _State]] = []  # the same of those outside
        self._here: JsonPath = ()  # where the value stands that is being read

        self._cut_bytes = b""  # the start of a UTF-8 sequence
        self._held = ""  # half an escape or surrogate pair, read again with what follows
        self._parts: list[str] = []  # pieces of a key, number or literal that a chunk cut
        self._phase = ""  # the part of a number that is read, or the literal

    @property
    def value(self) -> Any:
        """The value so far, None where there is none; valid until the next ``feed``, not to be changed.

        Asking is free. A growing string that was taken out of it and kept is copied at the next ``feed``;
        to collect a long text, add up the deltas.
        """
        return self._top[0] if self._top else None

    @property
    def has_value(self) -> bool:
        """Whether anything of the value is known: tells a ``value`` of null from none."""
        return bool(self._top)

    @property
    def complete(self) -> bool:
        """Whether a whole JSON text was read. Stays true when what follows it is refused."""
        return self._state is _done

    def feed(self, chunk: str | bytes) -> list[JsonEvent]:
        """Read on; gives the events of this chunk.

        Raises:
            JsonStreamError: where no JSON text could go on like this, and on every call after it. What was
                read before stays in ``value``. Where the text was already ``complete``, a second one
                begins at the error's ``position``.
        """
        if self._error is not None:
            raise JsonStreamError(*self._error)
        if isinstance(chunk, str):
            text = chunk
            if self._cut_bytes and text:
                self._refuse("unfinished UTF-8 sequence", len(self._held))
        elif chunk.isascii() and not self._cut_bytes:
            text = chunk.decode()
        else:
            text = self._decode(chunk)
        if self._held:
            text = self._held + text
            self._held = ""
        size = len(text)
        if self._position + size > self._max_chars:
            self._refuse_excess(text)
        events: list[JsonEvent] = []
        self._events = events if self._wants_events else None
        at = 0
        while at < size:
            at = self._state(self, text, at)
        self._position += size
        return events

    def close(self) -> list[JsonEvent]:
        """Say that nothing follows; gives the last events (only its end finishes a number that stands alone).

        Raises:
            JsonStreamError: the text is not complete, or was refused before.
        """
        events = self.feed("")
        if self._state is JsonStream._number and not self._outer and self._phase in NUMBER_ENDS:
            self._finish_number("".join(self._parts), self._phase in INTEGER_ENDS, 0)
        if self._state is not _done or self._cut_bytes:
            self._refuse("text ends too early", len(self._held))
        return events

    # ---- chunks

    def _decode(self, chunk: bytes) -> str:
        sequence = self._cut_bytes + chunk
        try:
            text, used = utf_8_decode(sequence, "strict", False)
        except UnicodeDecodeError as error:
            self._refuse_bytes(sequence[: error.start])
        self._cut_bytes = sequence[used:]
        # The decoder waits for the last byte of an encoded surrogate, which UTF-8 has not.
        if self._cut_bytes[:1] == b"\xed" and self._cut_bytes[1:] >= b"\xa0":
            self._refuse_bytes(sequence[:used])
        return text

    def _refuse_bytes(self, good: bytes) -> NoReturn:
        self._cut_bytes = b""
        self.feed(good.decode())
        self._refuse("invalid UTF-8", len(self._held))

    def _refuse_excess(self, text: str) -> NoReturn:
        self._cut_bytes = b""
        self.feed(text[: self._max_chars - self._position])
        self._refuse(f"more than {self._max_chars} characters", len(self._held))

    def _refuse(self, reason: str, at: int) -> NoReturn:
        self._error = (reason, self._position + at)
        raise JsonStreamError(*self._error)

    def _unexpected(self, text: str, at: int, wanted: str) -> NoReturn:
        self._refuse(f"expected {wanted}, got {text[at]!r}", at)

    # ---- states inside a token that a chunk cut

    def _key(self, text: str, at: int) -> int:
        found = match_member(text, at)
        if found is not None:
            return self._take(found)
        piece, end = self._read_text(text, at)
        self._parts.append(piece)
        if end == len(text):
            return end
        self._end_quote(text, end)
        self._name("")
        self._state = _colon
        return end + 1

    def _string(self, text: str, at: int) -> int:
        if at == 0 and "\\" not in text and text.isprintable():  # nor control characters nor surrogates
            end = text.find('"') if '"' in text else len(text)
            piece = text[:end]
        else:
            piece, end = self._read_text(text, at)
        holder: Any = self._holder
        slot = self._slot
        whole = holder[slot]
        if piece:
            # CPython appends in place, so that growing is linear, only while this local is the one
            # reference to the string, and only where the statement stands alone on its line.
            holder[slot] = None
            whole += piece
            holder[slot] = whole
            if self._events is not None:
                self._events.append(_new(JsonEvent, ("delta", self._here, piece)))
        if end == len(text):
            return end
        self._end_quote(text, end)
        self._end_string(whole)
        return end + 1

    def _number(self, text: str, at: int) -> int:
        phase = self._phase
        end = at
        while end < len(text) and text[end] in NUMBER_PHASES[phase]:
            phase = NUMBER_PHASES[phase][text[end]]
            end += 1
        self._phase = phase
        self._parts.append(text[at:end])
        if end < len(text):
            if phase not in NUMBER_ENDS or text[end] in "+-.0123456789Ee":
                self._unexpected(text, end, "a number")
            self._finish_number("".join(self._parts), phase in INTEGER_ENDS, end)
        return end

    def _literal(self, text: str, at: int) -> int:
        missing = self._phase[sum(map(len, self._parts)) :]
        for index, (wanted, got) in enumerate(zip(missing, text[at : at + len(missing)], strict=False), at):
            if wanted != got:
                self._unexpected(text, index, self._phase)
        piece = text[at : at + len(missing)]
        self._parts.append(piece)
        if piece == missing:
            self._finish(LITERALS[self._phase])
        return at + len(piece)

    def _read_text(self, text: str, at: int) -> tuple[str, int]:
        """The characters up to the quote that ends them, the end of the chunk, or what may not stand here."""
        piece, end, self._held, lone = read_text(text, at)
        if lone:
            self.warnings += ["lone_surrogate"] * lone
        if self._held:
            self._position -= len(self._held)
            end = len(text)
        return piece, end

    def _end_quote(self, text: str, at: int) -> None:
        if text[at] == '"':
            return
        escape = match_escape_start(text, at)
        if escape is not None:
            self._unexpected(text, escape.end(), "an escape")
        self._unexpected(text, at, "a control character to be escaped")

    # ---- building the value

    def _take(self, found: re.Match[str]) -> int:
        """Place what a pattern found, and go to the state that it leads to."""
        group = found.lastindex
        if group == CUT_KEY:
            self._parts.append(found[CUT_KEY])
            self._state = JsonStream._key
            return found.end()
        key = found[KEY]
        if key is not None:
            self._name(key)
        if group == STRING:
            self._start_string(found[STRING])
            self._end_string(found[STRING])
        elif group == CUT_STRING:
            self._start_string(found[STRING])
        elif group == NUMBER:
            self._finish_number(found[NUMBER], not found[FRACTION], found.end())
        elif group == LITERAL:
            self._finish(LITERALS[found[LITERAL]])
        elif group == OPENING:
            self._open(found[OPENING], found.end() - 1)
        else:
            self._state = _value
        return found.end()

    def _name(self, rest: str) -> None:
        if self._parts:
            rest = "".join((*self._parts, rest))
            self._parts = []
        holder: Any = self._holder
        if rest in holder:
            self.warnings.append(f"duplicate_key:{rest}")
            del holder[rest]
        self._slot = rest

    def _place(self, value: Any) -> None:
        holder = self._holder
        if isinstance(holder, list):
            if self._events is not None:
                self._here = self._path + (len(holder),) if self._outer else ()  # noqa: RUF005 - twice as fast
            holder.append(value)
        else:
            if self._events is not None:
                self._here = self._path + (self._slot,)  # noqa: RUF005
            holder[self._slot] = value

    def _finish(self, value: Any) -> None:
        if self._parts:
            self._parts = []
        self._place(value)
        self._state = self._after
        if self._events is not None:
            self._events.append(_new(JsonEvent, ("value", self._here, value)))

    def _finish_number(self, number: str, integer: bool, end: int) -> None:
        try:
            value: int | float = int(number) if integer else float(number)
        except ValueError:  # sys.get_int_max_str_digits()
            self._refuse("integer with too many digits", end)
        if not integer and isinf(value):
            self._refuse("number too great for a float", end)
        self._finish(value)

    def _start_string(self, start: str) -> None:
        self._place(start)
        self._state = JsonStream._string
        if self._events is not None:
            self._events.append(_new(JsonEvent, ("open", self._here, "string")))
            if start:
                self._events.append(_new(JsonEvent, ("delta", self._here, start)))

    def _end_string(self, whole: str) -> None:
        self._state = self._after
        if self._events is not None:
            self._events.append(_new(JsonEvent, ("value", self._here, whole)))

    def _open(self, opening: str, at: int) -> None:
        if len(self._outer) >= self._max_depth:
            self._refuse(f"nested deeper than {self._max_depth}", at)
        opened: _Container = {} if opening == "{" else []
        self._place(opened)
        self._outer.append((self._holder, self._path, self._slot, self._after))
        self._holder = opened
        self._path = self._here
        self._slot = -1
        self._state, self._after, kind = _CONTAINERS[opening]
        if self._events is not None:
            self._events.append(_new(JsonEvent, ("open", self._here, kind)))

    def _close(self, text: str, at: int) -> int:
        if self._events is not None:
            self._events.append(_new(JsonEvent, ("value", self._path, self._holder)))
        self._holder, self._path, self._slot, self._after = self._outer.pop()
        self._state = self._after
        return at + 1

    # ---- single characters that begin a value

    def _begin_string(self, text: str, at: int) -> int:
        self._start_string("")
        return at + 1

    def _begin_number(self, text: str, at: int) -> int:
        self._phase = "start"
        self._state = JsonStream._number
        return at

    def _begin_literal(self, text: str, at: int) -> int:
        self._phase = LITERAL_STARTS[text[at]]
        self._state = JsonStream._literal
        return at


# ---- states between tokens: what each wants, and what it does with a character

_Pattern = Callable[[str, int], "re.Match[str] | None"]


def _state(wanted: str, row: dict[str, _State], pattern: _Pattern | None = None) -> _State:
    arrows = {character: action for characters, action in row.items() for character in characters}

    def read(stream: JsonStream, text: str, at: int) -> int:
        found = None if pattern is None else pattern(text, at)
        if found is not None:
            return stream._take(found)
        while at < len(text) and text[at] in " \t\n\r":
            at += 1
        if at == len(text):
            return at
        action = arrows.get(text[at])
        if action is None:
            stream._unexpected(text, at, wanted)
        return action(stream, text, at)

    return read


def _to(state: _State) -> _State:
    def go(stream: JsonStream, text: str, at: int) -> int:
        stream._state = state
        return at + 1

    return go


_BEGINNINGS: dict[str, _State] = {
    '"': JsonStream._begin_string,
    "-0123456789": JsonStream._begin_number,
    "tfn": JsonStream._begin_literal,
}
_close = JsonStream._close

_done = _state("nothing after the end", {})
_value = _state("a value", _BEGINNINGS, match_value)
_first_element = _state("a value or ']'", {"]": _close, **_BEGINNINGS}, match_value)
_next_element = _state("',' or ']'", {"]": _close, ",": _to(_value)}, match_next_value)
_colon = _state("':'", {":": _to(_value)})
_next_key = _state("a key", {'"': _to(JsonStream._key)}, match_first_member)
_first_key = _state("a key or '}'", {"}": _close, '"': _to(JsonStream._key)}, match_first_member)
_next_member = _state("',' or '}'", {"}": _close, ",": _to(_next_key)}, match_next_member)

_CONTAINERS = {"{": (_first_key, _next_member, "object"), "[": (_first_element, _next_element, "array")}
