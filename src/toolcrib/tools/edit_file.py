"""`edit_file`: replaces one piece of text by another, if it can mean only one place.

One edit a call: production systems that accepted lists or looser matches saved tokens and corrupted files.
`text_match` says which texts count as equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.question import Doubt, Preview
from toolcrib.tool import Tool
from toolcrib.tools.backends.protocol import Write, version_of
from toolcrib.tools.diffs import digest_of, shown_with_target, unified_diff
from toolcrib.tools.text_match import (
    SHOWN_CHARS,
    SHOWN_LINES,
    UNSAFE,
    Match,
    Source,
    find_exact,
    find_tolerant,
    nearest,
)
from toolcrib.tools.textfile import decode, describe, encode, sniff

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend

MAX_BYTES = 10_000_000
LISTED_MATCHES = 10
PREVIEW_LINES = 20  # of a file in which nothing like the wanted text stands


class EditFileParams(BaseModel):
    path: str = Field(description="File to change, relative to the workspace.")
    old_string: str = Field(
        description="The text to replace, exactly as it stands in the file, with its indentation and enough "
        "lines around it that it occurs only once."
    )
    new_string: str = Field(description="What to put in its place. May be empty.")
    replace_all: bool = Field(False, description="Replace every occurrence, not just a single one.")


@dataclass(frozen=True, slots=True)
class PlannedEdit:
    """An edit that can be made."""

    shown: str
    before: str
    after: str
    changed: bytes
    source: Source
    matches: list[Match]


class EditFile(
    Tool[EditFileParams, str],
    name="edit_file",
    effect=Effect.WRITE,
    secrets=(),
    title="Edit file",
    category="files",
    open_world=False,
):
    """Replace one piece of text in a file by another.

    old_string must occur exactly once, unless replace_all is set. Line breaks are written as in the file
    already; its encoding and permissions stay. To create a file use write_file.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def unavailable(self) -> str | None:
        return self.backend.read_only

    def accesses(self, params: EditFileParams) -> tuple[Access, ...]:
        # What it reads is shown in part when the text is not found.
        reads = (replace(one, free=True) for one in self.backend.accesses_to(Reach.READ, params.path))
        return (*self.backend.accesses_to(Reach.WRITE, params.path), *reads)

    def doubt(self, params: EditFileParams) -> Doubt | None:
        return self.backend.doubt(self.accesses(params))

    def precheck(self, params: EditFileParams) -> str | None:
        if params.old_string == params.new_string:
            return "old_string and new_string are identical, so there is nothing to change."
        if not params.old_string:
            return "old_string is empty. To create a file or replace all of it, use write_file."
        return None

    def resources(self, params: EditFileParams) -> list[str]:
        return [self.backend.resource(params.path)]

    def preview(self, params: EditFileParams) -> Preview:
        """The diff of the change, for the person who is asked."""
        data = b""
        try:
            data = self.backend.read(params.path, MAX_BYTES)
            edit = self._edit(params, data)
        except ToolError as problem:
            return Preview(f"It would fail: {problem.message}", digest=f"fails {digest_of(data)}")
        shown = shown_with_target(self.backend, params.path)
        return Preview(unified_diff(edit.before, edit.after, shown), digest=digest_of(data))

    def execute(self, params: EditFileParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        with self.backend.locked():
            ctx.check_cancelled()
            data = self.backend.read(params.path, MAX_BYTES, ctx.permits)
            edit = self._edit(params, data)
            self.backend.apply([Write(params.path, edit.changed, version_of(data))], ctx.permits)
        ctx.report(result={"diff": unified_diff(edit.before, edit.after, edit.shown)})
        return _summary(edit.shown, edit.source, edit.matches)

    def _edit(self, params: EditFileParams, data: bytes) -> PlannedEdit:
        """Plans the edit of a file; raises ToolError where it cannot be made."""
        shown = self.backend.place(params.path).shown
        encoding = sniff(data, len(data))
        if encoding is None:
            raise ToolError(f"{shown} is {describe(data)}, which cannot be edited as text.")
        try:
            before = decode(data, encoding)
        except UnicodeDecodeError:
            raise ToolError(f"{shown} is not the {encoding.name.upper()} text that it says it is.") from None
        source = Source(before)
        matches = self._matches(params, source, shown)
        after = source.replace(matches)
        if after == before:
            raise ToolError(f"{shown} already reads like that; nothing was changed.")
        try:
            changed = encode(after, encoding)
        except UnicodeEncodeError:
            raise ToolError(f"new_string holds characters that cannot be written to {shown}.") from None
        return PlannedEdit(shown, before, after, changed, source, matches)

    def _matches(self, params: EditFileParams, source: Source, shown: str) -> list[Match]:
        old = _plain(params.old_string)
        new = _plain(params.new_string)
        if not old:
            raise ToolError("old_string holds nothing but a byte order mark.")
        matches = find_exact(source.text, old, new)
        if not matches and not params.replace_all:
            matches = find_tolerant(source.text, old, new)
        if not matches or (len(matches) == 1 and matches[0].differs == UNSAFE):
            raise ToolError(_not_found(shown, source, old))
        if len(matches) > 1 and not params.replace_all:
            raise ToolError(_ambiguous(shown, source, matches))
        return matches


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _summary(shown: str, source: Source, matches: list[Match]) -> str:
    lines = [source.line_of(match.start) for match in matches[:LISTED_MATCHES]]
    if len(matches) == 1:
        text = f"Edited {shown} at line {lines[0]}."
        differs = matches[0].differs
        return text if not differs else f"{text} What stood there differed from old_string in {differs}."
    listed = ", ".join(str(line) for line in lines) + (", ..." if len(matches) > len(lines) else "")
    return f"Edited {shown}: replaced {len(matches)} occurrences, at lines {listed}."


def _ambiguous(shown: str, source: Source, matches: list[Match]) -> str:
    if matches[0].differs:
        reason = f"old_string does not occur in {shown} as written, and {len(matches)} places differ only in "
        reason += "typography or indentation"
    else:
        reason = f"old_string occurs {len(matches)} times in {shown}"
    lines = "\n".join(
        f"  line {source.line_of(match.start)}: {_first_line(source.text[match.start : match.end])}"
        for match in matches[:LISTED_MATCHES]
    )
    return (
        f"{reason}:\n{lines}\nNothing was changed. Add lines around it to old_string until it fits one place"
        + (", or set replace_all to change every one." if not matches[0].differs else ".")
    )


def _first_line(text: str) -> str:
    return text.strip("\n").split("\n", 1)[0][:SHOWN_CHARS]


def _not_found(shown: str, source: Source, old: str) -> str:
    """The error message with what the model needs to try again: the nearest places."""
    if not source.text:
        return f"old_string was not found: {shown} is empty. Use write_file."
    text = f"old_string was not found in {shown}. It must fit exactly, with all spaces and line breaks."
    places = nearest(source.text, old)
    for line, there, difference in places:
        text += f"\nNearest, from line {line} ({difference}):\n{_numbered(there[:SHOWN_LINES], line)}"
        if len(there) > SHOWN_LINES:
            text += f"\n... ({len(there) - SHOWN_LINES} more lines)"
    if not places:
        lines = source.text.removesuffix("\n").split("\n")
        text += f"\nThe file begins:\n{_numbered(lines[:PREVIEW_LINES], 1)}"
        if len(lines) > PREVIEW_LINES:
            text += f"\n... ({len(lines) - PREVIEW_LINES} more lines)"
    if "\\n" in old and "\n" not in old:
        text += "\nold_string holds \\n as two characters: was a line break meant?"
    return text + "\nNothing was changed. Read the place again if it is not what you expected."


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>4}: {line[:SHOWN_CHARS]}" for number, line in enumerate(lines, first))
