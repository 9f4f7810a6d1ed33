"""`glob`: the files whose names fit a pattern."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.errors import ToolError
from toolcrib.tool import Effect, Tool
from toolcrib.tools.globbing import Glob, PatternError
from toolcrib.tools.places import printable
from toolcrib.tools.walking import walk_files

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.workspace import Workspace

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000


class GlobParams(BaseModel):
    pattern: str = Field(
        description='What to look for: "*.py" in any folder, "src/**/*.ts" below src, "/*.md" only in the '
        'folder itself. Hidden names need their dot: ".*", ".github/**".'
    )
    path: str = Field(".", description="Folder to search, relative to the workspace.")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many files at most.")
    include_ignored: bool = Field(
        False, description="Also look at what .gitignore names, and into .git, node_modules, .venv and such."
    )


class GlobFiles(
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

    Patterns know *, ?, [abc], {a,b} and ** for any number of folders. Paths are relative to the workspace.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def accesses(self, params: GlobParams) -> tuple[Access, ...]:
        return (
            Access(Reach.READ, self.workspace.resource(params.path), subtree=True, pattern=params.pattern),
        )

    def precheck(self, params: GlobParams) -> str | None:
        if not params.pattern.strip():
            return "pattern is empty. Use * for all files."
        try:
            Glob(params.pattern)
        except PatternError as refused:
            return f"pattern {params.pattern!r}: {refused}."
        return None

    def execute(self, params: GlobParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        glob = Glob(params.pattern)
        start = self.workspace.place(params.path).shown
        base = glob.base()
        found: list[tuple[int, str]] = []
        for path in self._below(start, base, params.include_ignored, ctx):
            if glob.matches(path):
                whole = posixpath.normpath(posixpath.join(start, path))
                status = self.workspace.stat(whole)
                if status is not None:
                    found.append((-status.st_mtime_ns, whole))
        ctx.report(tip=f"{len(found)} files")
        found.sort()
        if not found:
            where = "the workspace" if start == "." else start
            return f"[No files in {where} fit {params.pattern}.]"
        text = "\n".join(printable(path) for _, path in found[: params.limit])
        if len(found) > params.limit:
            text += (
                f"\n\n[The newest {params.limit} of {len(found)} files. Narrow the pattern or raise limit.]"
            )
        return text

    def _below(self, start: str, base: str, everything: bool, ctx: Context[Any]) -> list[str]:
        """The files to compare; a folder that the pattern writes out is searched alone, ignored or not."""
        folder = posixpath.join(start, base)
        self.workspace.place(folder)
        if base:
            try:
                files = walk_files(self.workspace, folder, everything=everything, check=ctx.check_cancelled)
                return [f"{base}/{path}" for path in files]
            except ToolError:
                self.workspace.entries(
                    start
                )  # a missing `path` is an error, a pattern that fits nothing is not
                return []
        return list(walk_files(self.workspace, start, everything=everything, check=ctx.check_cancelled))
