"""Notebooks and PDF documents as text and pictures, for `read_file`. PDF documents are read by `pdf_worker.py`."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from toolcrib.command.sandbox.files.own_files import python
from toolcrib.content import Image
from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolError
from toolcrib.tools.file_kinds import image_type
from toolcrib.tools.regex_search import ENVIRONMENT, TICK
from toolcrib.visible import counted

MAX_DOCUMENT = 50_000_000  # bytes
WORKER = Path(__file__).with_name("pdf_worker.py")
PDF_MEMORY = 1 << 30  # bytes
PDF_SECONDS = 30
MAX_VALUES = 2_000_000  # in a notebook: each takes up to 80 times as much memory as room in the file
MAX_PICTURES = 10
MAX_PICTURE = 3_000_000  # bytes of one picture
MAX_OUTPUT = 5_000  # characters of one output of a notebook


@dataclass(slots=True)
class Document:
    """A document as text, and the pictures in it."""

    text: str
    pictures: list[Image] = field(default_factory=list)
    left_out: str = ""  # what is not shown


def read_notebook(data: bytes, shown: str) -> Document | None:
    """The cells of a Jupyter notebook with outputs; None for other data. Raises ToolError if it is too large."""
    if sum(map(data.count, (b"[", b"{", b","))) > MAX_VALUES:
        raise ToolError(
            f"{shown} is a notebook of more than {MAX_VALUES:,} values, which is too much to be shown."
        )
    cells = _cells(data)
    if cells is None:
        return None
    document = Document("")
    lines: list[str] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict):
            lines += [f"# Cell {number} (broken, not shown)", ""]
            continue
        # Before version 4 of the format, code stood in `input`.
        lines += [
            f"# Cell {number} ({cell.get('cell_type', 'of no type')})",
            _joined(cell.get("source", cell.get("input"))),
            "",
        ]
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            if text := _output(output, document, number):
                cut = (
                    f"\n[... {counted(len(text) - MAX_OUTPUT, 'more character')}]"
                    if len(text) > MAX_OUTPUT
                    else ""
                )
                lines += [f"# Output of cell {number}", text[:MAX_OUTPUT] + cut, ""]
    document.text = "\n".join(lines).rstrip("\n") + "\n"
    return document


def _cells(data: bytes) -> list[Any] | None:
    """The cells of a notebook of any version; None if it has no list of them."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if "cells" not in found and isinstance(sheets := found.get("worksheets"), list):  # before version 4
        lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
        return [cell for cells in lists if isinstance(cells, list) for cell in cells]
    cells = found.get("cells")
    return cells if isinstance(cells, list) else None


def _output(output: Any, document: Document, cell: int) -> str:
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    found = output.get("data")
    data: dict[str, Any] = found if isinstance(found, dict) else {}
    for kind in ("image/png", "image/jpeg"):
        if picture := _joined(data.get(kind)).replace("\n", ""):
            if len(document.pictures) < MAX_PICTURES and _is_picture(picture, kind):
                document.pictures.append(Image(data=picture, media_type=kind, name=f"cell {cell}"))
                return f"[picture {len(document.pictures)}]"
            document.left_out = "Some pictures are left out."
    return _joined(output.get("text")) or _joined(data.get("text/plain"))


def _is_picture(data: str, kind: str) -> bool:
    """Whether base64 data is a picture. A provider would refuse the whole conversation because of data that is not."""
    try:
        return len(data) <= MAX_PICTURE and image_type(base64.b64decode(data, validate=True)[:16]) == kind
    except ValueError:
        return False


def _joined(text: Any) -> str:
    """A text of a notebook, which may be a list of lines."""
    return "".join(map(str, text)) if isinstance(text, list) else text if isinstance(text, str) else ""


def read_pdf(data: bytes, shown: str, check: Callable[[], None] = lambda: None) -> Document:
    """The text of a PDF document page by page; pages without text as pictures. Raises ToolError.

    `check` is called while it is read, and raises to give it up.
    """
    spec = find_spec("pypdfium2")
    if spec is None or spec.origin is None or not python():
        raise ToolError(
            f"{shown} is a PDF document, {counted(len(data), 'byte')}. PDF documents cannot be read here."
        )
    place = str(Path(spec.origin).parent.parent)
    child = subprocess.Popen(
        [python(), "-I", str(WORKER), place, str(PDF_MEMORY), str(PDF_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        start_new_session=True,
    )
    with child:
        try:
            answer = _answer(child, data, check)
        finally:
            child.kill()
    try:
        found = json.loads(answer)
    except ValueError:
        raise ToolError(
            f"{shown} is a PDF document that cannot be read: it is broken, or takes more than "
            f"{PDF_SECONDS} seconds or {PDF_MEMORY >> 20:,} MB."
        ) from None
    if "text" not in found:
        raise ToolError(f"{shown} is a PDF document that cannot be read: it is broken or has a password.")
    pictures = [Image(data=one, media_type="image/png", name="page") for one in found["pictures"]]
    return Document(found["text"], pictures, found["left_out"])


def _answer(child: subprocess.Popen[bytes], data: bytes | None, check: Callable[[], None]) -> bytes:
    """What the worker prints until its end; b"" if it takes too long."""
    deadline = time.monotonic() + 2 * PDF_SECONDS
    while time.monotonic() < deadline:
        check()
        try:
            return child.communicate(data, timeout=TICK)[0]
        except subprocess.TimeoutExpired:
            data = None
    return b""
