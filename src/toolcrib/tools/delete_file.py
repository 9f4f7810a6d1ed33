"""`delete_file`: removes one file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.question import Preview
from toolcrib.tool import Tool
from toolcrib.tools.backends.protocol import Delete
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths, refuse_folder
from toolcrib.tools.diffs import shown_with_target
from toolcrib.tools.in_folder import ChangesFiles
from toolcrib.tools.would_fail import failure_of, find_file
from toolcrib.visible import counted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend, Permits


FOLDERS = "Only files can be deleted; for folders use a command such as rm -r."


class DeleteFileParams(BaseModel):
    path: str = Field(description="File to delete, relative to the workspace.")


class DeleteFile(
    ChangesFiles,
    Tool[DeleteFileParams, str],
    name="delete_file",
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Delete file",
    category="files",
    open_world=False,
):
    """Delete one file of the workspace for good.

    Folders and symlinks are left alone. To replace a file use write_file; to rename it, move_file.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = as_backend(backend)

    def accesses(self, params: DeleteFileParams) -> tuple[Access, ...]:
        return self.backend.accesses_to(Reach.DELETE, params.path)

    def precheck(self, params: DeleteFileParams) -> str | None:
        return problem_of_paths(self.backend, params.path)

    def resources(self, params: DeleteFileParams) -> list[str]:
        return [self.backend.resource(params.path)]

    def would_fail(self, params: DeleteFileParams, permits: Permits) -> str | None:
        return failure_of(
            partial(find_file, self.backend, params.path, FOLDERS), self.accesses(params), permits
        )

    def preview(self, params: DeleteFileParams) -> Preview:
        shown = shown_with_target(self.backend, params.path)
        status = self.backend.stat(params.path)
        size = "is not there" if status is None else f"{counted(status.size, 'byte')}"
        return Preview(f"delete {shown} ({size})", digest="" if status is None else status.identity)

    def execute(self, params: DeleteFileParams, ctx: Context[Any]) -> str:
        with self.backend.locked():
            ctx.check_cancelled()
            refuse_folder(self.backend, params.path, ctx.permits, FOLDERS)
            self.backend.apply([Delete(params.path)], ctx.permits)
        return f"Deleted {self.backend.place(params.path).shown}."
