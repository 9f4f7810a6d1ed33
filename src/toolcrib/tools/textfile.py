"""Detects what a file is from its first bytes: the encoding of text, an image type, or another known format."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

SNIFFED = 8_192  # bytes looked at
MOSTLY = 0.9  # share of zero bytes, at every other place, of UTF-16
TEXT_BYTES = bytes([9, 10, 13, *range(32, 256)])
MAX_CONTROL = 0.3  # share of control characters above which bytes are not text

BOMS = (  # longest first: UTF-32's begins like UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le", 4),
    (codecs.BOM_UTF32_BE, "utf-32-be", 4),
    (codecs.BOM_UTF8, "utf-8", 1),
    (codecs.BOM_UTF16_LE, "utf-16-le", 2),
    (codecs.BOM_UTF16_BE, "utf-16-be", 2),
)
IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
KINDS = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (also docx, xlsx, jar, whl)"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\x00", "xz-compressed data"),
    (b"(\xb5/\xfd", "zstd-compressed data"),
    (b"\x7fELF", "a program or library (ELF)"),
    (b"\xcf\xfa\xed\xfe", "a program or library (Mach-O)"),
    (b"MZ", "a Windows program"),
    (b"\x00asm", "a WebAssembly module"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"OggS", "Ogg audio"),
    (b"ID3", "MP3 audio"),
    (b"BM", "a BMP picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
)
CONTROL = bytes(code for code in range(32) if code not in (8, 9, 10, 12, 13, 27)) + b"\x7f"


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text encoding: a codec's name and the byte order mark, which is often empty."""

    name: str = "utf-8"
    bom: bytes = b""


def sniff(head: bytes, size: int) -> Encoding | None:
    """The encoding of a text that begins with `head` and is `size` bytes long; None if it is not text."""
    for bom, name, unit in BOMS:
        if head.startswith(bom) and (size - len(bom)) % unit == 0:
            return Encoding(name, bom)
    head = head[:SNIFFED]
    if b"\0" in head:
        return _wide(head, size)
    control = len(head) - len(head.translate(None, CONTROL))
    return None if control > MAX_CONTROL * len(head) else Encoding()


def _wide(head: bytes, size: int) -> Encoding | None:
    """UTF-16 without a byte order mark: mostly every other byte is zero, and it reads as text."""
    if size % 2:
        return None
    for name, zeros, others in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if (
            zeros.count(0) > MOSTLY * len(zeros)
            and 0 not in others
            and not others.translate(None, TEXT_BYTES)
        ):
            return Encoding(name)
    return None


def image_type(head: bytes) -> str:
    """The media type of an image that models accept; empty for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in IMAGES if head.startswith(magic)), "")


def describe(head: bytes) -> str:
    """A description of bytes that are not text."""
    return next((kind for magic, kind in KINDS if head.startswith(magic)), "a binary file")


def decode(data: bytes, encoding: Encoding) -> str:
    """The whole text without its byte order mark. Bytes that are not UTF-8 are restored unchanged by `encode`."""
    text = data[len(encoding.bom) :]
    return text.decode(encoding.name, "surrogateescape" if encoding.name == "utf-8" else "surrogatepass")


def encode(text: str, encoding: Encoding) -> bytes:
    """The bytes of a text, with its byte order mark."""
    errors = "surrogateescape" if encoding.name == "utf-8" else "surrogatepass"
    return encoding.bom + text.encode(encoding.name, errors)
