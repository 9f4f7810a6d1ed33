"""`list_dir`: lists a folder, and the folders below it to a given depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, Field

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.ignore_rules import SKIPPED
from toolcrib.tool import Tool
from toolcrib.tools.backends.refusals import as_backend, problem_of_paths
from toolcrib.tools.file_walk import withheld_note
from toolcrib.tools.in_folder import InFolder
from toolcrib.tools.workspace_paths import joined, printable_path
from toolcrib.visible import counted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.backends.protocol import Backend, DirectoryEntry, Kind

DEFAULT_ENTRIES = 500
MAX_ENTRIES = 1_000
MAX_DEPTH = 10
MAX_COUNTED = 50_000  # entries after which the rest is not even counted
MARKS = {"file": "", "folder": "/", "link": "@", "other": " (not a regular file)"}


class ListDirParams(BaseModel):
    path: str = Field(".", description="Folder to list, relative to the workspace.")
    depth: int = Field(1, ge=1, le=MAX_DEPTH, description="How many levels of folders to list.")
    offset: int = Field(1, ge=1, description="Entry to begin at, counted from 1.")
    limit: int = Field(DEFAULT_ENTRIES, ge=1, le=MAX_ENTRIES, description="How many entries at most.")


class ListDir(
    InFolder,
    Tool[ListDirParams, str],
    name="list_dir",
    effect=Effect.READ,
    secrets=(),
    title="List folder",
    category="files",
    idempotent=True,
    open_world=False,
):
    """List a folder, hidden files included: one name a line, sorted, what is in a folder indented below it.

    Files are shown with their size, folders end in "/", and a symlink is shown as "name@ -> target". Links, and folders
    that tools fill (.git, node_modules, .venv and such), are not entered.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = as_backend(backend)

    def accesses(self, params: ListDirParams) -> tuple[Access, ...]:
        below = "" if params.depth > 1 else "./*"
        return self.backend.accesses_to(Reach.READ, params.path, subtree=True, pattern=below)

    def precheck(self, params: ListDirParams) -> str | None:
        return problem_of_paths(self.backend, params.path)

    def execute(self, params: ListDirParams, ctx: Context[Any]) -> str:
        shown = self.backend.place(params.path).shown
        lines: list[str] = []
        count = 0
        listing = _Listing(self.backend, shown, params.depth, ctx)
        for count, found in enumerate(listing.entries(), 1):
            if params.offset <= count < params.offset + params.limit:
                lines.append(listing.line(found))
            if count >= MAX_COUNTED:
                break
        ctx.report(tip=f"{shown}, {counted(count, 'entry', 'entries')}")
        note = withheld_note(listing.withheld)
        if not count:
            return f"[{note}]" if note else f"[{shown} is empty.]"
        if params.offset > count:
            raise ToolError(
                f"Offset {params.offset} is past the end: {shown} has {counted(count, 'entry', 'entries')}."
            )
        last = params.offset + len(lines) - 1
        text = "\n".join(lines)
        notes = [note] if note else []
        if last < count:
            total = f"{count}" if count < MAX_COUNTED else f"at least {count}"
            notes.insert(0, f"Entries {params.offset}-{last} of {total}. Use offset={last + 1} to read on.")
        return f"{text}\n\n[{' '.join(notes)}]" if notes else text


class _Found(NamedTuple):
    """An entry at its path, how deep it is below the folder, and what is said of a folder that is not entered."""

    path: str
    entry: DirectoryEntry
    depth: int
    closed: str = ""


class _Listing:
    """One listing; `withheld` counts the entries that rules deny."""

    def __init__(self, backend: Backend, folder: str, depth: int, ctx: Context[Any]) -> None:
        self.backend = backend
        self.folder = folder
        self.depth = depth
        self.ctx = ctx
        self.withheld = 0
        self.behind_link = backend.leads_to(folder) != folder

    def entries(self) -> Iterator[_Found]:
        """The entries of the listing, depth first and without recursion."""
        permits = self.ctx.permits
        open_folders = [(self.folder, iter(self.backend.entries(self.folder, permits)))]
        while open_folders:
            self.ctx.check_cancelled()
            where, entries = open_folders[-1]
            entry = next(entries, None)
            if entry is None:
                open_folders.pop()
                continue
            path = joined(where, entry.name)
            if not self._may_see(path, entry.kind):
                self.withheld += 1
                continue
            depth = len(open_folders) - 1
            enters = entry.kind == "folder" and len(open_folders) < self.depth
            if not enters or entry.name in SKIPPED:
                yield _Found(path, entry, depth, " (not listed)" if enters else "")
                continue
            try:
                inside = self.backend.entries(path, permits)
            except ToolError:
                yield _Found(path, entry, depth, " (cannot be read)")
                continue
            yield _Found(path, entry, depth)
            open_folders.append((path, iter(inside)))

    def line(self, found: _Found) -> str:
        """The line of an entry."""
        return (
            f"{'  ' * found.depth}{_label(found.entry)}{self._target(found.path, found.entry)}{found.closed}"
        )

    def _may_see(self, path: str, kind: Kind) -> bool:
        """Whether rules allow a name to be shown, and the path to which its symlinks lead."""
        below = kind == "folder"
        if not self.ctx.permits(Access(Reach.READ, path, subtree=below)):
            return False
        if kind != "link" and not self.behind_link:
            return True
        real = self.backend.leads_to(path)
        # Of a link that leads out of the workspace or in a circle, no target is shown.
        return real in (None, path) or self.ctx.permits(Access(Reach.READ, real or path, subtree=below))

    def _target(self, path: str, entry: DirectoryEntry) -> str:
        """The target of a symlink, if it is inside the workspace; paths of the host are not shown."""
        if entry.kind != "link":
            return ""
        real = self.backend.leads_to(path)
        if real is None or self.backend.stat(path, self.ctx.permits) is None:
            return " -> (nothing, or outside the workspace)"
        return f" -> {printable_path(real)}"


def _label(entry: DirectoryEntry) -> str:
    label = printable_path(entry.name) + MARKS[entry.kind]
    status = entry.status() if entry.kind == "file" else None
    return label if status is None else f"{label}  {_size(status.size)}"


def _size(count: int) -> str:
    """A size in bytes, or as a number with one decimal of KB, MB or GB."""
    if count < 1_000:
        return f"{count} B"
    size = count / 1_000
    for unit in ("KB", "MB"):
        if size < 999.95:
            return f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:,.1f} GB"
