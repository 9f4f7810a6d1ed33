"""`write_file`: writes a whole file atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.question import Preview
from toolcrib.tool import Tool
from toolcrib.tools.backends.protocol import Permits, Write, permit_all, version_of
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths
from toolcrib.tools.diffs import digest_of, shown_with_target, unified_diff
from toolcrib.tools.in_folder import ChangesFiles
from toolcrib.tools.text_encoding import change_beside_diff, decode, detect, text_for_diff
from toolcrib.visible import counted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

MAX_BYTES = 10_000_000
MAX_DIFFED = 1_000_000  # bytes of an old file up to which a diff is shown to the person


class WriteFileParams(BaseModel):
    path: str = Field(description="File to create or replace, relative to the workspace.")
    content: str = Field(description="The whole new content of the file.")


class WriteFile(
    ChangesFiles,
    Tool[WriteFileParams, str],
    name="write_file",
    effect=Effect.WRITE,
    secrets=(),
    title="Write file",
    category="files",
    idempotent=True,
    open_world=False,
):
    """Create a file, or replace all of it, as UTF-8 text exactly as given.

    Folders on the way are created; the file's permissions stay. To change a part of a file use edit_file.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = as_backend(backend)

    def accesses(self, params: WriteFileParams) -> tuple[Access, ...]:
        return self.backend.accesses_to(Reach.WRITE, params.path)

    def precheck(self, params: WriteFileParams) -> str | None:
        try:
            size = len(params.content.encode())
        except UnicodeEncodeError:
            return "content holds half of a surrogate pair, which cannot be written as UTF-8."
        if size > MAX_BYTES:
            return f"content is {size:,} bytes long; at most {MAX_BYTES:,} can be written at once."
        if params.path.endswith("/"):
            return f"{params.path} names a folder. Give the file's name too; folders are created as needed."
        return problem_of_paths(self.backend, params.path)

    def resources(self, params: WriteFileParams) -> list[str]:
        return [self.backend.resource(params.path)]

    def preview(self, params: WriteFileParams) -> Preview:
        """The diff of the change, for the person who is asked."""
        try:
            shown = shown_with_target(self.backend, params.path)
            there = self.backend.stat(params.path)
            large = there is not None and there.kind == "file" and there.size > MAX_BYTES
            old = b"" if there is None or large else self.backend.read(params.path, MAX_BYTES)
        except ToolError as problem:
            return Preview(f"It would fail: {problem.message}", digest="fails")
        before = text_for_diff(old) if len(old) <= MAX_DIFFED else ""
        diff = unified_diff(before, params.content, shown)
        if there is None:
            note, digest = "" if diff else "It is made, and empty.", "absent"
        elif large or len(old) > MAX_DIFFED:
            note = f"It has {counted(there.size, 'byte')}, too many to be shown."
            digest = f"{there.size} {there.modified} {there.identity}" if large else digest_of(old)
        else:
            note, digest = change_beside_diff(old, params.content.encode()), digest_of(old)
        return Preview(f"{shown}: {note}\n{diff}" if note else diff, digest=digest)

    def execute(self, params: WriteFileParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        shown = self.backend.place(params.path).shown
        data = params.content.encode()
        with self.backend.locked():
            ctx.check_cancelled()
            status = self.backend.stat(params.path, ctx.permits)
            before = self._before(params.path, ctx.permits) if status is not None else ""
            # What changed since the run read it is not overwritten unseen.
            place = self.backend.leads_to(params.path) or shown
            seen = self.backend.seen.version(ctx.key.run, place)
            expected = seen if status is not None else None
            (created,) = self.backend.apply([Write(params.path, data, expected)], ctx.permits)
            self.backend.seen.note(ctx.key.run, place, version_of(data))
        if before is not None:
            ctx.report(result={"diff": unified_diff(before, params.content, shown)})
        lines = len(params.content.splitlines())
        if created or status is None:  # or rules keep what was there from being read
            did = "Created" if created else "Wrote"
            return f"{did} {shown}: {counted(lines, 'line')}, {counted(len(data), 'byte')}."
        sizes = (
            f"{counted(lines, 'line')}, {counted(len(data), 'byte')} (before: {counted(status.size, 'byte')})"
        )
        return f"Replaced {shown}: {sizes}."

    def _before(self, path: str, permits: Permits = permit_all) -> str | None:
        """The old text, for the diff; None if it is not text."""
        try:
            old = self.backend.read(path, MAX_DIFFED, permits)
            encoding = detect(old)
            return None if encoding is None else decode(path, old, encoding)
        except ToolError:
            return None
