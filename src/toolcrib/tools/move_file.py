"""`move_file`: gives one file another path."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.question import Preview
from toolcrib.tool import Tool
from toolcrib.tools.backends.protocol import Move
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths, refuse_folder
from toolcrib.tools.diffs import shown_with_target
from toolcrib.tools.in_folder import ChangesFiles
from toolcrib.tools.would_fail import failure_of, find_file

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend, Permits


FOLDERS = "Only files can be moved; for folders use a command such as mv."


class MoveFileParams(BaseModel):
    path: str = Field(description="File to move, relative to the workspace.")
    to: str = Field(description="Its new path, where nothing may be yet, relative to the workspace.")


class MoveFile(
    ChangesFiles,
    Tool[MoveFileParams, str],
    name="move_file",
    effect=Effect.WRITE,
    secrets=(),
    title="Move file",
    category="files",
    open_world=False,
):
    """Move or rename one file within the workspace; its content and permissions stay.

    Nothing is overwritten, and folders on the way are created. Text that names the file is not changed. Folders
    are moved with a command.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = as_backend(backend)

    def accesses(self, params: MoveFileParams) -> tuple[Access, ...]:
        # Under its new name the file may be read by other rules: so it counts as read, too.
        reaches = [(Reach.READ, params.path), (Reach.DELETE, params.path), (Reach.WRITE, params.to)]
        return tuple(access for reach, path in reaches for access in self.backend.accesses_to(reach, path))

    def precheck(self, params: MoveFileParams) -> str | None:
        if params.to.endswith("/"):
            return f"{params.to} names a folder. Give the file's new name too; folders are created as needed."
        if params.to == params.path:
            return "path and to are the same, so there is nothing to move."
        return problem_of_paths(self.backend, params.path, params.to)

    def resources(self, params: MoveFileParams) -> list[str]:
        return [self.backend.resource(params.path), self.backend.resource(params.to)]

    def would_fail(self, params: MoveFileParams, permits: Permits) -> str | None:
        return failure_of(
            partial(find_file, self.backend, params.path, FOLDERS), self.accesses(params), permits
        )

    def preview(self, params: MoveFileParams) -> Preview:
        one, other = (shown_with_target(self.backend, path) for path in (params.path, params.to))
        status = self.backend.stat(params.path)
        return Preview(f"move {one} to {other}", digest="" if status is None else status.identity)

    def execute(self, params: MoveFileParams, ctx: Context[Any]) -> str:
        with self.backend.locked():
            ctx.check_cancelled()
            refuse_folder(self.backend, params.path, ctx.permits, FOLDERS)
            self.backend.apply([Move(params.path, params.to)], ctx.permits)
        return f"Moved {self.backend.place(params.path).shown} to {self.backend.place(params.to).shown}."
