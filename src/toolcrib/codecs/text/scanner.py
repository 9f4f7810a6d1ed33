"""A cursor over text that comes in pieces, for readers that are written as generators.

A reader does no I/O: it asks the scanner (`yield from scan.until(...)`). A method that needs more text than
there is yields until more text was fed, or until the text has ended. No text is read twice, so that the cost
of reading is linear in the text, however it is cut.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from typing import Any, TypeVar

__all__ = ["Into", "Markers", "Scanner", "Steps", "drive", "markers_of"]

T = TypeVar("T")
Steps = Generator[None, None, T]  # `yield` means: more text is needed
Into = Callable[[str], object]

ENDLESS = 1 << 60
LONG = 64  # words up to this length have all their beginnings written down
SPACE = re.compile(r"\s+")
BLANK = re.compile(r"\s*")
SCALAR = re.compile(r"[^\s,:;\[\]{}\"'<>()|`]+")
OPENING = ('"', "'", "{", "[")
# An object without others in it, between whose strings no marker can stand.
FLAT = re.compile(r"""\{[\s\w:,.+-]*(?:"[^"\\]*"[\s\w:,.+-]*)*\}""")
IN_STRING = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}


class Markers:
    """Literal texts to look for; where several begin at one place, the longest is found."""

    __slots__ = ("_beginnings", "_ignore_case", "_long", "_longest", "_pattern", "_written", "first", "words")

    def __init__(self, words: Iterable[str], *, ignore_case: bool = False) -> None:
        self.words = tuple(sorted(set(words), key=lambda word: (-len(word), word)))
        self._ignore_case = ignore_case
        flags = re.IGNORECASE | re.ASCII if ignore_case else 0
        self._pattern = re.compile("|".join(map(re.escape, self.words)) or r"(?!)", flags)
        self._written = {self._plain(word): word for word in self.words}
        self._long = [word for word in self._written if len(word) > LONG]
        short = [word for word in self._written if len(word) <= LONG]
        self._beginnings = frozenset(word[:end] for word in short for end in range(1, len(word)))
        first = "".join(sorted({re.escape(word[0]) for word in self.words}))
        self.first = re.compile(
            f"[{first}]" if first else r"(?!)", flags
        )  # the first characters of all markers
        self._longest = max(map(len, self.words), default=0)

    def _plain(self, text: str) -> str:
        return text.lower() if self._ignore_case else text

    def _is_beginning(self, text: str) -> bool:
        """Whether a marker begins with a text and goes on after it."""
        text = self._plain(text)
        if text in self._beginnings or not self._long:
            return text in self._beginnings
        return bool(text) and any(len(text) < len(word) and word.startswith(text) for word in self._long)

    def find(self, text: str, start: int, ended: bool) -> tuple[int, str | None]:
        """The place of the first marker, and the marker; or how far there certainly is no marker, and None."""
        first = self.first.search(text, start)
        if first is None:
            return len(text), None
        match = self._pattern.search(text, first.start())
        if match is None:
            return (len(text) if ended else self._settled(text, start)), None
        place = match.start()
        if not ended and len(text) - place < self._longest:
            open_at = self._settled(text, start)
            if open_at <= place:
                return open_at, None  # a longer marker may be on its way, that begins here or before
        return place, self._written[self._plain(match.group())]

    def at(self, text: str, start: int, ended: bool) -> tuple[bool, str | None]:
        """Whether it is certain which marker stands exactly here, and that marker."""
        match = self._pattern.match(text, start)
        if not ended and len(text) - start < self._longest and self._is_beginning(text[start:]):
            return False, None
        return True, None if match is None else self._written[self._plain(match.group())]

    def _settled(self, text: str, start: int) -> int:
        """The place from which on the text may be the beginning of a marker."""
        place = max(start, len(text) - self._longest + 1)
        while (match := self.first.search(text, place)) is not None:
            place = match.start()
            if self._is_beginning(text[place:]):
                return place
            place += 1
        return len(text)


@lru_cache(maxsize=512)  # bounded, because some words come from the model
def markers_of(words: tuple[str, ...], ignore_case: bool = False) -> Markers:
    """Markers of these words; the same words give the same object."""
    return Markers(words, ignore_case=ignore_case)


class Scanner:
    """The text so far and how far it was read."""

    __slots__ = ("_before", "_idle", "_log", "_pos", "_starts", "_text", "ended")

    def __init__(self) -> None:
        self.ended = False
        self._text = ""  # text that was fed and is not read, behind text that `since` may ask for
        self._pos = 0
        self._before = 0  # characters that were read and let go
        self._log: list[str] = []
        self._starts: list[int] = []
        self._idle: tuple[re.Pattern[str], Into | None] | None = (
            None  # what ends a run of text, and where it goes
        )

    def feed(self, piece: str) -> bool:
        """Adds text. Says whether the reader must be resumed: not where the piece only continues a run of text."""
        self._let_go()
        if self._idle is not None and piece:
            stop, into = self._idle
            if stop.search(piece) is None:
                self._log.append(piece)
                self._starts.append(self._before)
                self._before += len(piece)
                if into is not None:
                    into(piece)
                return False
            self._idle = None
        self._text += piece
        return True

    def end(self) -> None:
        """No more text will come."""
        self.ended = True

    @property
    def offset(self) -> int:
        """How many characters were read; for `since`."""
        return self._before + self._pos

    def since(self, offset: int) -> str:
        """The text that was read from an earlier `offset` on."""
        if offset >= self._before:
            return self._text[offset - self._before : self._pos]
        at = bisect_right(self._starts, offset) - 1
        first = self._log[at][offset - self._starts[at] :]
        return "".join([first, *self._log[at + 1 :], self._text[: self._pos]])

    def rewind(self, offset: int) -> None:
        """Goes back to an earlier `offset`: what was read since then is read again."""
        if offset >= self._before:
            self._pos = offset - self._before
            return
        at = bisect_right(self._starts, offset) - 1
        text = self.since(offset) + self._text[self._pos :]
        self._log[at:] = [self._log[at][: offset - self._starts[at]]]
        del self._starts[at + 1 :]
        self._before, self._text, self._pos = offset, text, 0

    @property
    def at_end(self) -> bool:
        """Whether all that was fed is read; more may come unless `ended`."""
        return self._pos >= len(self._text)

    def rest(self) -> str:
        """Reads everything that is there."""
        start, self._pos = self._pos, len(self._text)
        return self._text[start:]

    def _let_go(self) -> None:
        if self._pos:
            self._log.append(self._text[: self._pos])
            self._starts.append(self._before)
            self._before += self._pos
            self._text = self._text[self._pos :]
            self._pos = 0

    def _read_to(self, end: int, into: Into | None) -> None:
        if end > self._pos:
            if into is not None:
                into(self._text[self._pos : end])
            self._pos = end

    def until(self, markers: tuple[str, ...] | Markers, into: Into | None = None) -> Steps[str | None]:
        """Everything before the first marker goes to `into`, as soon as it is certain to be before it.

        The marker is read and returned; None at the end of the text.
        """
        known = markers if isinstance(markers, Markers) else markers_of(markers)
        while True:
            place, found = known.find(self._text, self._pos, self.ended)
            self._read_to(place, into)
            if found is not None:
                self._pos += len(found)
                return found
            if self.ended:
                return None
            if self._pos == len(self._text):
                self._idle = known.first, into
            yield
            self._idle = None

    def mark(self, into: Into | None = None) -> Steps[str]:
        """The next character that is no white space, what stands before it read; empty at the end of the text."""
        while True:
            blank = BLANK.match(self._text, self._pos)
            if blank is not None:
                self._read_to(blank.end(), into)
            if self._pos < len(self._text) or self.ended:
                return self._text[self._pos : self._pos + 1]
            yield

    def take(self, form: re.Pattern[str]) -> re.Match[str] | None:
        """Reads a match of the pattern at this position, if text follows it; else reads nothing and gives None."""
        match = form.match(self._text, self._pos)
        if match is None or match.end() >= len(self._text):
            return None
        self._pos = match.end()
        return match

    def peek(self, length: int = 1) -> Steps[str]:
        """The next characters without reading them: fewer only at the end of the text."""
        while len(self._text) - self._pos < length and not self.ended:
            yield
        return self._text[self._pos : self._pos + length]

    def skip(self, length: int, into: Into | None = None) -> None:
        """Read characters that were peeked at."""
        self._read_to(min(self._pos + length, len(self._text)), into)

    def accept(self, markers: tuple[str, ...] | Markers) -> Steps[str | None]:
        """Read the marker that stands exactly here, and return it. Without one, read nothing and return None."""
        known = markers if isinstance(markers, Markers) else markers_of(markers)
        while True:
            settled, found = known.at(self._text, self._pos, self.ended)
            if settled and (self._pos < len(self._text) or self.ended):
                self._pos += len(found or "")
                return found
            yield

    def take_while(self, run: re.Pattern[str], into: Into | None = None, most: int = ENDLESS) -> Steps[bool]:
        """Read while a pattern such as `\\w+` goes on, at most `most` characters. Returns whether anything was read.

        A limit within the pattern would hold for each piece of the text and not for the whole.
        """
        left = most
        while True:
            match = run.match(self._text, self._pos, self._pos + left)
            if match is not None and match.end() > self._pos:
                left -= match.end() - self._pos
                self._read_to(match.end(), into)
            if self._pos < len(self._text) or self.ended or not left:
                return left < most
            yield

    def skip_space(self, into: Into | None = None) -> Steps[bool]:
        return (yield from self.take_while(SPACE, into))

    def json_value(self, into: Into, stops: tuple[str, ...] = ()) -> Steps[bool]:
        """Exactly one JSON value, after white space; whether it is complete.

        Brackets and `stops` inside strings mean nothing. A stop outside of a string ends an incomplete value
        and is not read. What stands between the brackets is not judged.
        """
        first = yield from self.mark()
        if first not in OPENING:
            return (yield from self.take_while(SCALAR, into)) and bool(first)
        if (small := self.take(FLAT)) is not None:
            into(small.group())
            return True
        known = markers_of((*OPENING, "}", "]", *stops))
        depth, quote, begin = 0, "", self._pos
        complete: bool | None = None
        while complete is None:
            found: str | None = None
            if quote:
                if self._through_string(quote):
                    found, quote = quote, ""
            else:
                self._pos, found = known.find(self._text, self._pos, self.ended)
                if found in stops:
                    complete = False
                elif found is not None:
                    self._pos += 1
                    quote = found if found in IN_STRING else ""
                    depth += 1 if found in "{[" else -1 if found in "}]" else 0
            if found is None and self.ended:
                complete = False
            elif found is None:
                self._hand_out(begin, into)
                if quote and self._pos == len(self._text):
                    self._idle = IN_STRING[quote], into
                yield
                self._idle = None
                begin = self._pos
            elif complete is None and not quote and depth <= 0:
                complete = True
        self._hand_out(begin, into)
        return complete

    def string_rest(self, quote: str, into: Into) -> Steps[bool]:
        """A string whose opening quote was read, with its closing quote; whether there is one."""
        begin = self._pos
        while not (closed := self._through_string(quote)) and not self.ended:
            self._hand_out(begin, into)
            if self._pos == len(self._text):
                self._idle = IN_STRING[quote], into
            yield
            self._idle = None
            begin = self._pos
        self._hand_out(begin, into)
        return closed

    def _hand_out(self, begin: int, into: Into) -> None:
        if self._pos > begin:
            into(self._text[begin : self._pos])

    def _through_string(self, quote: str) -> bool:
        """Go on in a string as far as there is text; whether it ends there."""
        pattern = IN_STRING[quote]
        while True:
            match = pattern.search(self._text, self._pos)
            if match is None:
                self._pos = len(self._text)
                return False
            self._pos = match.end()
            if match.group() == quote:
                return True
            if self._pos == len(self._text):  # a backslash, and what it escapes is yet to come
                self._pos -= 0 if self.ended else 1
                return False
            self._pos += 1


def drive(steps: Steps[Any]) -> bool:
    """Runs a reader as far as there is text; whether it needs more."""
    return next(steps, _DONE) is not _DONE


_DONE = object()
