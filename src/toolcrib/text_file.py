"""Text that a person saved in a file, with whatever editor."""

from __future__ import annotations

import codecs
from pathlib import Path

__all__ = ["read_text_file", "text_of"]

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_of(data: bytes) -> str:
    """The text of UTF-8 data, with `\\n` between lines, without the byte order mark that some editors put first.

    Raises ValueError for another encoding.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        found = "UTF-16" if data.startswith(UTF_16) else f"another encoding (at byte {problem.start})"
        raise ValueError(f"expected text in UTF-8, got {found}; save it as UTF-8") from None
    return text.replace("\r\n", "\n")


def read_text_file(path: str | Path) -> str:
    """The text of a file, as `text_of` has it. Raises OSError, and ValueError for another encoding than UTF-8."""
    return text_of(Path(path).read_bytes())
