"""Notebooks and PDF documents as text and pictures, for `read_file`."""

from __future__ import annotations

import base64
import json
import struct
import threading
import zlib
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from toolcrib.content import Image
from toolcrib.errors import ToolError

MAX_DOCUMENT = 50_000_000  # bytes
MAX_PAGES = 500  # of a PDF document
MAX_PICTURES = 10
MAX_PICTURE = 3_000_000  # bytes of one picture
MAX_OUTPUT = 5_000  # characters of one output of a notebook
PAGE_WIDTH = 1_000  # pixels of a page that is shown as a picture
_PDFIUM = threading.Lock()  # PDFium has a state of its own: two threads in it end the process


@dataclass(slots=True)
class Document:
    """A document as text, and the pictures in it."""

    text: str
    pictures: list[Image] = field(default_factory=list)
    left_out: str = ""  # what is not shown


def read_notebook(data: bytes, shown: str) -> Document:
    """The cells of a Jupyter notebook with their outputs; ToolError for what is none."""
    try:
        cells = json.loads(data)["cells"]
        kernel = [
            (cell["cell_type"], _joined(cell.get("source")), cell.get("outputs") or []) for cell in cells
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ToolError(f"{shown} is named as a notebook and is none: it holds no list of cells.") from None
    document = Document("")
    lines: list[str] = []
    for number, (kind, source, outputs) in enumerate(kernel, 1):
        lines += [f"# Cell {number} ({kind})", source, ""]
        for output in outputs:
            if text := _output(output, document, number):
                cut = f"\n[... {len(text) - MAX_OUTPUT:,} more characters]" if len(text) > MAX_OUTPUT else ""
                lines += [f"# Output of cell {number}", text[:MAX_OUTPUT] + cut, ""]
    document.text = "\n".join(lines).rstrip("\n") + "\n"
    return document


def _output(output: Any, document: Document, cell: int) -> str:
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    found = output.get("data")
    data: dict[str, Any] = found if isinstance(found, dict) else {}
    for kind in ("image/png", "image/jpeg"):
        if picture := _joined(data.get(kind)).replace("\n", ""):
            if len(document.pictures) < MAX_PICTURES and len(picture) <= MAX_PICTURE:
                document.pictures.append(Image(data=picture, media_type=kind, name=f"cell {cell}"))
                return f"[picture {len(document.pictures)}]"
            document.left_out = "Some pictures are left out."
    return _joined(output.get("text")) or _joined(data.get("text/plain"))


def _joined(text: Any) -> str:
    """A text of a notebook, which may be a list of lines."""
    return "".join(map(str, text)) if isinstance(text, list) else text if isinstance(text, str) else ""


def read_pdf(data: bytes, shown: str) -> Document:
    """The text of a PDF document page by page; pages without text as pictures."""
    if find_spec("pypdfium2") is None:
        raise ToolError(f"{shown} is a PDF document, {len(data):,} bytes. PDF documents cannot be read here.")
    pypdfium2: Any = import_module("pypdfium2")
    with _PDFIUM:
        try:
            pdf = pypdfium2.PdfDocument(data)
            try:
                return _pages(pdf)
            finally:
                pdf.close()
        except pypdfium2.PdfiumError:
            raise ToolError(
                f"{shown} is a PDF document that cannot be read: it is broken or has a password."
            ) from None


def _pages(pdf: Any) -> Document:
    document = Document("")
    parts: list[str] = []
    for index in range(min(len(pdf), MAX_PAGES)):
        page = pdf[index]
        text = page.get_textpage().get_text_range().replace("\r\n", "\n").strip()
        if not text and (picture := _page_picture(page, document)):
            text = picture
        parts.append(f"# Page {index + 1} of {len(pdf)}\n{text}\n")
    if len(pdf) > MAX_PAGES:
        document.left_out = f"Only the first {MAX_PAGES} of {len(pdf)} pages are read."
    document.text = "\n".join(parts)
    return document


def _page_picture(page: Any, document: Document) -> str:
    if len(document.pictures) == MAX_PICTURES:
        document.left_out = "Further pages without text are left out."
        return ""
    bitmap = page.render(scale=PAGE_WIDTH / max(page.get_width(), page.get_height(), 1), rev_byteorder=True)
    data = _png(bytes(bitmap.buffer), bitmap.width, bitmap.height, bitmap.stride, bitmap.n_channels)
    document.pictures.append(Image(data=base64.b64encode(data).decode(), media_type="image/png", name="page"))
    return f"[picture {len(document.pictures)}]"


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
