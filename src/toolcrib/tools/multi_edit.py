"""`multi_edit`: several edits of one or several files, all made or none."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.dataclass import replace
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.question import Preview
from toolcrib.tool import Tool
from toolcrib.tools.backends.protocol import Permits, Write, permit_all, version_of
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths
from toolcrib.tools.diffs import digest_of, shown_with_target, unified_diff
from toolcrib.tools.edit_file import MAX_BYTES, broken_words, refuse_broken
from toolcrib.tools.edit_plan import PlannedFile, TextEdit, check_edit, plan_edits
from toolcrib.tools.in_folder import ChangesFiles
from toolcrib.tools.would_fail import failure_of

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

MAX_EDITS = 100


class OneEdit(BaseModel):
    path: str = Field(description="File to change, relative to the workspace.")
    old_string: str = Field(
        description="The text to replace, exactly as it stands in the file, and only once unless at names its line."
    )
    new_string: str = Field(description="What to put in its place. May be empty.")
    at: str | None = Field(
        None,
        description='Address of the line where old_string begins, such as "42:k9", before any of the edits.',
    )

    def as_edit(self) -> TextEdit:
        return TextEdit(self.old_string, self.new_string, at=self.at)


class MultiEditParams(BaseModel):
    edits: list[OneEdit] = Field(
        min_length=1,
        max_length=MAX_EDITS,
        description="The edits. Those of one file are made in order, each on the result of the one before.",
    )


class MultiEdit(
    ChangesFiles,
    Tool[MultiEditParams, str],
    name="multi_edit",
    effect=Effect.WRITE,
    secrets=(),
    title="Edit files",
    category="files",
    open_world=False,
):
    """Make several edits of one or more files in the workspace: all of them, or none if one cannot be made.

    Use it for changes that belong together, such as renaming a function and its calls. Each edit works as in
    edit_file; for a single one use that.
    """

    def __init__(self, backend: Backend, *, refuse_broken_syntax: bool = False) -> None:
        self.backend = as_backend(backend)
        self.refuse_broken_syntax = refuse_broken_syntax

    def accesses(self, params: MultiEditParams) -> tuple[Access, ...]:
        found: list[Access] = []
        for path in _paths(params):
            found += self.backend.accesses_to(Reach.WRITE, path)
            # What it reads is shown in part when a text is not found.
            found += (replace(one, free=True) for one in self.backend.accesses_to(Reach.READ, path))
        return tuple(found)

    def precheck(self, params: MultiEditParams) -> str | None:
        for number, edit in enumerate(params.edits, 1):
            if problem := check_edit(edit.as_edit()):
                return f"Edit {number} of {len(params.edits)}: {problem}"
        return problem_of_paths(self.backend, *_paths(params))

    def resources(self, params: MultiEditParams) -> list[str]:
        return [self.backend.resource(path) for path in _paths(params)]

    def would_fail(self, params: MultiEditParams, permits: Permits) -> str | None:
        return failure_of(partial(self._plan, params), self.accesses(params), permits)

    def preview(self, params: MultiEditParams) -> Preview:
        """The diffs of all files, for the person who is asked."""
        try:
            found = self._plan(params, permit_all)
        except ToolError as problem:
            return Preview(f"It would fail: {problem.message}", digest=f"fails {problem.message}")
        texts = [
            unified_diff(plan.before, plan.after, shown_with_target(self.backend, path)) + broken_words(plan)
            for path, (_, plan) in found.items()
        ]
        versions = "".join(version for version, _ in found.values())
        return Preview("\n".join(filter(None, texts)), digest=digest_of(versions.encode()))

    def execute(self, params: MultiEditParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        with self.backend.locked():
            ctx.check_cancelled()
            found = self._plan(params, ctx.permits)
            plans = [plan for _, plan in found.values()]
            changes = [
                Write(path, plan.data, version) for path, (version, plan) in found.items() if plan.changes
            ]
            if changes:
                self.backend.apply(changes, ctx.permits)
        ctx.report(result={"diff": "".join(unified_diff(one.before, one.after, one.shown) for one in plans)})
        return "\n".join(line for plan in plans for line in (*plan.sentences, broken_words(plan)) if line)

    def _plan(self, params: MultiEditParams, permits: Permits) -> dict[str, tuple[str, PlannedFile]]:
        """Each file with its version and its edits made."""
        found: dict[str, tuple[str, PlannedFile]] = {}
        for path in _paths(params):
            edits = [edit.as_edit() for edit in params.edits if edit.path == path]
            try:
                data = self.backend.read(path, MAX_BYTES, permits)
                plan = plan_edits(self.backend.place(path).shown, data, edits)
            except ToolError as refused:
                raise ToolError(f"No edit was made. {refused.message}") from None
            found[path] = (version_of(data), plan)
        refuse_broken(self.refuse_broken_syntax, [plan for _, plan in found.values()])
        return found


def _paths(params: MultiEditParams) -> list[str]:
    return list(dict.fromkeys(edit.path for edit in params.edits))
