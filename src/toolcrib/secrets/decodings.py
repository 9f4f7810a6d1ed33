"""Decodes the escapes in a text (URL, JSON, HTML, terminal) and keeps where each part of it stood.

Programs differ in what they escape, so whatever stands behind `%`, a backslash or `&` is decoded; terminal sequences,
zero-width characters are dropped, and white space that is not ASCII becomes a space. A text that was escaped twice is
decoded twice.

A terminal sequence may hold a value (the address of a link), or take the first letter of the text behind it. So a text
with other sequences than colours is decoded a second time, and these are left as they are.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator

from toolcrib.dataclass import dataclass, field

__all__ = ["MAX_DEPTH", "Decoding", "decodings", "may_have_escapes", "start_of_unfinished_escape"]

MAX_DEPTH = 3  # how often a text is decoded

# UTF-8 of white space, and of lines that are drawn around a table, several of which are one space.
_BLANK = re.compile(
    rb"\xe2(?:[\x94\x95][\x80-\xbf\xe2]*|\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xc2[\x85\xa0]|\xe3\x80\x80|\xe1\x9a\x80"
)
# UTF-8 of these, and of what `visible.INVISIBLE` matches. It begins with a set, which is compared fast.
_BLANK_OR_UNSEEN = (
    rb"[\xc2\xcd\xd8\xe1-\xe3\xef\xf0\xf3](?:"
    rb"(?<=\xc2)[\x80-\xa0\xad]|(?<=\xcd)\x8f|(?<=\xd8)\x9c"
    rb"|(?<=\xe1)(?:\x85[\x9f\xa0]|\x9a\x80|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])"
    rb"|(?<=\xe2)(?:\x80[\x80-\x8f\xa8-\xaf]|\x81[\x9f-\xaf]|[\x94\x95][\x80-\xbf](?:\xe2[\x94\x95][\x80-\xbf])*+|\xa0\x80)"
    rb"|(?<=\xe3)(?:\x80\x80|\x85\xa4)|(?<=\xef)(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xbb])"
    rb"|(?<=\xf0)(?:\x93\x90[\xb0-\xbf]|\x9b\xb2[\xa0-\xa3]|\x9d\x85[\x99\xb3-\xba])|(?<=\xf3)\xa0[\x80-\xbf]{2})"
)
_BEGUN = (  # the first bytes of these
    rb"[\xc2\xcd\xd8]|\xe1[\x85\x9a\x9e\xa0]?|\xe2[\x80\x81\x94\x95\xa0]?|\xe3[\x80\x85]?|\xef[\xb8\xbb\xbe\xbf]?"
    rb"|\xf0(?:\x93\x90?|\x9b\xb2?|\x9d\x85?)?|\xf3(?:\xa0[\x80-\xbf]?)?"
)
_TERMINAL = rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[()][0AB])"
_TEXT_ESCAPE = (
    rb"""%(?P<url>[0-9A-Fa-f]{2})
    |\\u[dD](?P<high>[89abAB][0-9A-Fa-f]{2})\\u[dD](?P<low>[c-fC-F][0-9A-Fa-f]{2})
    |\\(?:u(?P<u4>[0-9A-Fa-f]{4})|u\{(?P<uc>[0-9A-Fa-f]{1,6})\}|U(?P<u8>[0-9A-Fa-f]{8}))
    |\\x(?P<hex>[0-9A-Fa-f]{2})|\\(?P<octal>[0-3][0-7]{2})|\\(?P<one>[^\n])
    |&(?P<entity>\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});
    |"""
    + _BLANK_OR_UNSEEN
)
_ESCAPE = re.compile(_TEXT_ESCAPE + rb"|" + _TERMINAL, re.VERBOSE)
_COLOUR = rb"\[[0-9;:]{1,64}m"  # behind an escape; colours stand inside of values
_BUT_TERMINAL = re.compile(_TEXT_ESCAPE + rb"|\x1b" + _COLOUR, re.VERBOSE)
_MORE_THAN_COLOURS = re.compile(rb"\x1b(?!%b)" % _COLOUR)
# A text that contains none of these contains no escape. They are looked for as numbers: bytes in bytes take longer,
# as Python first tries to read them as a number.
_HINTS = b"%\\&\x1b"
_HIDDEN_OR_BLANK = re.compile(_BLANK_OR_UNSEEN)
_UNFINISHED = re.compile(
    rb"""(?:%[0-9A-Fa-f]?
    |(?<!\\u[dD][89abAB][0-9A-Fa-f]{2})  # the second half of a pair does not begin anything
     \\(?:x[0-9A-Fa-f]?|[uU]\{?[0-9A-Fa-f]{0,7}(?:\\(?:u[0-9A-Fa-f]{0,3})?)?|[0-3][0-7]?)?
    |&(?:[A-Za-z]{0,8}|\#[xX]?[0-9A-Fa-f]{0,7})|\x1b(?:[()]|\[[ -?]{0,72}|\][^\x07\x1b]{0,512}\x1b?)?
    |"""
    + _BEGUN
    + rb")\Z",
    re.VERBOSE,
)
_ONE = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"b": b"",
    b"f": b"",
    b"v": b"",
    b"a": b"",
    b"0": b"",
    b"e": b"",
}


@dataclass(slots=True)
class Decoding:
    """A decoded text. `below` is the text that it was decoded from; None for the text as it came.

    `_here` and `_there` list where each stretch begins in this text and in the text below.
    """

    data: bytes
    below: Decoding | None = None
    escapes: re.Pattern[bytes] = _ESCAPE
    depth: int = 0
    _here: list[int] = field(default_factory=list[int])
    _there: list[int] = field(default_factory=list[int])

    def decoded(self) -> Decoding | None:
        """This text with its escapes decoded; None if it has none."""
        if not may_have_escapes(self.data):
            return None
        decoded = self.escapes.sub(_decode, self.data)
        return Decoding(decoded, self, self.escapes, self.depth + 1) if decoded != self.data else None

    def origin(self, index: int, *, end: bool = False) -> int:
        """The position in the original text of the byte at `index`; with `end`, the position where the byte
        before it ended.
        """
        if self.below is None:
            return index
        if not self._here:
            self._map()
        place = bisect_right(self._here, index - 1 if end else index) - 1
        offset = index - self._here[place]
        start, stop = self._there[place], self._there[place + 1]
        inside = start + offset
        if place % 2:  # an escape: all of it, or nothing
            inside = stop if end else start
        return self.below.origin(inside, end=end)

    def _map(self) -> None:
        """List the stretches: plain text (even numbers) and escapes (odd numbers) alternate."""
        assert self.below is not None
        here = there = 0
        for match in self.escapes.finditer(self.below.data):
            plain = match.start() - there
            self._here += (here, here + plain)
            self._there += (there, match.start())
            here += plain + len(_decode(match))
            there = match.end()
        self._here.append(here)
        self._there += (there, len(self.below.data))


def may_have_escapes(data: bytes) -> bool:
    """Whether a text contains a sign with which escapes begin."""
    for hint in _HINTS:
        if hint in data:
            return True
    return not data.isascii() and _HIDDEN_OR_BLANK.search(data) is not None


def decodings(data: bytes, *, of_terminals: bool = True) -> Iterator[Decoding]:
    """The text as it is, then decoded once, twice, …, as long as that changes it.

    A caller may shorten the `data` of one; the next is decoded from what is left. `of_terminals` is False for bytes
    that are no text: they contain the escape character by accident, and would be decoded a second time for nothing.
    """
    decoding: Decoding | None = Decoding(data)
    of_terminal = False
    while decoding is not None and decoding.depth <= MAX_DEPTH:
        yield decoding
        of_terminal = of_terminal or (of_terminals and _MORE_THAN_COLOURS.search(decoding.data) is not None)
        decoding = decoding.decoded()
    decoding = Decoding(data, escapes=_BUT_TERMINAL).decoded() if of_terminal else None
    while decoding is not None and decoding.depth <= MAX_DEPTH:
        yield decoding
        decoding = decoding.decoded()


def start_of_unfinished_escape(data: bytes) -> int:
    """Where an escape begins that the end of the text cuts off; the text's length if there is none."""
    tail = max(0, len(data) - 600)
    found = _UNFINISHED.search(data, tail)
    return found.start() if found else len(data)


def _decode(match: re.Match[bytes]) -> bytes:
    kind, text = match.lastgroup, match[match.lastgroup or 0]
    if kind in ("url", "hex"):
        return bytes([int(text, 16)])
    if kind == "one":
        return _ONE.get(text, text)
    if kind == "octal":
        return bytes([int(text, 8)])
    if kind == "low":
        high = int(match["high"], 16) & 0x3FF
        return chr(0x10000 + (high << 10) + (int(text, 16) & 0x3FF)).encode()
    if kind in ("u4", "uc", "u8"):
        code = int(text, 16)
        return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else b""
    if kind == "entity":
        return html.unescape(f"&{text.decode()};").encode("utf-8", "surrogatepass")
    return (
        b" " if _BLANK.fullmatch(match[0]) else b""
    )  # nothing for a terminal's sequence, and for what is not seen
