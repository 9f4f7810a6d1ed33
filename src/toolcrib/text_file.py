"""Reads text files that a person wrote: UTF-8, with or without a byte order mark."""

from __future__ import annotations

import codecs
from pathlib import Path

__all__ = ["read_text_file", "text_of"]

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_of(data: bytes) -> str:
    """Decodes UTF-8. Leaves out a byte order mark, and the carriage return at the end of a line.

    Raises ValueError for another encoding.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        found = "UTF-16" if data.startswith(UTF_16) else f"another encoding (at byte {problem.start})"
        raise ValueError(f"expected text in UTF-8, got {found}; save it as UTF-8") from None
    return text.replace("\r\n", "\n")


def read_text_file(path: str | Path) -> str:
    """Reads a file and decodes it with `text_of`. Raises OSError, and ValueError for another encoding than UTF-8."""
    return text_of(Path(path).read_bytes())
