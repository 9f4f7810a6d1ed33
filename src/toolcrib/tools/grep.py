"""`grep`: finds the lines that match a regular expression in the files of the workspace."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.glob_patterns import GlobError, GlobPattern
from toolcrib.tool import Tool
from toolcrib.tools.file_walk import FileWalk, is_file, withheld_note
from toolcrib.tools.regex_search import BadPattern, LineMatch, RegexSearcher, TooSlow
from toolcrib.tools.textfile import sniff
from toolcrib.tools.workspace_paths import printable_path

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000
MAX_CONTEXT = 20
MAX_LINE = 500  # characters shown of one line
MAX_SHOWN = 45_000  # characters of the whole answer
MAX_FILE = 5_000_000  # bytes; larger files are named, not searched
MAX_PATTERN = 10_000  # characters
# A group of ranges that ignores case can take minutes to compile: left to the worker, which can be ended.
FLAGS = re.compile(r"\(\?[a-zA-Z]*i")
SECONDS = 30.0
BATCH_BYTES = 1_000_000
BATCH_FILES = 200


class GrepParams(BaseModel):
    pattern: str = Field(description="Regular expression (Python's), compared with each line.")
    path: str = Field(".", description="File or folder to search, relative to the workspace.")
    include: str | None = Field(
        None, description='Only files that fit this pattern, such as "*.py", "*.{ts,tsx}" or "src/**/*.c".'
    )
    output: Literal["content", "files", "count"] = Field(
        "content",
        description="What to give: the matching lines with their numbers, the files that have any, or how "
        "many lines match in each file.",
    )
    ignore_case: bool = Field(False, description="Take upper and lower case as equal.")
    context: int = Field(0, ge=0, le=MAX_CONTEXT, description="Lines to show around each match.")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many lines or files at most.")
    include_ignored: bool = Field(
        False, description="Also search what .gitignore names, and .git, node_modules, .venv and such."
    )


class Grep(
    Tool[GrepParams, str],
    name="grep",
    effect=Effect.READ,
    secrets=(),
    title="Search in files",
    category="search",
    idempotent=True,
    open_world=False,
):
    """Search the text of files with a regular expression, line by line.

    Binary files are skipped. Matching lines are given below their file's path as "number: text".
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def accesses(self, params: GrepParams) -> tuple[Access, ...]:
        include = params.include or ""
        return self.backend.accesses_to(Reach.READ, params.path, subtree=True, pattern=include, contents=True)

    def precheck(self, params: GrepParams) -> str | None:
        if not params.pattern:
            return "pattern is empty."
        if "\n" in params.pattern:
            return "pattern spans lines, but lines are searched one by one. Look for one of its lines."
        if len(params.pattern) > MAX_PATTERN:
            return (
                f"pattern is {len(params.pattern):,} characters long; at most {MAX_PATTERN:,} are possible."
            )
        try:
            if not FLAGS.search(params.pattern):
                re.compile(params.pattern)
        except (re.error, RecursionError, OverflowError) as wrong:
            return _not_valid(params.pattern, str(wrong))
        try:
            GlobPattern(params.include or "*")
        except GlobError as refused:
            return f"include {params.include!r}: {refused}."
        return None

    def execute(self, params: GrepParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        start = self.backend.place(params.path).shown
        search = _GrepSearch(params)
        deadline = time.monotonic() + SECONDS
        with RegexSearcher(
            params.pattern,
            ignore_case=params.ignore_case,
            context=params.context,
            room=params.limit if params.output == "content" else 0,
            count_all=params.output != "content",
            width=MAX_LINE,
            deadline=deadline,
            check=ctx.check_cancelled,
        ) as searcher:
            try:
                for paths, texts in self._batches(params, start, search, deadline, ctx):
                    for path, found in zip(paths, searcher.search(texts), strict=True):
                        search.add(path, found)
                    ctx.report(tip=f"{search.matches} matching lines in {len(search.files)} files")
                    if search.full():
                        break
            except TooSlow:
                search.stopped = True
            except BadPattern as wrong:
                raise ToolError(_not_valid(params.pattern, str(wrong))) from None
        return search.render(start)

    def _batches(
        self, params: GrepParams, start: str, search: _GrepSearch, deadline: float, ctx: Context[Any]
    ) -> Iterator[tuple[list[str], list[bytes]]]:
        paths: list[str] = []
        texts: list[bytes] = []
        size = 0
        for path in self._files(params, start, search, deadline, ctx):
            text = self._text(path, search, ctx)
            if text is None:
                continue
            paths.append(path)
            texts.append(text)
            size += len(text)
            if size >= BATCH_BYTES or len(texts) >= BATCH_FILES:
                yield paths, texts
                paths, texts, size = [], [], 0
        if texts:
            yield paths, texts

    def _files(
        self, params: GrepParams, start: str, search: _GrepSearch, deadline: float, ctx: Context[Any]
    ) -> Iterator[str]:
        if is_file(self.backend, start, ctx.permits):
            yield start
            return
        include = GlobPattern(params.include) if params.include else None

        def check() -> None:
            ctx.check_cancelled()
            if time.monotonic() > deadline:
                raise TooSlow

        search.walk = FileWalk(self.backend, start, params.include_ignored, check, ctx.permits)
        for path, _ in search.walk.files():
            if include is not None and not include.matches(path):
                continue
            path = posixpath.normpath(posixpath.join(start, path))
            if self._may_show(path, ctx):
                yield path
            else:
                search.unshown += 1

    def _may_show(self, path: str, ctx: Context[Any]) -> bool:
        """Whether matching lines of a file may be shown. The contents of a file that may hold secrets, and that
        the call did not name, are not.
        """
        reached = self.backend.accesses_to(Reach.READ, path, contents=True)
        return all(ctx.permits(access) for access in reached if access.secret)

    def _text(self, path: str, search: _GrepSearch, ctx: Context[Any]) -> bytes | None:
        try:
            data = self.backend.read(path, MAX_FILE, ctx.permits)
        except ToolError as refused:
            if "larger than" in refused.message:
                search.too_large.append(printable_path(path))
            return None
        encoding = sniff(data, len(data))
        if encoding is None:
            return None
        if encoding.name == "utf-8":
            return data[len(encoding.bom) :]
        return data[len(encoding.bom) :].decode(encoding.name, "replace").encode("utf-8", "replace")


@dataclass(slots=True)
class _GrepSearch:
    """The matches so far, and the text made of them."""

    params: GrepParams
    files: list[tuple[str, LineMatch]] = field(default_factory=list)
    matches: int = 0
    too_large: list[str] = field(default_factory=list)
    unshown: int = 0
    stopped: bool = False
    walk: FileWalk | None = None

    def add(self, path: str, found: LineMatch) -> None:
        if found.count:
            self.files.append((printable_path(path), found))
            self.matches += found.count

    def full(self) -> bool:
        if self.params.output == "content":
            return self.matches > self.params.limit
        return len(self.files) > self.params.limit

    def render(self, start: str) -> str:
        notes: list[str] = []
        if self.stopped:
            notes.append(
                f"Stopped after {SECONDS:.0f} seconds; what is above is not all. Narrow path or include, "
                "or simplify the pattern: nested repetitions such as (a+)+ can take forever."
            )
        if self.walk is not None and (note := withheld_note(self.walk.withheld)):
            notes.append(note)
        if self.unshown:
            what = "1 file that may hold secrets was"
            what = what if self.unshown == 1 else f"{self.unshown} files that may hold secrets were"
            notes.append(f"{what} not searched; to search one, give it as path.")
        if self.too_large:
            named = ", ".join(self.too_large[:3]) + (", ..." if len(self.too_large) > 3 else "")
            notes.append(f"Not searched because larger than {MAX_FILE // 1_000_000} MB: {named}.")
        if not self.files:
            where = "the workspace" if start == "." else start
            filtered = f" ({self.params.include})" if self.params.include else ""
            notes.insert(0, f"No matches for {self.params.pattern!r} in {where}{filtered}.")
            return f"[{' '.join(notes)}]"
        limit = self.params.limit
        if self.params.output == "content":
            text = self._content(notes)
            if self.matches > limit:
                notes.insert(0, f"The first {limit} matching lines; there are more. Narrow the search.")
        else:
            counted = self.params.output == "count"
            text = "\n".join(f"{path}: {one.count}" if counted else path for path, one in self.files[:limit])
            if len(self.files) > limit:
                notes.insert(0, f"The first {limit} files; there are more. Narrow the search.")
        return text if not notes else f"{text}\n\n[{' '.join(notes)}]"

    def _content(self, notes: list[str]) -> str:
        blocks: list[str] = []
        size = 0
        for path, found in self.files:
            if not found.lines:
                continue
            block = "\n".join([path, *_numbered(found.lines)])
            size += len(block) + 2
            if size > MAX_SHOWN and blocks:
                notes.append("Cut here because the lines are long. Narrow the search.")
                break
            blocks.append(block)
        return "\n\n".join(blocks)


def _not_valid(pattern: str, why: str) -> str:
    return (
        f"pattern {pattern!r} is not a valid regular expression: {why}. To look for these very characters "
        f"write {re.escape(pattern)}"
    )


def _numbered(lines: list[tuple[int, str, bool]]) -> Iterator[str]:
    before = lines[0][0]
    for number, text, matched in lines:
        if number > before + 1:
            yield "  --"
        before = number
        yield f"  {number}{':' if matched else '-'} {text}"
