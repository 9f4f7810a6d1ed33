"""`glob`: lists the files whose names match a pattern."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.glob_patterns import GlobError, GlobPattern
from toolcrib.tool import Tool
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths
from toolcrib.tools.file_walk import FileWalk, withheld_note
from toolcrib.tools.in_folder import InFolder
from toolcrib.tools.workspace_paths import printable_path
from toolcrib.visible import counted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000
SECONDS = 30.0
SLASHES = re.compile(r"/(?:\.?/)+")  # "a//b" and "a/./b" mean "a/b"


class GlobParams(BaseModel):
    pattern: str = Field(
        description='What to look for: "*.py" in any folder, "src/**/*.ts" below src, "/*.md" only in the '
        'folder itself. Hidden names need their dot, ".*" or ".github/**", or include_hidden.'
    )
    path: str = Field(".", description="Folder to search, relative to the workspace.")
    offset: int = Field(1, ge=1, description="File to begin at, counted from 1.")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many files at most.")
    include_hidden: bool = Field(False, description="Let *, ? and ** also match names that begin with a dot.")
    include_ignored: bool = Field(
        False, description="Also look at what .gitignore names, and into .git, node_modules, .venv and such."
    )


class GlobFiles(
    InFolder,
    Tool[GlobParams, str],
    name="glob",
    effect=Effect.READ,
    secrets=(),
    title="Find files",
    category="search",
    idempotent=True,
    open_world=False,
):
    """Find files by name, the most recently changed first.

    Use it when you know a name or a part of it; use grep to look into files. Patterns know *, ?, [abc], {a,b} and **
    for any number of folders. Paths are relative to the workspace.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = as_backend(backend)

    def accesses(self, params: GlobParams) -> tuple[Access, ...]:
        params = self._in_workspace(params)
        return self.backend.accesses_to(Reach.READ, params.path, subtree=True, pattern=params.pattern)

    def precheck(self, params: GlobParams) -> str | None:
        if not params.pattern.strip():
            return "pattern is empty. Use * for all files."
        try:
            GlobPattern(params.pattern)
        except GlobError as refused:
            return f'pattern "{params.pattern[:200]}": {refused}.'
        return problem_of_paths(self.backend, self._in_workspace(params).path)

    def execute(self, params: GlobParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        params = self._in_workspace(params)
        glob = GlobPattern(params.pattern, dotfiles=params.include_hidden)
        start = self.backend.place(params.path).shown
        search = _GlobSearch(self.backend, start, glob.base(), params.include_ignored, ctx)
        found: list[tuple[int, str]] = []
        for path, modified in search.files(glob):
            found.append((-modified, posixpath.normpath(posixpath.join(start, path))))
        ctx.report(tip=counted(len(found), "file"))
        found.sort()
        first = params.offset - 1
        shown = found[first : first + params.limit]
        notes: list[str] = []
        if first + len(shown) < len(found) and shown:
            notes.append(_capped(params, first + len(shown), len(found)))
        if search.stopped:
            notes.append(
                f"Stopped after {counted(round(SECONDS), 'second')}; there may be more. "
                "Give a folder to search as path."
            )
        if note := withheld_note(search.withheld):
            notes.append(note)
        if not found:
            where = "the workspace" if start == "." else start
            return f"[{' '.join([f'No files in {where} fit {params.pattern}.', *notes])}]"
        if not shown:
            past = f"Only {counted(len(found), 'file')} fit {params.pattern}; offset {params.offset} is past the end."
            return f"[{' '.join([past, *notes])}]"
        text = "\n".join(printable_path(path) for _, path in shown)
        return f"{text}\n\n[{' '.join(notes)}]" if notes else text

    def _in_workspace(self, params: GlobParams) -> GlobParams:
        """The same search, if its pattern begins with the workspace's own path, with a path and pattern below it."""
        if not params.pattern.startswith("/"):
            return params
        pattern = SLASHES.sub("/", params.pattern)
        try:
            base = "/" + GlobPattern(pattern).base()
            folder = self.backend.place(base).shown
        except (GlobError, ToolError):
            return params
        if folder == base.strip("/") or base == "/":  # to this backend, "/" is the folder that is searched
            return params
        return params.model_copy(update={"path": folder, "pattern": pattern[len(base) :]})


def _capped(params: GlobParams, last: int, total: int) -> str:
    which = f"The newest {last}" if params.offset == 1 else f"Files {params.offset}-{last}"
    return f"{which} of {total} files. Narrow pattern or path, or use offset={last + 1} to read on."


class _GlobSearch:
    """One search. If the pattern starts with literal folders, only that folder is searched, even if it is ignored."""

    def __init__(self, backend: Backend, start: str, base: str, everything: bool, ctx: Context[Any]) -> None:
        self.backend = backend
        self.start = start
        self.base = base
        self.ctx = ctx
        self.deadline = time.monotonic() + SECONDS
        self.stopped = False
        folder = posixpath.normpath(posixpath.join(start, base))
        self.walk = FileWalk(backend, folder, everything, self._check, ctx.permits)

    @property
    def withheld(self) -> int:
        return self.walk.withheld

    def files(self, glob: GlobPattern) -> Iterator[tuple[str, int]]:
        """The matching files as paths from the start, each with its modification time (ns)."""
        within = self.backend.place(self.walk.start)
        if self.base and not self.ctx.permits(Access(Reach.READ, within.shown, subtree=True)):
            self.walk.withheld += 1  # whether there is such a folder or not
            return
        try:
            for path, entry in self.walk.files():
                path = f"{self.base}/{path}" if self.base else path
                if glob.matches(path) and (status := entry.status()) is not None:
                    yield path, status.modified
        except _TooSlow:
            self.stopped = True
        except ToolError:
            if not self.base:
                raise
            # a missing `path` is an error, a pattern that fits nothing is not
            self.backend.entries(self.start, self.ctx.permits)

    def _check(self) -> None:
        self.ctx.check_cancelled()
        if time.monotonic() > self.deadline:
            raise _TooSlow


class _TooSlow(Exception):
    pass
