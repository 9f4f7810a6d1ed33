"""Decodes the escapes in a text (URL, JSON, HTML, terminal) and keeps where each part of it stood.

Programs differ in what they escape, so whatever stands behind `%`, a backslash or `&` is decoded; terminal sequences
and zero-width characters are dropped. A text that was escaped twice is decoded twice.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator

from toolcrib.dataclass import dataclass, field
from toolcrib.visible import ZERO_WIDTH

__all__ = ["MAX_DEPTH", "Decoding", "decodings", "may_have_escapes", "start_of_unfinished_escape"]

MAX_DEPTH = 3  # how often a text is decoded

_ZERO_WIDTH = [char.encode() for char in ZERO_WIDTH]
_ZERO_WIDTH_BEGUN = sorted({char[:size] for char in _ZERO_WIDTH for size in range(1, len(char))})
_ESCAPE = re.compile(
    rb"""%(?P<url>[0-9A-Fa-f]{2})
    |\\u[dD](?P<high>[89abAB][0-9A-Fa-f]{2})\\u[dD](?P<low>[c-fC-F][0-9A-Fa-f]{2})
    |\\(?:u(?P<u4>[0-9A-Fa-f]{4})|u\{(?P<uc>[0-9A-Fa-f]{1,6})\}|U(?P<u8>[0-9A-Fa-f]{8}))
    |\\x(?P<hex>[0-9A-Fa-f]{2})|\\(?P<octal>[0-3][0-7]{2})|\\(?P<one>[^\n])
    |&(?P<entity>\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});
    |\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[()][0AB])
    |"""
    + b"|".join(_ZERO_WIDTH),
    re.VERBOSE,
)
# A text that contains none of these contains no escape.
_HINTS = (b"%", b"\\", b"&", b"\x1b", *sorted({char[:2] for char in _ZERO_WIDTH}))
_UNFINISHED = re.compile(
    rb"""(?:%[0-9A-Fa-f]?
    |(?<!\\u[dD][89abAB][0-9A-Fa-f]{2})  # the second half of a pair does not begin anything
     \\(?:x[0-9A-Fa-f]?|[uU]\{?[0-9A-Fa-f]{0,7}(?:\\(?:u[0-9A-Fa-f]{0,3})?)?|[0-3][0-7]?)?
    |&(?:[A-Za-z]{0,8}|\#[xX]?[0-9A-Fa-f]{0,7})|\x1b(?:[()]|\[[ -?]{0,72}|\][^\x07\x1b]{0,512}\x1b?)?
    |"""
    + b"|".join(_ZERO_WIDTH_BEGUN)
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
    _here: list[int] = field(default_factory=list[int])
    _there: list[int] = field(default_factory=list[int])

    def decoded(self) -> Decoding | None:
        """This text with its escapes decoded; None if it has none."""
        if not may_have_escapes(self.data):
            return None
        decoded = _ESCAPE.sub(_decode, self.data)
        return Decoding(decoded, self) if decoded != self.data else None

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
        for match in _ESCAPE.finditer(self.below.data):
            plain = match.start() - there
            self._here += (here, here + plain)
            self._there += (there, match.start())
            here += plain + len(_decode(match))
            there = match.end()
        self._here.append(here)
        self._there += (there, len(self.below.data))


def may_have_escapes(data: bytes) -> bool:
    """Whether a text contains a sign with which escapes begin."""
    for hint in _HINTS:  # noqa: SIM110 - `any` takes three times as long
        if hint in data:
            return True
    return False


def decodings(data: bytes) -> Iterator[Decoding]:
    """The text as it is, then decoded once, twice, …, as long as that changes it."""
    decoding: Decoding | None = Decoding(data)
    for _ in range(MAX_DEPTH + 1):
        if decoding is not None:
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
    return b""  # a terminal's sequence or a zero-width character
