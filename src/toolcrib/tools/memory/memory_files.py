"""`memory`: the memories as files, in the shape of Anthropic's memory tool, which its models know.

One flat object holds the parameters of all commands, as Anthropic has it; what each command needs is checked here.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.tool import Tool
from toolcrib.tools.backends.protocol import ABSENT, Change, Delete, Move, Write, version_of
from toolcrib.tools.memory.opening import Stores, opened_once
from toolcrib.tools.memory.store import MemoryStore
from toolcrib.visible import counted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

ROOT = "/memories"
MAX_BYTES = 100_000  # of one file
MAX_LISTED = 500
LINE = re.compile(r"[^\n]*\n|[^\n]+")  # as `view` numbers them
NEEDED = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class MemoryFilesParams(BaseModel):
    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"] = Field(
        description="What to do."
    )
    path: str | None = Field(None, description="The file or folder, such as /memories/notes.md.")
    view_range: list[int] | None = Field(
        None, min_length=2, max_length=2, description="view: the first and the last line; -1 is the end."
    )
    file_text: str | None = Field(None, description="create: the text of the file.")
    old_str: str | None = Field(None, description="str_replace: the text to replace, which must occur once.")
    new_str: str | None = Field(None, description="str_replace: what to put in its place.")
    insert_line: int | None = Field(
        None, ge=0, description="insert: the line after which to insert; 0 is the top."
    )
    insert_text: str | None = Field(None, description="insert: what to insert.")
    old_path: str | None = Field(None, description="rename: the path now.")
    new_path: str | None = Field(None, description="rename: the path from now on.")


class MemoryFiles(
    Tool[MemoryFilesParams, str],
    name="memory",
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Memory",
    category="memory",
    open_world=False,
    extras={"anthropic": {"type": "memory_20250818"}},
):
    """Look at and change the files below /memories, which stay between conversations."""

    def __init__(self, store: Stores) -> None:
        self._opened = opened_once(store)

    @property
    def store(self) -> MemoryStore:
        return self._opened()

    def accesses(self, params: MemoryFilesParams) -> tuple[()]:
        return ()  # no file of the workspace

    def effect_for(self, params: MemoryFilesParams) -> Effect:
        if params.command == "view":
            return Effect.READ
        return Effect.DESTRUCTIVE if params.command == "delete" else Effect.WRITE

    def resources(self, params: MemoryFilesParams) -> list[str]:
        return ["memory"]

    def precheck(self, params: MemoryFilesParams) -> str | None:
        missing = [name for name in NEEDED[params.command] if getattr(params, name) is None]
        if missing:
            return f"command {params.command!r} needs {' and '.join(missing)}."
        for name in ("path", "old_path", "new_path"):
            path = getattr(params, name)
            if path is not None and posixpath.normpath(path) != ROOT and not _inside(path):
                return f"{name} must be {ROOT} or lie below it, got {path!r}."
        return None

    def execute(self, params: MemoryFilesParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        ctx.report(tip=f"{params.command} {params.path or params.old_path}")
        with self.store.locked():
            if params.command == "view":
                return self._view(params)
            if params.command == "rename":
                return self._rename(_stored(params.old_path), _stored(params.new_path))
            path = _stored(params.path)
            if params.command == "delete":
                return self._delete(path)
            if params.command == "create":
                self.store.apply([Write(path, _data(path, str(params.file_text)), ABSENT)])
                return f"File created successfully at: {_shown(path)}"
            return self._edit(path, params)

    def _view(self, params: MemoryFilesParams) -> str:
        path = _stored(params.path, folder=True)
        if path == "." or self.store.load(path) is None:
            return self._list(path)
        lines = self.store.read(path, MAX_BYTES).decode(errors="replace").split("\n")
        first, last = params.view_range or (1, -1)
        last = len(lines) if last == -1 else last
        if not 1 <= first <= last <= len(lines):
            raise ToolError(f"view_range must lie within 1 and {len(lines)}, got {params.view_range}.")
        numbered = "\n".join(f"{number:6}\t{lines[number - 1]}" for number in range(first, last + 1))
        return f"Here's the content of {_shown(path)} with line numbers:\n{numbered}"

    def _list(self, folder: str) -> str:
        files = sorted(path for path, _ in self.store.below(folder))
        if not files and folder != ".":
            raise ToolError(f"The path {_shown(folder)} does not exist. Please provide a valid path.")
        more = f"\n[{counted(len(files) - MAX_LISTED, 'more file')}]" if len(files) > MAX_LISTED else ""
        listed = "\n".join(map(_shown, files[:MAX_LISTED]))
        return (
            f"The files in {_shown(folder)}:\n{listed}{more}"
            if files
            else f"There are no files in {ROOT} yet."
        )

    def _edit(self, path: str, params: MemoryFilesParams) -> str:
        before = self.store.read(path, MAX_BYTES)
        text = before.decode(errors="surrogateescape")
        if params.command == "str_replace":
            old = str(params.old_str)
            count = text.count(old) if old else 0
            if count != 1:
                found = f"occurs {count} times" if count else "does not occur"
                raise ToolError(
                    f"Nothing was replaced: old_str {found} in {_shown(path)}. Give text that occurs once."
                )
            text = text.replace(old, str(params.new_str))
        else:
            lines = LINE.findall(text)
            at = params.insert_line or 0
            if at > len(lines):
                raise ToolError(f"insert_line must lie within 0 and {len(lines)}, got {at}.")
            if at and not lines[at - 1].endswith("\n"):
                lines[at - 1] += "\n"
            inserted = str(params.insert_text)
            lines.insert(at, inserted if inserted.endswith("\n") else f"{inserted}\n")
            text = "".join(lines)
        self.store.apply([Write(path, _data(path, text), version_of(before))])
        return f"The file {_shown(path)} has been edited."

    def _delete(self, path: str) -> str:
        if self.store.load(path) is not None:
            self.store.apply([Delete(path)])
            return f"Successfully deleted {_shown(path)}"
        files = [inner for inner, _ in self.store.below(path)]
        if not files:
            raise ToolError(f"The path {_shown(path)} does not exist.")
        self.store.apply([Delete(inner) for inner in files])
        return f"Successfully deleted {_shown(path)}: {counted(len(files), 'file')}"

    def _rename(self, old: str, new: str) -> str:
        changes: list[Change] = [Move(old, new)]
        if self.store.load(old) is None:
            inside = [inner for inner, _ in self.store.below(old)]
            if not inside:
                raise ToolError(f"The path {_shown(old)} does not exist.")
            changes = [Move(inner, new + inner.removeprefix(old)) for inner in inside]
        self.store.apply(changes)
        return f"Successfully renamed {_shown(old)} to {_shown(new)}"


def _data(path: str, text: str) -> bytes:
    """The content of a file. Raises ToolError for one that is too large to be viewed and edited."""
    data = text.encode(errors="surrogateescape")
    if len(data) > MAX_BYTES:
        raise ToolError(
            f"{_shown(path)} would be {len(data):,} bytes long; at most {MAX_BYTES:,} fit. Nothing was changed."
        )
    return data


def _inside(path: str) -> bool:
    return posixpath.normpath(path).startswith(f"{ROOT}/") and ".." not in path.split("/")


def _stored(path: str | None, *, folder: bool = False) -> str:
    """The path in the store."""
    inner = posixpath.relpath(posixpath.normpath(str(path)), ROOT)
    if inner == "." and not folder:
        raise ToolError(f"{ROOT} itself cannot be changed. Name a file in it.")
    return inner


def _shown(path: str) -> str:
    return ROOT if path == "." else f"{ROOT}/{path}"
