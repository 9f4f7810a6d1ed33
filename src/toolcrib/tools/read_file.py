"""`read_file`: gives a text file page by page, an image as an image, and describes any other file.

Lines are given verbatim, so that they can be passed to `edit_file`; line numbers are added on request.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.content import Image, Text
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.facts import MaxOutput
from toolcrib.result import ToolResult
from toolcrib.tool import Tool
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths
from toolcrib.tools.documents import MAX_DOCUMENT, Document, read_notebook, read_pdf
from toolcrib.tools.file_kinds import MAX_IMAGE, describe, image_type
from toolcrib.tools.in_folder import InFolder
from toolcrib.tools.line_address import address_of
from toolcrib.tools.text_encoding import SNIFFED, UNKNOWN, Encoding, detect
from toolcrib.visible import counted
from toolcrib.word_cuts import LONGEST, begun_word

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

MAX_LINES = 2_000
MAX_LINE = 2_000  # characters shown of one line among several
MAX_BYTES = 50_000  # of one page; a line that is read alone may fill it
CHUNK = 65_536
DETECTED_FROM = 10_000_000  # bytes, as many as a file that can be edited has: its encoding may show late
NO_NOTEBOOK = "This is named as a notebook and holds no list of cells, so it is shown as the text that it is."
MAX_COUNTED = 100_000_000  # bytes after which the lines behind a finished page are not counted any more


class ReadFileParams(BaseModel):
    path: str = Field(description="File to read, relative to the workspace.")
    offset: int = Field(1, ge=1, description="Line to begin at, counted from 1.")
    limit: int = Field(MAX_LINES, ge=1, le=MAX_LINES, description="How many lines at most.")
    column: int = Field(
        1,
        ge=1,
        description="Character of each line to begin at, or the word that it is in: with limit=1, pages a very long "
        "line.",
    )
    addresses: bool = Field(
        False,
        description='Begin each line with its address, as in "12:k9| text", which edit_file takes as at. Not part '
        "of the file.",
    )
    line_numbers: bool = Field(
        False, description='Begin each line with its number, as in "12: text". Not part of the file.'
    )


class ReadFile(
    InFolder,
    Tool[ReadFileParams, str | ToolResult],
    name="read_file",
    effect=Effect.READ,
    secrets=(),
    title="Read file",
    category="files",
    idempotent=True,
    open_world=False,
    max_output=MaxOutput(bytes=MAX_BYTES * 3 // 2, lines=MAX_LINES + 20),
):
    """Read a file of the workspace.

    Text comes in pages of up to 2,000 lines or 50 KB, with a note saying where to read on; of notebooks and PDF
    documents the text and pictures are given; pictures (PNG, JPEG, GIF, WebP) are shown; other binary files are
    only described. For folders use list_dir.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = as_backend(backend)

    def accesses(self, params: ReadFileParams) -> tuple[Access, ...]:
        return self.backend.accesses_to(Reach.READ, params.path, contents=True)

    def precheck(self, params: ReadFileParams) -> str | None:
        return problem_of_paths(self.backend, params.path)

    def resources(self, params: ReadFileParams) -> list[str]:
        return [self.backend.resource(params.path)]

    def execute(self, params: ReadFileParams, ctx: Context[Any]) -> str | ToolResult:
        shown = self.backend.place(params.path).shown
        try:
            opened, status = self.backend.open_file(params.path, ctx.permits)
        except ToolError as refused:
            if "is a folder" in refused.message:
                raise ToolError(f"{shown} is a folder. Use list_dir to see what is in it.") from None
            raise
        with opened as file:
            head = file.read(SNIFFED)
            tried = status.size <= MAX_DOCUMENT
            if tried and (document := _document(file, head, shown, ctx)) is not None:
                return self._show_document(params, document, shown, ctx)
            if kind := image_type(head):
                return _picture(file, head, kind, shown, status.size)
            file.seek(0)
            head = file.read(DETECTED_FROM)
            encoding = detect(head if len(head) == status.size else head[: head.rfind(b"\n") + 1] or head)
            if encoding is None:
                raise ToolError(
                    f"{shown} is {describe(head)}, {counted(status.size, 'byte')}. It cannot be shown as text."
                )
            file.seek(len(encoding.bom))
            page = _Page(params)
            page.read(file, encoding, ctx.check_cancelled)
        if not page.stopped:
            place = self.backend.leads_to(params.path) or shown
            self.backend.seen.note(ctx.key.run, place, page.digest.hexdigest())
        ctx.report(tip=f"{shown}, {counted(page.total, 'line')}")
        text = page.render(shown, encoding)
        return f"{text}\n\n[{NO_NOTEBOOK}]" if tried and _is_named_as_notebook(shown, head) else text

    def _show_document(
        self, params: ReadFileParams, document: Document, shown: str, ctx: Context[Any]
    ) -> str | ToolResult:
        page = _Page(params)
        page.read(io.BytesIO(document.text.encode("utf-8", "replace")), Encoding(), ctx.check_cancelled)
        text = page.render(shown, Encoding())
        if document.left_out:
            text += f"\n\n[{document.left_out}]"
        pictures = document.pictures if params.offset == 1 else []
        return ToolResult((Text(text), *pictures)) if pictures else text


def _document(file: BinaryIO, head: bytes, shown: str, ctx: Context[Any]) -> Document | None:
    """A notebook or PDF document; None for any other file."""
    if head.startswith(b"%PDF-"):
        return read_pdf(head + file.read(MAX_DOCUMENT), shown, ctx.check_cancelled)
    if _is_named_as_notebook(shown, head):
        return read_notebook(head + file.read(MAX_DOCUMENT), shown)
    return None


def _is_named_as_notebook(shown: str, head: bytes) -> bool:
    return shown.endswith(".ipynb") and head.lstrip().startswith(b"{")


def _picture(file: BinaryIO, head: bytes, kind: str, shown: str, size: int) -> ToolResult:
    if size > MAX_IMAGE:
        raise ToolError(
            f"{shown} is a picture ({kind}) of {counted(size, 'byte')}; at most {MAX_IMAGE:,} can be shown. Make a "
            "smaller copy first."
        )
    data = head + file.read(MAX_IMAGE)
    picture = Image(data=base64.b64encode(data).decode(), media_type=kind, name=shown.rsplit("/", 1)[-1])
    return ToolResult((Text(f"{shown} is a picture ({kind}, {counted(size, 'byte')})."), picture))


class _Page:
    """Collects the requested lines from pieces of text and keeps only the lines that it will show."""

    __slots__ = (
        "asked", "bytes", "cut", "digest", "full", "last", "lines", "longest", "replaced", "room", "size", "stopped",
        "taken", "total",
    )  # fmt: skip

    def __init__(self, asked: ReadFileParams) -> None:
        self.asked = asked
        self.room = MAX_BYTES if asked.limit == 1 else MAX_LINE
        self.digest = hashlib.sha256()  # of the whole file: its version
        self.lines: list[str] = []
        self.total = 0  # lines finished
        self.last = asked.offset - 1  # the last line shown
        self.bytes = 0
        self.size = 0  # characters of the line that is being read
        self.taken: list[str] = []  # the part of that line that is kept
        self.full = False
        self.cut: tuple[int, int] | None = None  # the first line that was cut: its number, the next column
        self.longest = 0  # characters of the longest line shown
        self.replaced = 0
        self.stopped = False  # before the end of the file

    def read(self, file: BinaryIO, encoding: Encoding, check: Callable[[], None]) -> None:
        decoder = codecs.getincrementaldecoder(encoding.name)("replace")
        self.digest.update(encoding.bom)
        while True:
            check()
            if file.tell() > MAX_COUNTED and (
                self.full or self.total >= self.asked.offset + self.asked.limit - 1
            ):
                self.stopped = True
                return
            data = file.read(CHUNK)
            self.digest.update(data)
            pieces = decoder.decode(data, not data).split("\n")
            for index, piece in enumerate(pieces):
                if index:
                    self._end_line()
                if piece:
                    self._add(piece)
            if not data:
                break
        if self.size:
            self._end_line()

    def _wanted(self) -> bool:
        number = self.total + 1
        return not self.full and self.asked.offset <= number < self.asked.offset + self.asked.limit

    def _add(self, piece: str) -> None:
        if self._wanted():
            start = max(0, self.asked.column - 1 - LONGEST - 1 - self.size)
            kept_to = self.asked.column - 1 + self.room - self.size
            if start < kept_to:
                self.taken.append(piece[start:kept_to])
        self.size += len(piece)

    def _end_line(self) -> None:
        if self._wanted():
            text = "".join(self.taken)
            ahead = min(self.asked.column - 1, LONGEST + 1)  # characters in front of the column
            following = text[ahead : ahead + 1]  # nothing where the line ends before the column
            back = begun_word(text[:ahead]) if following and not following.isspace() else 0
            self._show(text[ahead - back :], self.asked.column - back)
        self.total += 1
        self.size = 0
        self.taken.clear()

    def _show(self, text: str, column: int) -> None:
        """Shows a line from a column on."""
        if column - 1 + len(text) < self.size:
            text = text[: len(text) - begun_word(text)]
        raw = text.encode("utf-8", "replace")
        if self.bytes + len(raw) > MAX_BYTES:
            if self.lines:
                self.full = True
                return
            text = raw[:MAX_BYTES].decode("utf-8", "ignore")
            text = text[: len(text) - begun_word(text)]
        number = self.total + 1
        self.longest = max(self.longest, self.size)
        left = self.size - (column - 1) - len(text)
        if left == 0:
            text = text.removesuffix("\r")
        elif left > 0:
            if self.cut is None:
                self.cut = (number, column + len(text))
            text += f" [... {counted(left, 'more character')}]"
        self.replaced += text.count("\ufffd")
        self.bytes += len(raw) + 1
        self.last = number
        if self.asked.addresses:
            # A hash of all of the line is needed, so a line that is shown in part has none.
            whole = left == 0 and column == 1
            text = f"{address_of(number, text)}| {text}" if whole else f"{number}| {text}"
        elif self.asked.line_numbers:
            text = f"{number}: {text}"
        self.lines.append(text)

    def render(self, shown: str, encoding: Encoding) -> str:
        """The page, followed by notes in brackets where there are any."""
        asked = self.asked
        if self.total == 0 and asked.offset == 1:
            return f"[{shown} is empty.]"
        if asked.offset > self.total:
            raise ToolError(
                f"Offset {asked.offset} is past the end of {shown}, which has {counted(self.total, 'line')}."
            )
        if asked.column > 1 and asked.column > self.longest:
            lines = f"line {self.last}" if self.last == asked.offset else f"lines {asked.offset}-{self.last}"
            raise ToolError(
                f"Column {asked.column} is past the end of {lines} of {shown}: {counted(self.longest, 'character')}."
            )
        notes: list[str] = []
        if self.last < self.total or self.stopped:
            of = f"more than {self.total}" if self.stopped else f"{self.total}; {self.total - self.last} more"
            notes.append(f"Lines {asked.offset}-{self.last} of {of}. Use offset={self.last + 1} to read on.")
        elif asked.offset > 1:
            notes.append(f"Lines {asked.offset}-{self.last} of {self.total}; end of file.")
        if self.cut:
            number, column = self.cut
            notes.append(f"Line {number} goes on: read it with offset={number}, limit=1, column={column}.")
        if encoding == UNKNOWN:
            notes.append(
                "Some bytes are in no known encoding and are shown as \ufffd; edits elsewhere keep them, and can add "
                "ASCII characters only."
            )
        elif encoding != Encoding():
            notes.append(f"Encoded as {encoding.words}, which edits keep.")
        elif self.replaced:
            notes.append("Some bytes are not valid UTF-8 and are shown as \ufffd; edits elsewhere keep them.")
        text = "\n".join(self.lines)
        return text if not notes else f"{text}\n\n[{' '.join(notes)}]"
