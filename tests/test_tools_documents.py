"""Notebooks, PDF documents and encodings that `read_file` gives, and what a run overwrites unseen: nothing."""

from __future__ import annotations

import base64
import json
import sys

import pytest

from toolcrib.call import CallKey
from toolcrib.content import Image, Text
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.result import ToolResult
from toolcrib.tools import (
    EditFile,
    EditFileParams,
    ReadFile,
    ReadFileParams,
    WriteFile,
    WriteFileParams,
    documents,
)
from toolcrib.tools.backends import MemoryBackend
from toolcrib.tools.line_address import address_of

CTX: Context[None] = Context()
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()


def read(content: bytes | str, name: str = "f", **more: object) -> str | ToolResult:
    params = ReadFileParams.model_validate({"path": name, **more})
    return ReadFile(MemoryBackend({name: content})).execute(params, CTX)


def test_a_notebook_is_given_cell_by_cell() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": "plot(1)",
            "outputs": [
                {"output_type": "stream", "text": ["drawing\n"]},
                {"output_type": "display_data", "data": {"image/png": PIXEL, "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no"},
            ],
        },
    ]
    got = read(json.dumps({"cells": cells, "metadata": {}}), "n.ipynb")
    assert isinstance(got, ToolResult)
    text, picture = got.parts
    assert isinstance(text, Text) and isinstance(picture, Image) and picture.data == PIXEL
    for part in ("# Cell 1 (markdown)\n# Title\ntext", "# Cell 2 (code)\nplot(1)", "drawing", "[picture 1]"):
        assert part in text.text
    assert "ValueError: no" in text.text
    conflict = '{\n "cells": [\n<<<<<<< ours\n  1\n=======\n  2\n>>>>>>> theirs\n ]\n}\n'
    for broken in ('{"a": 1}\n', conflict, '{"cells":' + "[" * 100_000 + "\n"):
        got = read(broken, "n.ipynb")
        assert got.startswith(broken[:100].rstrip("\n")) and "holds no list of cells" in got
    assert read("not json", "n.ipynb") == "not json"


def test_of_a_notebook_with_a_broken_cell_the_others_are_given() -> None:
    cells = ["x", {"cell_type": "code", "source": "a = 1", "outputs": 5}, {"source": "b = 2"}, None]
    got = read(json.dumps({"cells": cells}), "n.ipynb")
    assert str(got).rstrip("\n").split("\n") == [
        "# Cell 1 (broken, not shown)", "", "# Cell 2 (code)", "a = 1", "", "# Cell 3 (of no type)", "b = 2", "",
        "# Cell 4 (broken, not shown)",
    ]  # fmt: skip


def test_a_notebook_of_version_3_holds_its_cells_in_worksheets() -> None:
    sheets = [{"cells": [{"cell_type": "code", "input": ["a = ", "1"], "outputs": []}]}, 5, {"cells": {}}]
    got = read(json.dumps({"nbformat": 3, "worksheets": sheets}), "n.ipynb")
    assert str(got) == "# Cell 1 (code)\na = 1"


def pdf(*contents: str) -> bytes:
    """A PDF document with a page for each text; a page without text has a square."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    pages = []
    for content in contents:
        draw = f"BT /F1 24 Tf 50 100 Td ({content}) Tj ET" if content else "1 0 0 rg 0 0 200 200 re f"
        objects.append(f"<< /Length {len(draw)} >>\nstream\n{draw}\nendstream")
        stream = len(objects)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents {stream} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        pages.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(pages)}] /Count {len(pages)} >>"
    body, offsets = "%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{one}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    return (
        f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
        f"startxref\n{len(body)}\n%%EOF\n"
    ).encode()


def test_a_pdf_document_is_given_page_by_page() -> None:
    pytest.importorskip("pypdfium2")
    got = read(pdf("Hello there", "", "Last"), "a.pdf")
    assert isinstance(got, ToolResult)
    text, picture = got.parts
    assert isinstance(text, Text) and isinstance(picture, Image)
    assert text.text.startswith("# Page 1 of 3\nHello there\n\n# Page 2 of 3\n[picture 1]")
    assert base64.b64decode(picture.data).startswith(b"\x89PNG")
    with pytest.raises(ToolError, match="broken or has a password"):
        read(b"%PDF-1.4\nnothing", "b.pdf")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_text_without_a_mark_is_read_and_kept(encoding: str) -> None:
    files = MemoryBackend({"f": "one\r\ntwo\r\n".encode(encoding)})
    assert "one\ntwo" in str(ReadFile(files).execute(ReadFileParams(path="f"), CTX))
    EditFile(files).execute(EditFileParams(path="f", old_string="two", new_string="drei\nvier"), CTX)
    assert files.read("f", 100) == "one\r\ndrei\r\nvier\r\n".encode(encoding)
    with pytest.raises(ToolError, match="cannot be shown as text"):
        read(b"\x00\x01\x02\x00" * 50)


def test_lines_are_given_with_their_addresses() -> None:
    got = read("a = 1\n    return\n" + "x" * 3_000, addresses=True)
    assert isinstance(got, str)
    lines = got.split("\n")
    assert lines[:2] == [f"{address_of(1, 'a = 1')}| a = 1", f"{address_of(2, 'return')}|     return"]
    assert lines[2].startswith("3| xxx")


def test_a_run_does_not_overwrite_what_changed_since_it_read_it() -> None:
    files = MemoryBackend({"f": "one\n"})
    mine: Context[None] = Context(key=CallKey("mine", 1, 0))
    other: Context[None] = Context(key=CallKey("other", 1, 0))
    ReadFile(files).execute(ReadFileParams(path="f"), mine)
    WriteFile(files).execute(WriteFileParams(path="f", content="two\n"), other)
    with pytest.raises(ToolError, match="was changed by somebody else"):
        WriteFile(files).execute(WriteFileParams(path="f", content="three\n"), mine)
    assert files.read("f", 10) == b"two\n"
    said = EditFile(files).execute(EditFileParams(path="f", old_string="two", new_string="2"), mine)
    assert "had changed since you last read it" in said
    ReadFile(files).execute(ReadFileParams(path="f"), mine)
    for content in ("three\n", "four\n"):
        WriteFile(files).execute(WriteFileParams(path="f", content=content), mine)
    assert files.read("f", 10) == b"four\n"


def bomb() -> bytes:
    """A PDF document of 3 KB whose page holds a form that holds two forms, and so on, 28 times."""
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        page,
        b"<< /Length 5 >> stream\n/X Do\nendstream",
    ]
    form = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X %d 0 R >> >> /Length %d >>"
    for number in range(6, 34):
        body = b"/X Do /X Do" if number < 33 else b"0 0 m 9 9 l S"
        objects.append(form % (number, len(body)) + b" stream\n" + body + b"\nendstream")
    listed = [b"%d 0 obj\n%s\nendobj\n" % one for one in enumerate(objects, 1)]
    return b"%PDF-1.4\n" + b"".join(listed) + b"trailer << /Root 1 0 R /Size 33 >>\n%%EOF"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound the memory of a process")
def test_a_document_that_would_take_all_memory_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pypdfium2")
    monkeypatch.setattr(documents, "PDF_MEMORY", 200 << 20)
    with pytest.raises(ToolError, match=r"takes more than 30 seconds or 200 MB\."):
        read(bomb(), "a.pdf")
    lists = json.dumps({"cells": []})[:-1] + ', "x": [' + "[]," * documents.MAX_VALUES + "0]}"
    with pytest.raises(ToolError, match="values, which is too much"):
        read(lists, "n.ipynb")


def test_a_picture_in_a_notebook_that_is_none_is_left_out() -> None:
    for data in ("no base64!", base64.b64encode(b"no picture").decode()):
        outputs = [{"output_type": "display_data", "data": {"image/png": data, "text/plain": "<Figure>"}}]
        cells = [{"cell_type": "code", "source": "plot(1)", "outputs": outputs}]
        got = read(json.dumps({"cells": cells}), "n.ipynb")
        assert isinstance(got, str) and "<Figure>" in got and "Some pictures are left out." in got
