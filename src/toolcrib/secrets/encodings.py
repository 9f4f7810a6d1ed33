"""The shapes in which a value may come back: its encodings, seen as letters and digits alone.

Text and values are compared *flat*: lower case, only letters, digits and what is not ASCII. So one encoding stands
for every spelling that differs in case, white space, line breaks, quotes or separators (wrapped base64, `73:33:63`,
shell quoting, UTF-16, letters with blanks between). A value with fewer than `LONG` such characters would meet ordinary
words; it is looked for in exact spellings instead.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

SHORTEST = 6  # bytes; a shorter value cannot be told from ordinary text
LONG = 12
ENCODED = 7  # so many characters of an encoding already are no word
LINE = 16  # a line of a value of several lines is a value of its own from this length on

_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
DROPPED = bytes(code for code in range(128) if code not in _KEPT)
LOWERED = bytes(range(256)).lower()
_PAD64 = ((0, 0), (2, 3), (3, 2))  # characters that the bytes before share, after (bytes % 3) at the end
_PAD32 = (0, 2, 4, 5, 7)


@dataclass(slots=True, frozen=True)
class Encoding:
    """What is looked for, whose it is, and what is masked beside it."""

    text: bytes
    name: str
    before: bytes = b""  # the value's own first characters that flattening dropped
    after: bytes = b""


def flatten(data: bytes) -> bytes:
    """Only letters and digits in lower case, and what is not ASCII. Fast: one pass in C.

    >>> flatten(b"S3-cr\\n'e t'")
    b's3cret'
    """
    return data.translate(LOWERED, DROPPED)


def encodings_of(name: str, value: str) -> tuple[list[Encoding], list[Encoding]]:
    """What to look for in flat text, and what to look for as it stands."""
    flat: dict[bytes, Encoding] = {}
    exact: dict[bytes, Encoding] = {}
    lines = [line.strip() for line in value.splitlines()]
    more = [line for line in lines if len(line) >= LINE and not line.startswith("-----")]
    stripped = value.strip()  # a line break at the end of a variable or a file is seldom printed
    for part in dict.fromkeys([value, *([stripped] if len(stripped) >= SHORTEST else ()), *more]):
        for turned in (part, part[::-1]):
            raw = turned.encode("utf-8", "surrogatepass")
            letters = flatten(raw)
            if len(letters) >= LONG:
                flat.setdefault(letters, Encoding(letters, name, *_dropped_ends(raw)))
            else:
                for spelling in _spellings(turned):
                    exact.setdefault(spelling, Encoding(spelling, name))
        for text in _encodings(part):
            letters = flatten(text)
            if len(letters) >= ENCODED:
                flat.setdefault(letters, Encoding(letters, name))
            elif len(text) >= SHORTEST:
                exact.setdefault(text, Encoding(text, name))
    return list(flat.values()), list(exact.values())


def _encodings(value: str) -> Iterator[bytes]:
    """What encoders make of the value. Case and separators are those of nobody: long encodings are looked for flat."""
    raw = value.encode("utf-8", "surrogatepass")
    for data in (raw, value.encode("utf-16-le", "surrogatepass")):
        yield data.hex().encode()
        yield data.hex().upper().encode()
        yield from _base64(data)
    yield from _base32(raw)
    for shape in ("\\x%02x", "0x%02x,", "%d,", "\\u00%02x"):
        yield "".join(shape % byte for byte in raw).encode()


def _base64(data: bytes) -> Iterator[bytes]:
    """As it stands in a longer base64 text: at each of three offsets, without what neighbours have a part in."""
    for offset in range(3):
        first = _PAD64[offset][0]
        last = _PAD64[(len(data) + offset) % 3][1]
        text = base64.b64encode(bytes(offset) + data)
        yield text[first : len(text) - last]
        yield text[first : len(text) - last].translate(bytes.maketrans(b"+/", b"-_"))


def _base32(data: bytes) -> Iterator[bytes]:
    for offset in range(5):
        text = base64.b32encode(bytes(offset) + data)
        whole = (len(data) + offset) * 8 // 5  # characters that the value alone decides
        yield text[_PAD32[offset] : whole]


def _spellings(value: str) -> Iterator[bytes]:
    """How programs write a value that holds more than letters and digits."""
    raw = value.encode("utf-8", "surrogatepass")
    inner = json.dumps(value)[1:-1]
    for text in (
        value,
        inner,
        json.dumps(value, ensure_ascii=False)[1:-1],
        inner.replace("/", "\\/"),
        html.escape(value),
        html.escape(value, quote=False),
        html.escape(value).replace("&#x27;", "&#39;"),
        shlex.quote(value),
        shlex.quote(value).strip("'"),
        value.replace("'", "'\\''"),
        repr(value)[1:-1],
        re.sub(r"([^A-Za-z0-9_])", r"\\\1", value),
        "".join(f"%{code:02X}" for code in raw),
        quote(raw),
        quote(raw, safe=""),
        quote(raw, safe="!'()*~"),
        quote_plus(raw),
    ):
        yield text.encode("utf-8", "surrogatepass")
        if "%" in text:
            yield re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), text).encode("utf-8", "surrogatepass")
    yield value.encode("utf-16-le", "surrogatepass")


def _dropped_ends(text: bytes) -> tuple[bytes, bytes]:
    bare = text.strip(DROPPED)
    start = text.index(bare)
    return text[:start], text[start + len(bare) :]
