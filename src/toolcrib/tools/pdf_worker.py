"""Reads PDF documents in a process of its own: a few kilobytes of one can ask for all memory and hours of time.

It imports only the standard library and pypdfium2, because it starts in isolated mode. Its arguments are the folder of
pypdfium2 and the bytes and seconds that it may use; the document comes in by the standard input, and one line of JSON
goes out: its `text`, its `pictures` in base64, and what is `left_out`; or `broken`.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import time
import zlib
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_PAGES = 500
MAX_TEXT = 10_000_000  # characters
MAX_PICTURES = 10
PAGE_WIDTH = 1_000  # pixels of a page that is shown as a picture


def read(data: bytes, seconds: float) -> dict[str, Any]:
    """The text of a document page by page; pages without text as pictures. After `seconds` no page is begun."""
    library: Any = import_module("pypdfium2")  # which has no types
    try:
        pdf = library.PdfDocument(data)
        try:
            return _pages(pdf, time.monotonic() + seconds)
        finally:
            pdf.close()
    except library.PdfiumError:
        return {"broken": True}


def _pages(pdf: Any, deadline: float) -> dict[str, Any]:
    parts: list[str] = []
    pictures: list[str] = []
    size, left_out = 0, ""
    for index in range(len(pdf)):
        if index == MAX_PAGES or size > MAX_TEXT or time.monotonic() > deadline:
            left_out = f"Only the first {index} of {len(pdf)} pages are read."
            break
        page = pdf[index]
        on_page = page.get_textpage()
        text = on_page.get_text_range().replace("\r\n", "\n").strip()
        on_page.close()
        if not text and len(pictures) == MAX_PICTURES:
            left_out = "Further pages without text are left out."
        elif not text:
            pictures.append(_picture(page))
            text = f"[picture {len(pictures)}]"
        parts.append(f"# Page {index + 1} of {len(pdf)}\n{text}\n")
        size += len(text)
        page.close()
    return {"text": "\n".join(parts), "pictures": pictures, "left_out": left_out}


def _picture(page: Any) -> str:
    bitmap = page.render(scale=PAGE_WIDTH / max(page.get_width(), page.get_height(), 1), rev_byteorder=True)
    data = _png(bytes(bitmap.buffer), bitmap.width, bitmap.height, bitmap.stride, bitmap.n_channels)
    return base64.b64encode(data).decode()


def _png(pixels: bytes, width: int, height: int, stride: int, channels: int) -> bytes:
    """A PNG file of rows of pixels: 1 channel is grey, 3 are colours, 4 have one more byte, which is dropped."""
    rows = [pixels[row * stride : row * stride + width * channels] for row in range(height)]
    if channels == 4:
        rows = [bytes(byte for n, byte in enumerate(row) if n % 4 != 3) for row in rows]
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def limit(bytes_: int, seconds: int) -> None:
    """Bounds this process, where the system can."""
    if sys.platform == "win32":
        return
    import resource

    for what, most in (
        (resource.RLIMIT_AS, bytes_),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):
            pass


def main(place: str, memory: str, seconds: str) -> None:
    sys.path.append(place)
    limit(int(memory), int(seconds))
    found = read(sys.stdin.buffer.read(), int(seconds) / 2)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
