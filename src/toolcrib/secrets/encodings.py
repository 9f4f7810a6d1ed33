"""The encodings in which a secret value may come back, such as hex and base64.

Text and values are compared *flattened*: in lower case, only letters, digits and what is not ASCII. So one encoding
stands for every spelling that differs in case, white space, line breaks, quotes or separators (wrapped base64,
`73:33:63`, shell quoting, UTF-16, letters with blanks between them). A value with fewer than `MIN_FLAT` such characters
would match ordinary words; it is searched for in exact spellings instead.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import quote, quote_plus

from toolcrib.dataclass import dataclass
from toolcrib.secrets.decodings import decodings

__all__ = ["MIN_VALUE", "SecretEncoding", "encodings_of", "flatten"]

MIN_VALUE = 6  # bytes; a shorter value cannot be told from ordinary text
MIN_FLAT = 12  # characters of a flattened value
MIN_ENCODED = 7  # characters of an encoding: so short a one is still no ordinary word
MIN_LINE = 16  # characters of a line that is masked by itself, of a value of several lines

_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
DROPPED = bytes(code for code in range(128) if code not in _KEPT)
LOWERED = bytes(range(256)).lower()
# By number of bytes % 3: characters at the start, and at the end, that the neighbouring bytes decide, too.
_PAD64 = ((0, 0), (2, 3), (3, 2))
_PAD32 = (0, 2, 4, 5, 7)


@dataclass(slots=True, frozen=True)
class SecretEncoding:
    """Bytes to search for, the name of the secret, and punctuation that is masked beside them."""

    text: bytes
    name: str
    before: bytes = b""  # the value's own first characters that flattening dropped
    after: bytes = b""


def flatten(data: bytes) -> bytes:
    """Letters and digits in lower case, and what is not ASCII. Fast: one pass in C.

    >>> flatten(b"S3-cr\\n'e t'")
    b's3cret'
    """
    return data.translate(LOWERED, DROPPED)


def encodings_of(name: str, value: str) -> tuple[list[SecretEncoding], list[SecretEncoding]]:
    """What to search for in flattened text, and what to search for in text as it is."""
    flat: dict[bytes, SecretEncoding] = {}
    exact: dict[bytes, SecretEncoding] = {}
    lines = [line.strip() for line in value.splitlines()]
    more = [line for line in lines if len(line) >= MIN_LINE and not line.startswith("-----")]
    stripped = value.strip()  # a line break at the end of a variable or a file is seldom printed
    for part in dict.fromkeys([value, *([stripped] if len(stripped) >= MIN_VALUE else ()), *more]):
        for turned in (part, part[::-1]):
            if len(flatten(turned.encode("utf-8", "surrogatepass"))) >= MIN_FLAT:
                for raw in _as_decoded(turned):
                    letters = flatten(raw)
                    if len(letters) >= MIN_FLAT:
                        flat.setdefault(letters, SecretEncoding(letters, name, *_dropped_ends(raw)))
            else:
                for spelling in _spellings(turned):
                    exact.setdefault(spelling, SecretEncoding(spelling, name))
        for text in _encodings(part):
            letters = flatten(text)
            if len(letters) >= MIN_ENCODED:
                flat.setdefault(letters, SecretEncoding(letters, name))
            elif len(text) >= MIN_VALUE:
                exact.setdefault(text, SecretEncoding(text, name))
    return list(flat.values()), list(exact.values())


def _as_decoded(value: str) -> Iterator[bytes]:
    """The value in each case, as it stands and as it looks in a text whose escapes were decoded.

    Flattening makes upper and lower case one for ASCII alone. What looks like an escape in the value (`C:\\new`) is
    decoded with those that a program has added (`&amp;`). An escape may stand for a character (`\\xfc`) or for a byte.
    """
    cases = (value,) if value.isascii() else (value, value.upper(), value.lower(), value.title())
    for cased in cases:
        yield from (decoding.data for decoding in decodings(cased.encode("utf-8", "surrogatepass")))
        with suppress(UnicodeEncodeError):
            yield cased.encode("latin-1")


def _encodings(value: str) -> Iterator[bytes]:
    """The value in encodings that change its letters. In long ones, case and separators do not count."""
    raw = value.encode("utf-8", "surrogatepass")
    for data in (raw, value.encode("utf-16-le", "surrogatepass"), value.encode("utf-16-be", "surrogatepass")):
        yield data.hex().encode()
        yield data.hex().upper().encode()
        yield from _base64(data)
    yield from _base32(raw)
    for shape in ("\\x%02x", "0x%02x,", "%d,", "%03o,", "%o,", "\\u00%02x"):
        yield "".join(shape % byte for byte in raw).encode()


def _base64(data: bytes) -> Iterator[bytes]:
    """The value inside a longer base64 text, at each of three offsets, without what depends on its neighbours."""
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
    """How programs quote and escape a value that contains more than letters and digits."""
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
    yield value.encode("utf-16-be", "surrogatepass")


def _dropped_ends(text: bytes) -> tuple[bytes, bytes]:
    bare = text.strip(DROPPED)
    start = text.index(bare)
    return text[:start], text[start + len(bare) :]
