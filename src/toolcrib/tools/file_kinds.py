"""Tells by the first bytes of a file what it is: an image, or another known format that is no text."""

from __future__ import annotations

MAX_IMAGE = 3_750_000  # bytes: 5 MB as base64, the smallest limit of the providers
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


def image_type(head: bytes) -> str:
    """The media type of an image that models accept; empty for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in IMAGES if head.startswith(magic)), "")


def describe(head: bytes) -> str:
    """A description of bytes that are not text."""
    return next((kind for magic, kind in KINDS if head.startswith(magic)), "a binary file")
