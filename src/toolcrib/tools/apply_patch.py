"""`apply_patch`: changes, adds, moves and deletes files by a patch in the format that OpenAI's models were trained on.

Other models write such patches badly; `edit_tools` says which models to offer it to. It has two more forms for
OpenAI's Responses, which are plain functions for other providers: `NativeApplyPatch` is OpenAI's own tool, for GPT-5.1
and later, whose calls patch one file each; `FreeformApplyPatch` is a custom tool, for GPT-5, held to the grammar.
"""

from __future__ import annotations

from functools import partial
from inspect import cleandoc
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.dataclass import dataclass, replace
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.question import Preview
from toolcrib.tool import Tool
from toolcrib.tools.backends.protocol import Change, Delete, Move, Permits, Write, permit_all, version_of
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths
from toolcrib.tools.diffs import digest_of, shown_with_target, unified_diff
from toolcrib.tools.edit_file import MAX_BYTES
from toolcrib.tools.file_kinds import describe
from toolcrib.tools.in_folder import ChangesFiles
from toolcrib.tools.line_address import region_addresses
from toolcrib.tools.patch_text import FilePatch, patched, read_patch
from toolcrib.tools.syntax_check import newly_broken
from toolcrib.tools.text_encoding import change_beside_diff, decode, detect, encode, text_for_diff
from toolcrib.tools.text_match import Match, Source
from toolcrib.tools.would_fail import failure_of

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

MAX_PATCH = 1_000_000  # characters
UNCHANGED = "Nothing was changed."
REPLACED = " (replaced the file there)"
SAME = "="  # the mark of a file that stays as it is

# The grammar of the format, for OpenAI's custom tools. Codex publishes it as tool_apply_patch.lark (Apache 2.0).
GRAMMAR = r"""start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
"""


class ApplyPatchParams(BaseModel):
    patch: str = Field(description="The patch, from '*** Begin Patch' to '*** End Patch'.")


@dataclass(slots=True)
class _Planned:
    """The change of one file. `remark` tells the model about it, `note` the person who is asked."""

    change: Change
    mark: str  # A, M or D, as Codex says it; empty for a file that the model is not told of
    shown: str
    before: str
    after: str
    version: str
    remark: str = ""
    note: str = ""


class ApplyPatch(
    ChangesFiles,
    Tool[ApplyPatchParams, str],
    name="apply_patch",
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Apply patch",
    category="files",
    open_world=False,
):
    """Change, add, move or delete files of the workspace by a patch: all that it says, or nothing.

    The patch stands between '*** Begin Patch' and '*** End Patch'. Files begin with '*** Add File: path' (each line
    after '+'), '*** Delete File: path' or '*** Update File: path' (maybe followed by '*** Move to: path'). Changed
    lines begin with '-' and '+', the lines around them with a space, and '@@ line' names a line above them.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = as_backend(backend)

    def accesses(self, params: ApplyPatchParams) -> tuple[Access, ...]:
        found: list[Access] = []
        for patch in _files(params):
            reach = Reach.DELETE if patch.kind == "delete" or patch.to else Reach.WRITE
            found += self.backend.accesses_to(reach, patch.path)
            if patch.kind == "update":
                # What it reads is shown in part when lines are not found; where a file moves, its readers may change.
                reads = self.backend.accesses_to(Reach.READ, patch.path)
                found += (replace(one, free=not patch.to) for one in reads)
            if patch.to:
                found += self.backend.accesses_to(Reach.WRITE, patch.to)
        return tuple(found)

    def effect_for(self, params: ApplyPatchParams, /) -> Effect:
        """Only a patch that deletes, or may replace what it does not read, is worse than a write."""
        files = _files(params)
        gentle = bool(files) and all(patch.kind == "update" and not patch.to for patch in files)
        return Effect.WRITE if gentle else Effect.DESTRUCTIVE

    def precheck(self, params: ApplyPatchParams) -> str | None:
        if len(params.patch) > MAX_PATCH:
            return f"patch is {len(params.patch):,} characters long; at most {MAX_PATCH:,} are possible."
        try:
            read_patch(params.patch)
        except ToolError as refused:
            return refused.message
        return problem_of_paths(self.backend, *_paths(params))

    def resources(self, params: ApplyPatchParams) -> list[str]:
        return [self.backend.resource(path) for path in dict.fromkeys(_paths(params))]

    def would_fail(self, params: ApplyPatchParams, permits: Permits) -> str | None:
        return failure_of(partial(self._plan_all, params), self.accesses(params), permits)

    def preview(self, params: ApplyPatchParams) -> Preview:
        """The diffs of all files, for the person who is asked."""
        try:
            planned = self._plan_all(params, permit_all)
        except ToolError as problem:
            return Preview(f"It would fail: {problem.message}", digest=f"fails {problem.message}")
        texts = [self._preview_of(one) for one in planned]
        return Preview("\n".join(texts), digest=digest_of("".join(one.version for one in planned).encode()))

    def _preview_of(self, one: _Planned) -> str:
        shown = shown_with_target(self.backend, one.shown)
        return f"{one.mark or 'D'} {shown}{one.note}\n{unified_diff(one.before, one.after, shown)}"

    def execute(self, params: ApplyPatchParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        with self.backend.locked():
            ctx.check_cancelled()
            planned = [one for one in self._plan_all(params, ctx.permits) if one.mark != SAME]
            if not planned:
                return "The files already read like that; nothing was changed."
            self.backend.apply([one.change for one in planned], ctx.permits)
        ctx.report(
            result={"diff": "".join(unified_diff(one.before, one.after, one.shown) for one in planned)}
        )
        listed = [f"{one.mark} {one.shown}{one.remark}" for one in planned if one.mark]
        return "\n".join(["Success. Updated the following files:", *listed])

    def _plan_all(self, params: ApplyPatchParams, permits: Permits) -> list[_Planned]:
        try:
            return [one for patch in read_patch(params.patch) for one in self._plan(patch, permits)]
        except ToolError as refused:
            told = refused.message
            raise ToolError(told if UNCHANGED in told else f"{told} {UNCHANGED}") from None

    def _plan(self, patch: FilePatch, permits: Permits) -> list[_Planned]:
        shown = self.backend.place(patch.path).shown
        if patch.kind == "add":
            there = self.backend.stat(patch.path, permits)
            if there is None or there.kind != "file":
                write = Write(patch.path, patch.content.encode(errors="surrogatepass"))
                return [_Planned(write, "A", shown, "", patch.content, "", _broken(shown, "", patch.content))]
        data = self.backend.read(patch.path, MAX_BYTES, permits)
        version = version_of(data)
        encoding = detect(data)
        if patch.kind == "add":
            new, before = patch.content.encode(), text_for_diff(data)
            write, note = Write(patch.path, new, version), _replacing(data, new)
            return [_Planned(write, "A", shown, before, patch.content, version, REPLACED, note)]
        if patch.kind == "delete":
            return [_Planned(Delete(patch.path, version), "D", shown, text_for_diff(data), "", version)]
        if encoding is None:
            raise ToolError(f"{shown} is {describe(data)}, which cannot be edited as text.")
        before = decode(shown, data, encoding)
        source = Source(before)
        matches = patched(shown, source, patch.chunks)
        after = source.replace(matches)
        new = encode(shown, after, encoding)
        said = (
            ""
            if not matches
            else f" (lines now: {region_addresses(after, *_region(source, matches, after))})"
        )
        if not patch.to:
            if after == before:
                return [_Planned(Write(patch.path, data), SAME, shown, before, after, version)]
            said += _broken(shown, before, after)
            return [_Planned(Write(patch.path, new, version), "M", shown, before, after, version, said)]
        to = self.backend.place(patch.to).shown
        if self.backend.stat(patch.to, permits) is None:
            move = Move(patch.path, patch.to, new, version)
            return [_Planned(move, "M", to, before, after, version, said, f" (moved from {shown})")]
        target = self.backend.read(patch.to, MAX_BYTES, permits)
        version_there, note = version_of(target), _replacing(target, new)
        write = Write(patch.to, new, version_there)
        return [
            _Planned(write, "M", to, text_for_diff(target), after, version_there, f"{said}{REPLACED}", note),
            _Planned(Delete(patch.path, version), "", shown, before, "", version),
        ]


class FreeformApplyPatch(
    ApplyPatch,
    name="apply_patch",
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Apply patch",
    category="files",
    open_world=False,
    description=cleandoc(ApplyPatch.__doc__ or ""),
    extras={
        "openai": {"type": "custom", "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}}
    },
):
    """`apply_patch` as a custom tool of OpenAI's, whose call is a patch held to its grammar."""


class NativeApplyPatch(
    ApplyPatch,
    name="apply_patch",
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Apply patch",
    category="files",
    open_world=False,
    description=cleandoc(ApplyPatch.__doc__ or ""),
    extras={"openai": {"type": "apply_patch"}},
):
    """`apply_patch` as OpenAI's own tool, whose call is the patch of one file."""


def _files(params: ApplyPatchParams) -> list[FilePatch]:
    try:
        return read_patch(params.patch)
    except ToolError:  # `precheck` says so
        return []


def _paths(params: ApplyPatchParams) -> list[str]:
    return [path for patch in _files(params) for path in (patch.path, patch.to) if path]


def _replacing(old: bytes, new: bytes) -> str:
    """The note for a person about a file that is replaced."""
    said = change_beside_diff(old, new)
    return f" (replaces the file there)\n{said}" if said else " (replaces the file there)"


def _region(source: Source, matches: list[Match], after: str) -> tuple[int, int]:
    """Where the changed lines begin and end in the new text."""
    start = source.original_offset(matches[0].start)
    end = len(after) - (len(source.original) - source.original_offset(matches[-1].end))
    return start, end


def _broken(shown: str, before: str, after: str) -> str:
    problem = newly_broken(shown, before, after)
    return f"\nWarning: the syntax of {shown} is broken now, {problem}." if problem else ""
