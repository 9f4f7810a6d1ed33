"""Reads what `xxd`, `hexdump` and `od` print back into bytes, so that a secret in a dump is found across its lines.

A table of numbers may be a dump in several formats, and may be long. So lines that follow each other are read at once,
and which bytes stand in which line is found out only where a secret was found.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

from toolcrib.dataclass import dataclass
from toolcrib.secrets.encodings import MIN_VALUE

__all__ = ["Dump", "dumps_in", "may_hold_dumps"]

# The one group that matches holds the bytes, without a column that shows them as text.
LINE = re.compile(
    rb"""(?m)^[ \t]*(?:0x)?[0-9A-Fa-f]{4,16}(?:
    :[ \t]{1,8}(?=[^\n]{2})((?:[^ \n]|[ ](?![ ])){0,400}+)(?:[ ]{2}[^\n]*)?  # xxd
    |[ \t]{1,8}(?=[^\n]{2,400}$)(?:
        ([^\n]*[^\n|<\s])\s*?
        |((?:(?:[0-9A-Fa-f]{2}){1,8}+[ \t]++)++)(?:\|[^\n]*\||>[^\n]*<)\s*?
        |([^\n]*)[ ]{2}(?:\|(?:[^\n]*\|)?|>[^\n]*<)\s*?
        |([^\n]*)
    ))$""",
    re.VERBOSE,
)
# A line of `xxd -e` whose last word is short: it stands at the right end of its column. And all lines of such a dump.
WORDS = rb"(?m)^[0-9A-Fa-f]{4,16}:((?:[ ][0-9A-Fa-f]{4,16})*+(?:[ ]{3,}[0-9A-Fa-f]{2,14})%b)[ ]{2}[^\n]*$"
SHORT_WORD, OF_WORDS = re.compile(WORDS % b""), re.compile(WORDS % b"?")
# Lines without the number of their first byte, as `od -An` prints them; the last of them may be short.
BARE = re.compile(
    rb"(?m)^[ \t]*+(?:[0-9A-Fa-f]{2,8}(?:[ \t]+[0-9A-Fa-f]{2,8})*|\S{1,3}(?:[ \t]{2,}\S{1,3})*)[ \t]*$"
)
SEVERAL = rb"[0-9A-Fa-f]{2,8}+[ \t]++[0-9A-Fa-f]{2,8}+[ \t]|\S{1,3}+[ \t]{2,}+\S{1,3}+[ \t]{2}"
BEGINS_BARE = re.compile(rb"(?m)^[ \t]*+(?:" + SEVERAL + rb")")
BEGINS = re.compile(  # any such line behind a line break, or a string in JSON that may be one
    rb'[\n"][ \t]*+(?:(?:0x)?[0-9A-Fa-f]{4,16}+:?[ \t]|' + SEVERAL + rb")"
)
SPACE, TAB = b" \t"
CHARACTERS = {
    b"\\n": b"\n",
    b"\\t": b"\t",
    b"\\r": b"\r",
    b"\\0": b"\0",
    b"nl": b"\n",
    b"ht": b"\t",
    b"sp": b" ",
    b"cr": b"\r",
}


def _hex(body: bytes) -> bytes:
    return bytes.fromhex(body.decode())


def _hex_words(body: bytes) -> bytes:
    """The bytes of words whose last byte is printed first."""
    words = body.split()
    size = len(words[0]) // 2
    if any(len(word) != 2 * size for word in words):
        return b"".join(_hex(word)[::-1] for word in words)
    data = _hex(body)
    turned = bytearray(len(data))
    for place in range(size):
        turned[place::size] = data[size - 1 - place :: size]
    return bytes(turned)


def _numbers(size: int, base: int) -> Callable[[bytes], bytes]:
    def read(body: bytes) -> bytes:
        words = body.split()
        numbers = list(map(int, words)) if base == 10 else [int(word, base) for word in words]
        return bytes(numbers) if size == 1 else struct.pack(f"<{len(numbers)}H", *numbers)

    return read


def _characters(body: bytes) -> bytes:
    return b"".join(
        word if len(word) == 1 else CHARACTERS[word] if word in CHARACTERS else bytes([int(word, 8)])
        for word in body.split()
    )


class Format(NamedTuple):
    """A format of words. `lines` matches lines that hold such words only, and `read` gives the bytes of the words."""

    lines: re.Pattern[bytes]
    read: Callable[[bytes], bytes]


def _format(word: bytes, read: Callable[[bytes], bytes], first: bytes = b"") -> Format:
    blank = rb"[ \t\r\f\v]"
    line = rb"(?:%b)(?:%b++(?:%b))*+%b*+$" % (word, blank, word, blank)
    return Format(re.compile(rb"(?m)^%b*+%b%b(?:\n%b*+%b)*+" % (blank, first, line, blank, line)), read)


HEX = rb"(?:[0-9A-Fa-f]{2}){1,8}+"
BYTE = rb"(?!\d{6})0{0,3}(?:1\d\d|2[0-4]\d|25[0-5]|\d\d?)(?!\d)"
WORD = rb"(?!\d{6})0{0,3}(?:[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]|\d{1,4})(?!\d)"
OCTAL = rb"[0-3][0-7]{2}"
FORMATS = (
    _format(HEX, _hex),
    _format(HEX, _hex_words, first=rb"(?=\S{3})"),
    _format(rb"[01]{8}", _numbers(1, 2)),
    _format(OCTAL, _numbers(1, 8)),
    _format(rb"[01][0-7]{5}", _numbers(2, 8)),
    _format(BYTE, _numbers(1, 10)),
    _format(WORD, _numbers(2, 10)),
    _format(rb"(?:%b|%b)(?!\S)|\S(?!\S)" % (OCTAL, b"|".join(map(re.escape, CHARACTERS))), _characters),
)


@dataclass(slots=True)
class Dump:
    """The bytes that the lines of a dump stand for. Only `place` finds out which line holds which bytes."""

    data: bytes
    format: Format
    bodies: list[bytes]
    places: list[tuple[int, int]]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """The span of the whole lines that hold these bytes, since another column may show the bytes as text."""
        ends = list(accumulate(len(self.format.read(body)) for body in self.bodies))
        first, last = bisect_right(ends, start), bisect_left(ends, end)
        return self.places[first][0], self.places[last][1]


def may_hold_dumps(data: bytes) -> bool:
    """Whether a text, or a string in it if it is JSON, may contain lines of a dump."""
    if SPACE not in data and TAB not in data:  # one of which stands in every line of a dump
        return False
    return BEGINS.search(b"\n" + data) is not None


def dumps_in(data: bytes) -> Iterator[Dump]:
    """Every reading of the dumps in a text. A dump is lines that follow each other and are read in the same way."""
    if LINE.search(data) is not None:
        yield from _dumps_of(LINE, data)
        if SHORT_WORD.search(data) is not None:
            yield from _dumps_of(OF_WORDS, data)
    if BEGINS_BARE.search(data) is not None:
        yield from _dumps_of(BARE, data)


def _dumps_of(line: re.Pattern[bytes], data: bytes) -> Iterator[Dump]:
    """Every reading of the lines that an expression matches."""
    bodies: list[bytes] = []
    places: list[tuple[int, int]] = []
    for match in line.finditer(data):
        if places and match.start() != places[-1][1] + 1:
            yield from _readings(bodies, places)
            bodies, places = [], []
        bodies.append(match[match.lastindex or 0])
        places.append(match.span())
    yield from _readings(bodies, places)


def _readings(bodies: list[bytes], places: list[tuple[int, int]]) -> Iterator[Dump]:
    """A dump for each run of these successive lines that may be written in one of the formats."""
    whole = b"\n".join(bodies)
    for form in FORMATS:
        at = line = 0
        for run in form.lines.finditer(whole):
            line += whole.count(b"\n", at, run.start())
            first, at = line, run.start()
            read = form.read(run[0])
            if len(read) >= MIN_VALUE:
                last = first + run[0].count(b"\n") + 1
                yield Dump(read, form, bodies[first:last], places[first:last])
