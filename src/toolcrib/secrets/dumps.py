"""Reads what `xxd`, `hexdump` and `od` print back into bytes, so that a secret in a dump is found across its lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from toolcrib.dataclass import dataclass, field

__all__ = ["Dump", "dumps_in", "may_hold_dumps"]

LINE = re.compile(rb"(?m)^[ \t]*(?:0x)?[0-9A-Fa-f]{4,16}(?P<colon>:?)[ \t]{1,8}(?P<body>[^\n]{2,400})$")
# Lines without the number of their first byte, as `od -An` prints them; the last of them may be short.
BARE = re.compile(
    rb"(?m)^[ \t]*+(?P<body>[0-9A-Fa-f]{2,8}(?:[ \t]+[0-9A-Fa-f]{2,8})*|\S{1,3}(?:[ \t]{2,}\S{1,3})*)[ \t]*$"
)
SEVERAL = rb"(?:[0-9A-Fa-f]{2,8}[ \t]+){2}|(?:\S{1,3}[ \t]{2,}){2}"
BEGINS_BARE = re.compile(rb"(?m)^[ \t]*+(?:" + SEVERAL + rb")")
IN_QUOTES = re.compile(  # a string that may be such a line
    rb'"[ \t]*(?:(?:0x)?[0-9A-Fa-f]{4,16}:?[ \t]|' + SEVERAL + rb")"
)
HEX = re.compile(rb"(?:[0-9A-Fa-f]{2}){1,8}")
BINARY = re.compile(rb"[01]{8}")
OCTAL = re.compile(rb"[0-3][0-7]{2}")
OCTAL_WORD = re.compile(rb"[01][0-7]{5}")
DECIMAL = re.compile(rb"\d{1,5}")
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


@dataclass(slots=True)
class Dump:
    """Bytes that lines of a dump stand for. `lines` say where each line's bytes begin here, and where it stands."""

    data: bytearray = field(default_factory=bytearray)
    lines: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])

    def place(self, start: int, end: int) -> tuple[int, int]:
        """The whole lines that hold these bytes: a column beside them may show them as text."""
        first = max(line for line in self.lines if line[0] <= start)
        last = max(line for line in self.lines if line[0] < end)
        return first[1], last[2]


def may_hold_dumps(data: bytes) -> bool:
    """Whether a text, or a string of the JSON that it is, may be lines of a dump."""
    return any(found.search(data) is not None for found in (IN_QUOTES, LINE, BEGINS_BARE))


def dumps_in(data: bytes) -> Iterator[Dump]:
    """Every reading of the dumps in a text. A dump is lines that follow each other and are read in the same way."""
    yield from _dumps_of(LINE.finditer(data))
    if BEGINS_BARE.search(data) is not None:
        yield from _dumps_of(BARE.finditer(data))


def _dumps_of(lines: Iterable[re.Match[bytes]]) -> Iterator[Dump]:
    open_dumps: dict[str, Dump] = {}
    after = -1
    for line in lines:
        readings = dict(_readings(line["body"], bool(line.groupdict().get("colon"))))
        for kind in [kind for kind in open_dumps if kind not in readings or line.start() > after + 1]:
            yield open_dumps.pop(kind)
        for kind, read in readings.items():
            dump = open_dumps.setdefault(kind, Dump())
            dump.lines.append((len(dump.data), line.start(), line.end()))
            dump.data += read
        after = line.end()
    yield from open_dumps.values()


def _readings(body: bytes, colon: bool) -> Iterator[tuple[str, bytes]]:
    """The bytes of one line in each format that it may be written in."""
    for sign, end in ((b"  |", b"|"), (b"  >", b"<")):  # the column that shows them as text
        if body.rstrip().endswith(end) and sign in body:
            body = body[: body.rindex(sign)]
    words = (body.partition(b"  ")[0] if colon else body).split()
    if not words:
        return
    if all(map(HEX.fullmatch, words)):
        parts = [bytes.fromhex(word.decode()) for word in words]
        yield "hex", b"".join(parts)
        if len(words[0]) > 2:
            yield "words", b"".join(part[::-1] for part in parts)
    if all(map(BINARY.fullmatch, words)):
        yield "binary", bytes(int(word, 2) for word in words)
    if all(map(OCTAL.fullmatch, words)):
        yield "octal", bytes(int(word, 8) for word in words)
    if all(map(OCTAL_WORD.fullmatch, words)):
        yield "octal words", b"".join(int(word, 8).to_bytes(2, "little") for word in words)
    if all(map(DECIMAL.fullmatch, words)):
        numbers = [int(word) for word in words]
        if max(numbers) < 256:
            yield "decimal", bytes(numbers)
        if max(numbers) < 65_536:
            yield "decimal words", b"".join(number.to_bytes(2, "little") for number in numbers)
    if all(len(word) == 1 or word in CHARACTERS or OCTAL.fullmatch(word) for word in words):
        yield (
            "characters",
            b"".join(
                word if len(word) == 1 else CHARACTERS[word] if word in CHARACTERS else bytes([int(word, 8)])
                for word in words
            ),
        )
