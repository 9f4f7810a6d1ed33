"""`edit_file`: replaces one piece of text by another, if it can mean only one place.

`text_match` says which texts count as equal, `edit_plan` what the model is told, `syntax_check` what is looked at
before the file is written.
"""

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
from toolcrib.tools.backends.protocol import Permits, Write, version_of
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths
from toolcrib.tools.diffs import digest_of, shown_with_target, unified_diff
from toolcrib.tools.edit_plan import PlannedFile, TextEdit, check_edit, plan_edits
from toolcrib.tools.in_folder import ChangesFiles
from toolcrib.tools.would_fail import failure_of

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

MAX_BYTES = 10_000_000


class EditFileParams(BaseModel):
    path: str = Field(description="File to change, relative to the workspace.")
    old_string: str = Field(
        description="The text to replace, exactly as it stands in the file, with its indentation and enough "
        "lines around it that it occurs only once."
    )
    new_string: str = Field(description="What to put in its place. May be empty.")
    replace_all: bool = Field(
        False,
        description="Replace every occurrence, or with at every one in that line, not just a single one.",
    )
    at: str | None = Field(
        None,
        description='Address of the line where old_string begins, such as "42:k9", if it occurs more than once. '
        "Errors and results name addresses.",
    )

    def as_edit(self) -> TextEdit:
        return TextEdit(self.old_string, self.new_string, self.replace_all, self.at)


class EditFile(
    ChangesFiles,
    Tool[EditFileParams, str],
    name="edit_file",
    effect=Effect.WRITE,
    secrets=(),
    title="Edit file",
    category="files",
    open_world=False,
):
    """Replace one piece of text in a file of the workspace by another.

    old_string must occur exactly once, unless replace_all is set or at names its line. Line breaks are written
    as in the file already; its encoding and permissions stay. To create a file use write_file.
    """

    def __init__(self, backend: Backend, *, refuse_broken_syntax: bool = False) -> None:
        """An edit that newly breaks a file's syntax is made and reported, or with `refuse_broken_syntax` refused."""
        self.backend = as_backend(backend)
        self.refuse_broken_syntax = refuse_broken_syntax

    def accesses(self, params: EditFileParams) -> tuple[Access, ...]:
        # What it reads is shown in part when the text is not found.
        reads = (replace(one, free=True) for one in self.backend.accesses_to(Reach.READ, params.path))
        return (*self.backend.accesses_to(Reach.WRITE, params.path), *reads)

    def precheck(self, params: EditFileParams) -> str | None:
        return check_edit(params.as_edit()) or problem_of_paths(self.backend, params.path)

    def resources(self, params: EditFileParams) -> list[str]:
        return [self.backend.resource(params.path)]

    def would_fail(self, params: EditFileParams, permits: Permits) -> str | None:
        return failure_of(partial(self._plan, params), self.accesses(params), permits)

    def preview(self, params: EditFileParams) -> Preview:
        """The diff of the change, for the person who is asked."""
        data = b""
        try:
            data = self.backend.read(params.path, MAX_BYTES)
            edit = plan_edits(self.backend.place(params.path).shown, data, [params.as_edit()])
        except ToolError as problem:
            return Preview(f"It would fail: {problem.message}", digest=f"fails {digest_of(data)}")
        shown = shown_with_target(self.backend, params.path)
        text = unified_diff(edit.before, edit.after, shown) if edit.changes else edit.sentences[0]
        return Preview(f"{text}\n{broken_words(edit)}".strip("\n"), digest=digest_of(data))

    def execute(self, params: EditFileParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        shown = self.backend.place(params.path).shown
        with self.backend.locked():
            ctx.check_cancelled()
            data, edit = self._plan(params, ctx.permits)
            if not edit.changes:
                return edit.sentences[0]
            version = version_of(data)
            self.backend.apply([Write(params.path, edit.data, version)], ctx.permits)
            place = self.backend.leads_to(params.path) or shown
            seen = self.backend.seen.version(ctx.key.run, place)
            if seen is not None and seen != version:
                edit.sentences.append("Elsewhere the file had changed since you last read it.")
            else:
                self.backend.seen.note(ctx.key.run, place, version_of(edit.data))
        ctx.report(result={"diff": unified_diff(edit.before, edit.after, edit.shown)})
        return " ".join(filter(None, (*edit.sentences, broken_words(edit))))

    def _plan(self, params: EditFileParams, permits: Permits) -> tuple[bytes, PlannedFile]:
        """The file as it is, and with the edit made."""
        data = self.backend.read(params.path, MAX_BYTES, permits)
        edit = plan_edits(self.backend.place(params.path).shown, data, [params.as_edit()])
        refuse_broken(self.refuse_broken_syntax, [edit] if edit.changes else [])
        return data, edit


def refuse_broken(switch: bool, edits: list[PlannedFile]) -> None:
    """Refuses edits that break the syntax, if that is wanted."""
    broken = [edit for edit in edits if edit.problem]
    if switch and broken:
        named = "; ".join(f"{edit.shown}, {edit.problem}" for edit in broken)
        raise ToolError(f"The edit would break the syntax of {named}. Nothing was changed.")


def broken_words(edit: PlannedFile) -> str:
    """The warning about syntax that an edit breaks."""
    return f"Warning: the syntax of {edit.shown} is broken now, {edit.problem}." if edit.problem else ""
