"""The same text with its escapes undone, and where each stretch of it stood: URL, JSON, HTML and terminal escapes.

Encoders differ in what they escape, so nothing is enumerated: what stands behind `%`, a backslash or `&` is read back,
terminal sequences and invisible characters are dropped. What is escaped twice is read twice.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

LEVELS = 3

_ESCAPE = re.compile(
    rb"""%(?P<url>[0-9A-Fa-f]{2})
    |\\u[dD](?P<high>[89abAB][0-9A-Fa-f]{2})\\u[dD](?P<low>[c-fC-F][0-9A-Fa-f]{2})
    |\\(?:u(?P<u4>[0-9A-Fa-f]{4})|u\{(?P<uc>[0-9A-Fa-f]{1,6})\}|U(?P<u8>[0-9A-Fa-f]{8}))
    |\\x(?P<hex>[0-9A-Fa-f]{2})|\\(?P<octal>[0-3][0-7]{2})|\\(?P<one>[^\n])
    |&(?P<entity>\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});
    |\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[()][0AB])
    |\xe2\x80[\x8b-\x8f]|\xe2\x81\xa0|\xef\xbb\xbf|\xc2\xad""",
    re.VERBOSE,
)
_HINTS = (b"%", b"\\", b"&", b"\x1b", b"\xe2\x80", b"\xe2\x81", b"\xef\xbb", b"\xc2\xad")
_UNFINISHED = re.compile(
    rb"""(?:%[0-9A-Fa-f]?|\\(?:x[0-9A-Fa-f]?|[uU]\{?[0-9A-Fa-f]{0,7}(?:\\(?:u[0-9A-Fa-f]{0,3})?)?|[0-3][0-7]?)?
    |&(?:[A-Za-z]{0,8}|\#[xX]?[0-9A-Fa-f]{0,7})|\x1b(?:[()]|\[[ -?]{0,72}|\][^\x07\x1b]{0,512}\x1b?)?
    |\xe2[\x80\x81]?|\xef\xbb?|\xc2)\Z""",
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
    """Decoded bytes, and for each stretch of them where it begins here and in the level below."""

    data: bytes
    below: Decoding | None = None
    _here: list[int] = field(default_factory=list[int])
    _there: list[int] = field(default_factory=list[int])

    def undone(self) -> Decoding | None:
        """The next decoding; None if there is no escape in this one."""
        if not any(hint in self.data for hint in _HINTS):
            return None
        decoded = _ESCAPE.sub(_undone, self.data)
        return Decoding(decoded, self) if decoded != self.data else None

    def origin(self, index: int, *, end: bool = False) -> int:
        """Where the byte at `index` stood in the text as it came; with `end`, where the one before it ended."""
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
        """Stretches of plain text (even) and escapes (odd) take turns."""
        assert self.below is not None
        here = there = 0
        for match in _ESCAPE.finditer(self.below.data):
            plain = match.start() - there
            self._here += (here, here + plain)
            self._there += (there, match.start())
            here += plain + len(_undone(match))
            there = match.end()
        self._here.append(here)
        self._there += (there, len(self.below.data))


def decodings(data: bytes) -> Iterator[Decoding]:
    """The text as it stands, then with its escapes undone once, twice, …, as long as that changes it."""
    decoding: Decoding | None = Decoding(data)
    for _ in range(LEVELS + 1):
        if decoding is not None:
            yield decoding
            decoding = decoding.undone()


def unfinished(data: bytes) -> int:
    """Where an escape begins that the end of the text cuts off; the length where there is none."""
    tail = max(0, len(data) - 600)
    found = _UNFINISHED.search(data, tail)
    return found.start() if found else len(data)


def _undone(match: re.Match[bytes]) -> bytes:
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
    return b""  # a terminal's sequence, or what cannot be seen
