"""The checkpoints of a workspace on disk: one JSON line for each, over whole trees that several of them share.

A line is appended at once, and a last line that was cut off does not count, so the file is readable after a crash at
any point. `trees/` holds whole trees; a line says which tree it is based on, and what differs from it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from toolcrib.checkpoints.content import ContentStore
from toolcrib.checkpoints.entry import FileTree, PathEntry
from toolcrib.checkpoints.scan import CheckpointLimits
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolcribError
from toolcrib.private_files import (
    OPEN_FLAGS,
    belongs_to_another_user,
    close_locked,
    locked,
    others_may,
    replace_private_file,
)

__all__ = ["Checkpoint", "CheckpointError", "Conversation", "History", "Whose"]

FORMAT = 1
DAY = 86_400
MAX_HISTORY = 64 << 20  # bytes of all lines
PRUNED_TO = 0.8  # of a limit, so that not every checkpoint prunes

Whose = Literal["run", "person", "undo"]
"""Whose changes follow a checkpoint."""


class CheckpointError(ToolcribError):
    """Checkpoints cannot be taken, read, or gone back to; the text says why, for a person."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where a conversation stood: the run, how many messages it had, and the file of its transcript, if it has one."""

    run: str
    messages: int
    transcript: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A moment of a workspace that can be gone back to.

    `then` says whose changes followed, up to the next checkpoint. `changed` counts the paths that differ from the
    checkpoint before. `position` is the checkpoint that an undo or redo went to, and `redo` those it went away from.
    """

    id: int
    label: str
    time: float
    then: Whose = "run"
    conversation: Conversation | None = None
    changed: int = 0
    position: int = 0
    redo: tuple[int, ...] = ()

    @property
    def run(self) -> str:
        """The run that took it; "" if none did."""
        return self.conversation.run if self.conversation is not None else ""


@dataclass(slots=True)
class _Line:
    """A checkpoint and how its tree differs from the whole tree it is based on."""

    checkpoint: Checkpoint
    base: str
    changed: dict[str, list[Any]]
    removed: list[str]
    not_covered: dict[str, str | None]  # None for a path that is covered, or gone

    def to_json(self) -> bytes:
        data = {"format": FORMAT, **asdict(self.checkpoint), "base": self.base, "entries": self.changed,
                "removed": self.removed, "not_covered": self.not_covered}  # fmt: skip
        return json.dumps(data, separators=(",", ":")).encode() + b"\n"


class History:
    """The checkpoints in a private folder, oldest first. Every failure is a CheckpointError."""

    def __init__(self, folder: Path, root: str, limits: CheckpointLimits) -> None:
        self.folder = folder
        self.contents = ContentStore(folder / "content")
        self._root = root
        self._limits = limits
        self._file = folder / "checkpoints.jsonl"
        self._lines: list[_Line] = []
        self._stamp: tuple[int, ...] = ()
        self._length = 0  # of the lines that were written whole
        self._whole: dict[str, FileTree] = {}  # by the name of its file
        self._last: tuple[int, FileTree] | None = None

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """All checkpoints as they were when the history was last read."""
        return [line.checkpoint for line in self._lines]

    @contextmanager
    def changing(self) -> Generator[None]:
        """Hold the lock of the history, which other processes wait for, and read what they added."""
        try:
            self._make_folder()
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
        except OSError as problem:
            raise CheckpointError(f"{self.folder} cannot be written: {problem.strerror}") from problem
        try:
            with locked(lock):
                self.read()
                yield
        except OSError as problem:
            raise CheckpointError(f"checkpoints of {self._root}: {problem}") from problem
        finally:
            os.close(lock)

    def read(self) -> None:
        """Read the history again, if it changed."""
        try:
            status = self._file.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if stamp == self._stamp:
                return
            data = self._file.read_bytes()
        except FileNotFoundError:
            self._lines, self._stamp, self._length, self._last = [], (), 0, None
            return
        except OSError as problem:
            raise CheckpointError(f"{self._file} cannot be read: {problem.strerror}") from problem
        whole = data[: data.rfind(b"\n") + 1]
        self._lines = [self._line(number, line) for number, line in enumerate(whole.splitlines(), 1)]
        self._stamp, self._length = stamp, len(whole)
        self._last = None

    def at_work(self) -> int | None:
        """A descriptor that says, also to other processes, that calls of a run are at work, until `close_locked`."""
        if sys.platform == "win32":
            return None
        import fcntl

        with suppress(CheckpointError, OSError):
            self._make_folder()
            fd = os.open(self.folder / "at_work", os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
            fcntl.flock(
                fd, fcntl.LOCK_SH
            )  # waits no longer than an undo needs to look whether somebody is at work
            return fd
        return None

    def is_at_work(self) -> bool:
        """Whether a process has such a descriptor open."""
        if sys.platform == "win32":
            return False
        import fcntl

        try:
            fd = os.open(self.folder / "at_work", os.O_RDWR | OPEN_FLAGS)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            close_locked(fd)
        return False

    def tree(self, id: int) -> FileTree:
        """The tree of a checkpoint."""
        if self._last is not None and self._last[0] == id:
            return self._last[1]
        line = self._lines[self.index(id)]
        whole = self._whole_tree(line.base)
        entries = dict(whole.entries)
        for path in line.removed:
            entries.pop(path, None)
        entries.update((path, PathEntry(*values)) for path, values in line.changed.items())
        left_out = {**whole.not_covered, **line.not_covered}
        return FileTree(entries, {path: why for path, why in left_out.items() if why is not None})

    def index(self, id: int) -> int:
        """The place of a checkpoint in the history."""
        for index, line in enumerate(self._lines):
            if line.checkpoint.id == id:
                return index
        raise CheckpointError(f"there is no checkpoint {id}" + (
            "" if not self._lines else f"; there are {self._lines[0].checkpoint.id} to {self._lines[-1].checkpoint.id}"
        ))  # fmt: skip

    def newest(self) -> tuple[Checkpoint | None, FileTree]:
        """The newest checkpoint with its tree; None and an empty tree if there is none."""
        if not self._lines:
            return None, FileTree()
        newest = self._lines[-1].checkpoint
        tree = self.tree(newest.id)
        self._last = newest.id, tree
        return newest, tree

    def refresh(self, tree: FileTree) -> None:
        """Keep a tree that equals the newest checkpoint's for the next comparison: its files' times are newer."""
        if self._lines:
            self._last = self._lines[-1].checkpoint.id, tree

    def append(self, checkpoint: Checkpoint, tree: FileTree) -> None:
        """Add a checkpoint with its tree, inside of `changing`."""
        line = self._differing(checkpoint, tree)
        self.contents.settle()
        with open(self._file, "ab", opener=_private) as file:
            file.truncate(self._length)  # less a last line that was cut off
            file.write(line.to_json())
            file.flush()
            os.fsync(file.fileno())
            status = os.fstat(file.fileno())
        self._stamp, self._length = (status.st_ino, status.st_size, status.st_mtime_ns), status.st_size
        self._lines.append(line)
        self._last = checkpoint.id, tree
        self._count_stored()

    def _differing(self, checkpoint: Checkpoint, tree: FileTree) -> _Line:
        """The line of a checkpoint: over the newest whole tree, or over a new one where much differs."""
        if self._lines:
            base = self._lines[-1].base
            whole = self._whole_tree(base)
            changed = {
                path: list(entry)
                for path, entry in tree.entries.items()
                if (known := whole.entries.get(path)) is not entry and known != entry
            }
            removed = list(whole.entries.keys() - tree.entries.keys())
            left_out: dict[str, str | None] = dict.fromkeys(
                whole.not_covered.keys() - tree.not_covered.keys()
            )
            left_out.update(tree.not_covered.items() - whole.not_covered.items())
            size = len(tree.entries) + len(tree.not_covered)
            if len(changed) + len(removed) + len(left_out) <= max(100, size // 20):
                return _Line(checkpoint, base, changed, removed, left_out)
        base = f"{checkpoint.id:06d}.json"
        data = {"format": FORMAT, "entries": tree.entries, "not_covered": tree.not_covered}
        (self.folder / "trees").mkdir(mode=0o700, exist_ok=True)
        replace_private_file(self.folder / "trees" / base, json.dumps(data, separators=(",", ":")).encode())
        self._whole[base] = FileTree(dict(tree.entries), dict(tree.not_covered))
        return _Line(checkpoint, base, {}, [], {})

    def _whole_tree(self, name: str) -> FileTree:
        if name not in self._whole:
            try:
                data = json.loads((self.folder / "trees" / name).read_bytes())
                entries = {path: PathEntry(*values) for path, values in data["entries"].items()}
                self._whole[name] = FileTree(entries, data["not_covered"])
            except (OSError, ValueError, KeyError, TypeError) as problem:
                raise CheckpointError(
                    f"{self.folder / 'trees' / name} cannot be read: {problem}"
                ) from problem
        return self._whole[name]

    def _line(self, number: int, line: bytes) -> _Line:
        try:
            data = json.loads(line)
            if data.pop("format") != FORMAT:
                raise CheckpointError(
                    f"{self._file} was written by another version; remove {self.folder} to begin anew"
                )
            parts = [data.pop(key) for key in ("base", "entries", "removed", "not_covered")]
            if data["conversation"] is not None:
                data["conversation"] = Conversation(**data["conversation"])
            data["redo"] = tuple(data["redo"])
            return _Line(Checkpoint(**data), *parts)
        except (ValueError, KeyError, TypeError) as problem:
            raise CheckpointError(
                f"{self._file}, line {number}, cannot be read; remove {self.folder} to begin anew"
            ) from problem

    # -- bounds

    def last_run(self) -> str:
        """The run that took the newest checkpoint of a run; "" if none did."""
        return next((run for line in reversed(self._lines) if (run := line.checkpoint.run)), "")

    def make_room(self, run: str) -> None:
        """Remove the oldest checkpoints, if there are too many, before one of a run is added.

        Those of the run itself stay, so that a run cannot, by writing much, remove the states to which it could be
        undone. Raises CheckpointError if the checkpoints of the run alone are too much.
        """
        if not self._lines or not self._is_full(self._stored()):
            return
        self._prune(run)
        if run and self._lines[0].checkpoint.run == run and self._is_full(self._stored()):
            raise CheckpointError(
                f"this run has changed so much that its checkpoints take more than "
                f"{self._limits.stored_bytes >> 20:,} MB or are more than {self._limits.checkpoints:,}"
            )

    def _is_full(self, stored: int) -> bool:
        limits = self._limits
        return (
            len(self._lines) > limits.checkpoints
            or stored > limits.stored_bytes
            or self._length > MAX_HISTORY
        )

    def _stored(self) -> int:
        """The bytes of all copies: an estimate, since a crash may leave some; pruning counts anew."""
        try:
            return int((self.folder / "stored").read_text())
        except (OSError, ValueError):
            return 0

    def _count_stored(self) -> None:
        stored = self.contents.stored
        if stored:
            stored += self._stored()
            with open(self.folder / "stored", "w", encoding="ascii", opener=_private) as file:
                file.write(str(stored))
            self.contents.stored = 0
        oldest = self._lines[0].checkpoint
        too_old = time.time() - oldest.time > self._limits.days * DAY and len(self._lines) > 1
        if too_old or self._is_full(stored):
            self._prune(self.last_run())

    def _prune(self, run: str) -> None:
        """Remove the oldest checkpoints until the limits hold with some room; the newest and those of a run stay."""
        limits, lines = self._limits, self._lines
        since = time.time() - limits.days * DAY
        stays = len(lines) - 1
        if run:
            stays = next((at for at, line in enumerate(lines) if line.checkpoint.run == run), stays)
        first = (
            max(0, len(lines) - int(limits.checkpoints * PRUNED_TO)) if len(lines) > limits.checkpoints else 0
        )
        if self._length > MAX_HISTORY:
            first = max(first, len(lines) // 2)
        while first < len(lines) - 1 and lines[first].checkpoint.time < since:
            first += 1
        first = min(first, stays)
        sizes = dict(self.contents.all())
        needed: set[str] = set()
        total, kept = 0, len(lines) - 1
        for index in range(len(lines) - 1, first - 1, -1):  # newest first, while there is room
            entries = self.tree(lines[index].checkpoint.id).entries.values()
            more = {entry.content for entry in entries if entry.kind == "file" and entry.saved} - needed
            total += sum(sizes.get(digest, 0) for digest in more)
            if total > limits.stored_bytes * PRUNED_TO and index < stays:
                break
            needed |= more
            kept = index
        self._lines = lines[kept:]
        replace_private_file(self._file, b"".join(line.to_json() for line in self._lines))
        self._stamp = ()
        bases = {line.base for line in self._lines}
        for tree in (self.folder / "trees").iterdir():
            if tree.name not in bases:
                tree.unlink(missing_ok=True)
        for digest in sizes.keys() - needed:
            self.contents.remove(digest)
        stored = sum(size for digest, size in sizes.items() if digest in needed)
        replace_private_file(self.folder / "stored", str(stored).encode())
        self._whole = {name: tree for name, tree in self._whole.items() if name in bases}
        self.read()

    def _remove_forgotten(self) -> None:
        """Remove what is stored of other workspaces that had no checkpoint for as long as one is kept."""
        since = time.time() - self._limits.days * DAY
        with suppress(OSError):
            for other in list(self.folder.parent.iterdir()):
                if _is_older(other / self._file.name, since):
                    shutil.rmtree(other, ignore_errors=True)

    def _make_folder(self) -> None:
        if not self.folder.is_dir():
            self._remove_forgotten()
            self.contents.forget_folders()
            self._whole.clear()
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_private_file(self.folder / "workspace", os.fsencode(self._root) + b"\n")
        status = self.folder.stat()
        if belongs_to_another_user(status) or others_may(status, 0o077):
            raise CheckpointError(
                f"{self.folder} could be read by others; make it yours alone: chmod 700 {self.folder}"
            )


def _is_older(file: Path, time: float) -> bool:
    try:
        return file.stat().st_mtime < time
    except OSError:
        return False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | OPEN_FLAGS, 0o600)
