"""Checkpoints of a workspace: `take` one, `undo` what was done since, `redo` it."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from toolcrib.birth_time import birth_time
from toolcrib.checkpoints.entry import FILE, FOLDER, FileTree, PathEntry, changed_paths, kind_of_mode
from toolcrib.checkpoints.history import Checkpoint, CheckpointError, Conversation, History, Whose
from toolcrib.checkpoints.restore import Restorer
from toolcrib.checkpoints.scan import IGNORE_FILES, IGNORED, CheckpointLimits, TreeScanner, why_by_name
from toolcrib.checkpoints.undo_plan import UndoPlan, UndoStep, make_plan
from toolcrib.dataclass import dataclass, field
from toolcrib.private_files import close_locked, replace_private_file

__all__ = ["Change", "Checkpoints", "Restoration"]

LIMITS = CheckpointLimits()
NOTHING_TO_UNDO = "there is nothing to undo: no run changed a file since the first checkpoint"
NOTHING_TO_REDO = "there is nothing to redo: the last change of the files was no undo"


@dataclass(frozen=True, slots=True)
class Change:
    """A path that an undo or redo changes: what was there, and what is put there; None for nothing."""

    path: str
    have: PathEntry | None
    want: PathEntry | None

    @property
    def what(self) -> str:
        """What is done, in a word or two: "put back", "made again", "removed"."""
        if self.want is None:
            return "removed"
        return "made again" if self.have is None else "put back"


@dataclass(frozen=True, slots=True)
class Restoration:
    """What an undo or redo did, or would do.

    `kept` are the paths that differ from the checkpoint and stay as they are, each with the reason. `not_covered` are
    those that no checkpoint covers: what happened to them stays. `aside` are the new names of what stood in the way and
    could not be saved. `checkpoint` is the state after it; None for a preview.
    """

    to: Checkpoint
    changes: tuple[Change, ...] = ()
    kept: dict[str, str] = field(default_factory=dict)
    not_covered: dict[str, str] = field(default_factory=dict)
    aside: dict[str, str] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None


class Checkpoints:
    """The checkpoints of one workspace, kept in a private folder outside of it. It needs no git, and touches none.

    `take` stores the workspace as it is: files with content, mode and owner, links as links, folders, also empty ones.
    `undo` makes the files equal to a checkpoint, and `redo` takes that back. `covers` says whether a path is covered.

    What is promised: a path for which `covers` answers None when a checkpoint is taken is put back by an undo to that
    checkpoint, byte for byte, whoever changed or removed it: a tool, a command or a background process. A change that
    a person made after a checkpoint with `then="person"` stays, and is named. Before each undo the present state is
    stored, so that `redo` brings back whatever an undo took. A process that is killed during an undo leaves every file
    old or new, and the next use of the checkpoints finishes the undo. Times of files are not put back, because builds
    go by them, and neither are extended attributes, nor that two names were one file.

    Not covered, and said: what ignore rules leave out, version control (what commands did to `.git` stays), special
    files, and what exceeds the `limits`.

    Args:
        root: The workspace.
        store: A private folder for the checkpoints of all workspaces, outside of the workspace and out of reach for
            commands.
        limits: How much is covered, and how much is stored.

    Raises CheckpointError where the store cannot be used, from every method.
    """

    def __init__(self, root: str | Path, *, store: str | Path, limits: CheckpointLimits = LIMITS) -> None:
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):
            raise CheckpointError(f"a workspace must be a folder that exists, got {root}")
        place = os.path.realpath(store)
        if place == self.root or place.startswith(os.path.join(self.root, "")):
            raise CheckpointError(f"the store of checkpoints must lie outside of the workspace, got {store}")
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:24]
        self.folder = Path(place) / name
        self.limits = limits
        self._history = History(self.folder, self.root, limits)
        self._scanner = TreeScanner(self.root, limits)
        self._lock = threading.RLock()
        self._turns = 0  # of agents that run now
        self._at_work: int | None = None  # while there are some: what other processes know it by
        self._problem = ""  # why the last checkpoint could not be taken

    def take(
        self,
        label: str,
        *,
        conversation: Conversation | None = None,
        then: Whose = "run",
        at_work: bool = False,
    ) -> Checkpoint:
        """Store the workspace as it is now. Where nothing differs from the newest checkpoint, that one is returned.

        `then` says whose changes follow: an undo takes back those of a "run", and keeps those of a "person". `at_work`
        says that processes of the run go on: what changed is then read again next time, whatever its status says,
        because a process that mapped a file into its memory can change it without a trace in the status.
        """
        with self._noting_problems(), self._changing():
            self._history.make_room(conversation.run if conversation else self._history.last_run())
            return self._take(label, conversation, then, at_work=at_work)

    def begin_turn(
        self, label: str, conversation: Conversation, *, nested: bool = False
    ) -> Checkpoint | None:
        """Take a checkpoint before an agent's turn. A nested run takes none within a turn that has one: None."""
        with self._lock:
            self._turns += 1
            if self._turns == 1:
                self._at_work = self._history.at_work()
            return None if nested and self._turns > 1 else self.take(label, conversation=conversation)

    def end_turn(self) -> Checkpoint | None:
        """Take a checkpoint after a turn: from now on a person's changes are told apart. None if another turn runs,
        of this process or another: what changes then is a run's."""
        with self._lock:
            self._turns -= 1
            if self._turns:
                return None
            if self._at_work is not None:
                close_locked(self._at_work)
                self._at_work = None
            with self._noting_problems(), self._changing():
                if self._history.is_at_work():
                    return None
                self._history.make_room(self._history.last_run())
                return self._take("after the turn", None, "person")

    @property
    def without_room(self) -> int:
        """The number of files that are not in the last checkpoint because the disk is full."""
        return self._scanner.without_room

    def list(self) -> list[Checkpoint]:
        """All checkpoints, oldest first. The oldest are removed when the limits are reached."""
        with self._lock:
            self._history.read()
            return self._history.checkpoints

    def covers(self, path: str | Path) -> str | None:
        """None if a checkpoint that is taken now covers a path, so that a change of it can be undone; else why not.

        The path is absolute or relative to the workspace, and need not exist. A link stands for itself, links on the
        way to it are followed. A folder that is covered may hold files that are not.
        """
        place, name = os.path.split(os.path.join(self.root, os.path.normpath(os.path.join(self.root, path))))
        real = os.path.join(os.path.realpath(place), name) if name else self.root
        if real == self.root:
            return None
        if not real.startswith(os.path.join(self.root, "")):
            return "it lies outside of the workspace"
        inside = os.path.relpath(real, self.root).replace(os.sep, "/")
        with self._lock:
            if self._problem:
                return f"no checkpoint could be taken: {self._problem}"
            self._history.read()
            _, tree = self._history.newest()
        return self._why_not(inside, tree)

    def not_covered(self) -> dict[str, str]:
        """The paths that the newest checkpoint does not cover, each with the reason; a folder stands for all in it."""
        with self._lock:
            self._history.read()
            _, tree = self._history.newest()
        return tree.all_not_covered()

    def preview_undo(self, to: int | None = None) -> Restoration:
        """What `undo` would do now. Nothing is changed or stored."""
        with self._reading():
            return self._preview(to)[0]

    def preview_redo(self) -> Restoration:
        """What `redo` would do now. Nothing is changed or stored."""
        with self._reading():
            return self._preview(self._redo_target().id)[0]

    def undo(self, to: int | None = None) -> Restoration:
        """Put the files back as they were at a checkpoint; without one, as they were before the last run.

        The present state is stored first, so that `redo` can bring it back. What a person changed since stays.
        """
        with self._changing():
            self._refuse_at_work()
            return self._restore(to, None)

    def redo(self) -> Restoration:
        """Take back the last undo; again, the one before it."""
        with self._changing():
            self._refuse_at_work()
            return self._restore(self._redo_target().id, "redo")

    def contents(self, change: Change) -> tuple[bytes | None, bytes | None]:
        """The content before and after a change, of the files among them. Raises CheckpointError."""
        try:
            return self._content(change.path, change.have), self._content(change.path, change.want)
        except OSError as problem:
            raise CheckpointError(f"{change.path} cannot be read: {problem}") from problem

    # -- its parts

    @contextmanager
    def _noting_problems(self) -> Generator[None]:
        """Keeps in mind why a checkpoint could not be taken: nothing is covered then."""
        try:
            yield
        except CheckpointError as problem:
            self._problem = str(problem)
            raise
        self._problem = ""

    @contextmanager
    def _reading(self) -> Generator[None]:
        with self._lock:
            if self._journal.exists():
                with self._changing():
                    pass
            self._history.read()
            yield

    @contextmanager
    def _changing(self) -> Generator[None]:
        with self._lock, self._history.changing():
            self._finish_interrupted()
            yield

    def _refuse_at_work(self) -> None:
        if self._turns or self._history.is_at_work():
            raise CheckpointError(
                f"calls of a run are at work in {self.root}: wait for them, or stop the run"
            )

    def _take(
        self,
        label: str,
        conversation: Conversation | None,
        then: Whose,
        *,
        at_work: bool = False,
        covered: Collection[str] = (),
    ) -> Checkpoint:
        newest, before = self._history.newest()
        tree = self._scanner.scan(before, self._history.contents, trusted=not at_work, covered=covered)
        changed = sum(1 for _ in changed_paths(before.entries, tree.entries))
        if (
            newest is not None
            and not changed
            and before.not_covered == tree.not_covered
            and newest.then == then
            and (conversation is None or conversation == newest.conversation)
        ):
            self._history.refresh(tree)
            return newest
        return self._append(label, conversation, then, changed, tree)

    def _append(
        self,
        label: str,
        conversation: Conversation | None,
        then: Whose,
        changed: int,
        tree: FileTree,
        **more: Any,
    ) -> Checkpoint:
        known = self._history.checkpoints
        id = known[-1].id + 1 if known else 1
        taken = Checkpoint(id, label, time.time(), then, conversation, changed, **more)
        self._history.append(taken, tree)
        return taken

    def _why_not(self, path: str, tree: FileTree) -> str | None:
        known = tree.entries.get(path)
        parts = path.split("/")
        if len(parts) > self.limits.depth:
            return f"it lies more than {self.limits.depth} folders deep"
        for part in parts:
            if why := why_by_name(part):
                return why
        if known is None and (why := tree.why_not_covered(path) or self.limits.why_full(tree)):
            return why
        try:
            status = os.lstat(os.path.join(self.root, path))
        except OSError:
            status = None
        if status is not None:
            kind = kind_of_mode(status.st_mode)
            if kind == "other":
                return "it is no file, folder or link, but a special file"
            if kind == FILE and status.st_size > self.limits.file_bytes:
                return f"it is larger than {self.limits.file_bytes >> 20} MB"
        if known is not None:
            return known.reason or None
        for depth, rules in enumerate(self._scanner.ignore_files.rules_of(parts), 1):
            above = "/".join(parts[:depth])
            is_folder = depth < len(parts) or (status is not None and kind_of_mode(status.st_mode) == FOLDER)
            if (
                above not in tree.entries
                and parts[depth - 1] not in IGNORE_FILES
                and rules.ignores(above, is_folder)
            ):
                return IGNORED
        return None

    # -- undo and redo

    def _preview(self, to: int | None) -> tuple[Restoration, set[str]]:
        """What would be done, and the paths that are covered because of an earlier checkpoint alone."""
        checkpoints = self._history.checkpoints
        if not checkpoints:
            raise CheckpointError("there is no checkpoint of this folder yet")
        _, before = self._history.newest()
        present = self._scanner.scan(before, self._history.contents, save=False)
        target = self._undo_target(present, before) if to is None else checkpoints[self._history.index(to)]
        covered = self._taken_out(target, present)
        if covered:
            present = self._scanner.scan(before, self._history.contents, save=False, covered=covered)
        plan = self._plan(target, present)
        return Restoration(target, _changes(plan), plan.kept, present.all_not_covered()), covered

    def _plan(self, target: Checkpoint, present: FileTree) -> UndoPlan:
        since = self._since(target)
        trees = [*self._trees(since), present]
        then: list[Whose] = [one.then for one in since]
        return make_plan(trees, then, target.time, lambda path: birth_time(os.path.join(self.root, path)))

    def _taken_out(self, target: Checkpoint, present: FileTree) -> set[str]:
        """The paths that the present tree leaves out, although a checkpoint since the target covers them.

        A run may have removed them, and made others in their place that are ignored, for which there is no room, or
        that look like placeholders of the sandbox.
        """
        known = {path for tree in self._trees(self._since(target)) for path in tree.entries}
        return {
            path
            for path in known - present.entries.keys()
            if present.why_not_covered(path) or os.path.lexists(os.path.join(self.root, path))
        }

    def _since(self, target: Checkpoint) -> Sequence[Checkpoint]:
        return self._history.checkpoints[self._history.index(target.id) :]

    def _trees(self, of: Iterable[Checkpoint]) -> Iterator[FileTree]:
        return (self._history.tree(one.id) for one in of)

    def _undo_target(self, present: FileTree, newest: FileTree) -> Checkpoint:
        """The checkpoint before the last run that changed something and was not undone."""
        checkpoints = self._history.checkpoints
        last = checkpoints[-1]
        if last.then == "run" and any(True for _ in changed_paths(newest.entries, present.entries)):
            return self._start_of_run(len(checkpoints) - 1)
        index = len(checkpoints) - 1
        while index > 0:
            one = checkpoints[index]
            if one.position:  # an undo or redo led here from there: what lies between is undone
                if one.position < checkpoints[0].id:
                    break
                index = self._history.index(one.position)
            elif one.changed and checkpoints[index - 1].then == "run":
                return self._start_of_run(index - 1)
            else:
                index -= 1
        raise CheckpointError(NOTHING_TO_UNDO)

    def _start_of_run(self, index: int) -> Checkpoint:
        checkpoints = self._history.checkpoints
        run = checkpoints[index].run
        if not run:
            return checkpoints[index]
        return next(one for one in checkpoints if one.run == run)

    def _redo_target(self) -> Checkpoint:
        """The state that the last undo left; what a person changed since the undo does not matter."""
        checkpoints = self._history.checkpoints
        for index in range(len(checkpoints) - 1, -1, -1):
            one = checkpoints[index]
            if one.redo and one.redo[-1] >= checkpoints[0].id:
                return checkpoints[self._history.index(one.redo[-1])]
            if one.position or (one.changed and index and checkpoints[index - 1].then == "run"):
                break
        raise CheckpointError(NOTHING_TO_REDO)

    def _restore(self, to: int | None, redo: str | None) -> Restoration:
        preview, covered = self._preview(to)
        if not preview.changes:
            return preview
        redos = self._redos()
        stood = self._history.checkpoints[-1].conversation
        before = self._take(f"before {redo or 'undo'} to {preview.to.id}", stood, "undo", covered=covered)
        plan = self._plan(preview.to, self._history.newest()[1])
        redos = redos[:-1] if redo else (*redos, before.id)
        return self._carry_out(
            plan, preview.to, redos, redo or "undo", f"toolcrib-undo-{os.urandom(4).hex()}"
        )

    def _redos(self) -> tuple[int, ...]:
        """The states that further redos lead to."""
        try:
            self._redo_target()
        except CheckpointError:
            return ()
        return next(one.redo for one in reversed(self._history.checkpoints) if one.redo)

    def _carry_out(
        self, plan: UndoPlan, target: Checkpoint, redos: tuple[int, ...], what: str, token: str
    ) -> Restoration:
        steps = [[step.path, step.have, step.want] for step in plan.steps]
        journal = {"target": target.id, "redo": redos, "what": what, "token": token, "steps": steps}
        replace_private_file(self._journal, json.dumps(journal).encode())
        restorer = Restorer(self.root, self._history.contents, token)
        restorer.run(plan.steps)
        return self._finish(plan, target, redos, what, restorer)

    def _finish(
        self, plan: UndoPlan, target: Checkpoint, redos: tuple[int, ...], what: str, restorer: Restorer
    ) -> Restoration:
        _, before = self._history.newest()
        covered = {step.path for step in plan.steps}
        tree = self._scanner.scan(before, self._history.contents, covered=covered)
        changed = sum(1 for _ in changed_paths(before.entries, tree.entries))
        # Where the disk was full, files are still to be restored: with a position, the next undo would skip them.
        position = 0 if restorer.full else target.position or target.id
        after = self._append(
            f"{what} to {target.id}",
            target.conversation,
            "person",
            changed,
            tree,
            position=position,
            redo=redos,
        )
        self._journal.unlink(missing_ok=True)
        done = tuple(change for change in _changes(plan) if change.path not in restorer.kept)
        kept = {**plan.kept, **restorer.kept}
        return Restoration(
            target, done, kept, self._left_out(before) | tree.all_not_covered(), restorer.aside, after
        )

    def _left_out(self, before: FileTree) -> dict[str, str]:
        """The paths that were not covered when an undo began, and still exist. Their ignore rules may be gone now."""
        return {
            path: why
            for path, why in before.not_covered.items()
            if os.path.lexists(os.path.join(self.root, path))
        }

    @property
    def _journal(self) -> Path:
        return self.folder / "undo.json"

    def _finish_interrupted(self) -> None:
        """Finish an undo whose process was killed. What changed since then is kept."""
        try:
            journal = json.loads(self._journal.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as problem:
            raise CheckpointError(f"{self._journal} cannot be read: {problem}") from problem
        steps = [
            UndoStep(
                path, None if have is None else PathEntry(*have), None if want is None else PathEntry(*want)
            )
            for path, have, want in journal["steps"]
        ]
        restorer = Restorer(self.root, self._history.contents, journal["token"])
        restorer.clean(steps)
        restorer.run(steps)
        target = self._history.checkpoints[self._history.index(journal["target"])]
        self._finish(UndoPlan(steps), target, tuple(journal["redo"]), journal["what"], restorer)

    def _content(self, path: str, entry: PathEntry | None) -> bytes | None:
        if entry is None or entry.kind != FILE or not entry.saved:
            return None
        with suppress(FileNotFoundError):
            return self._history.contents.read(entry.content)
        with open(os.path.join(self.root, path), "rb") as file:
            return file.read(self.limits.file_bytes)


def _changes(plan: UndoPlan) -> tuple[Change, ...]:
    return tuple(Change(step.path, step.have, step.want) for step in plan.steps if step.have != step.want)
