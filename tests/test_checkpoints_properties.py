"""Random interleavings of what runs, commands and people do to a folder, with undo and redo between.

What must hold is worked out here from the states alone: what a person left last is never lost, what a run did is undone
exactly, and whatever is not put back is named.
"""

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.test_checkpoints import state
from toolcrib.checkpoints import CheckpointError, Checkpoints, Conversation, Restoration

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes, links and special files of POSIX")

NAMES = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f/a", "f"]
CHANGES = st.tuples(
    st.sampled_from(["write", "write", "append", "remove", "folder", "rename", "mode", "link", "pipe"]),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
)
STEPS = st.one_of(
    st.tuples(st.just("run"), st.lists(CHANGES, min_size=1, max_size=5)),
    st.tuples(st.just("killed run"), st.lists(CHANGES, min_size=1, max_size=3)),
    st.tuples(st.just("person"), st.lists(CHANGES, min_size=1, max_size=3)),
    st.tuples(st.just("undo"), st.none()),
    st.tuples(st.just("undo to"), st.integers(0, 30)),
    st.tuples(st.just("redo"), st.none()),
)
State = dict[str, object]


@dataclass
class Folder:
    """A folder with its checkpoints, and what was so at each: the state, and who changed it since the one before."""

    root: Path
    count: int = 0
    states: list[tuple[int, State]] = field(default_factory=list)  # by the number of the checkpoint
    left: list[tuple[int, State]] = field(default_factory=list)  # after a person, at which place of `states`

    def checkpoints(self) -> Checkpoints:
        """As a new process sees them."""
        return Checkpoints(self.root, store=self.root.parent / "store")

    def change(self, changes: list[tuple[str, str, str]]) -> None:
        for kind, name, other in changes:
            self.count += 1
            try:
                change(kind, self.root / name, self.root / other, f"{self.count}\n")
            except OSError:  # such as a file in a file
                continue


def change(kind: str, path: Path, other: Path, text: str) -> None:
    if kind in ("write", "append"):
        if path.is_symlink() or path.is_fifo():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(exist_ok=True)
        with path.open("w" if kind == "write" else "a") as file:
            file.write(text)
    elif kind == "remove":
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    elif kind == "folder":
        path.mkdir(parents=True)
    elif kind == "rename":
        path.rename(other)
    elif kind == "mode":
        path.chmod(0o755 if path.stat().st_mode & 0o700 != 0o700 else 0o750)
    elif kind == "link":
        path.symlink_to(other)
    else:
        os.mkfifo(path)


def of_person(folder: Folder, since: int) -> dict[str, object]:
    """What a person left last of each path that they changed after a place in the states; None where they removed it."""
    found: dict[str, object] = {}
    for place, after in folder.left:
        if place > since:
            before = folder.states[place - 1][1]
            found |= {
                path: after.get(path)
                for path in before.keys() | after.keys()
                if before.get(path) != after.get(path)
            }
    return found


def check(folder: Folder, done: Restoration, before: State, target: State, persons: State) -> None:
    """That a folder is as it was at the checkpoint, but for what people did since and what is named."""
    after = state(folder.root)
    named = done.kept.keys() | done.not_covered.keys()
    for path in before.keys() | after.keys() | target.keys():
        if path in done.aside.values():
            continue
        wanted = persons[path] if path in persons else target.get(path)
        if after.get(path) == wanted:
            continue
        assert path in named, f"{path} is neither what it was nor named: {done}"
        assert after.get(path) == before.get(path), f"{path} was to stay: {done}"
    for path, new in done.aside.items():
        assert after[new] == before[path]


@pytest.mark.promise("undo.md", "An undo keeps it and names it")
@given(st.lists(STEPS, min_size=3, max_size=12))
@examples(100)
def test_no_interleaving_loses_what_a_person_did(
    tmp_path_factory: pytest.TempPathFactory, steps: list
) -> None:
    place = tmp_path_factory.mktemp("undo")
    folder = Folder(place / "work")
    folder.root.mkdir()
    (folder.root / "a").write_text("first\n")
    try:
        for number, (kind, given) in enumerate(steps):
            step(folder, kind, given, number)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def step(folder: Folder, kind: str, given: object, number: int) -> None:
    kept = folder.checkpoints()
    if kind in ("run", "killed run"):
        taken = kept.begin_turn("turn", Conversation(f"run{number}", 1))
        assert taken is not None
        note(folder, taken.id)
        folder.change(given)  # type: ignore[arg-type]
        if kind == "run":
            note(folder, kept.end_turn().id)  # type: ignore[union-attr]
        else:  # its checkpoints know nothing of its end; the lock goes with the process
            os.close(kept._at_work)  # type: ignore[arg-type]
            kept._at_work = None
            folder.states.append((0, state(folder.root)))
        return
    if kind == "person":
        if kept.list() and kept.list()[-1].then != "person":
            return  # a run that was killed: nobody can tell its changes from a person's
        folder.change(given)  # type: ignore[arg-type]
        if folder.states:
            folder.states.append((0, state(folder.root)))
            folder.left.append((len(folder.states) - 1, state(folder.root)))
        return
    before = state(folder.root)
    known = kept.list()
    try:
        if kind == "undo to":
            done = kept.undo(known[given % len(known)].id if known else 1)  # type: ignore[operator]
        else:
            done = kept.undo() if kind == "undo" else kept.redo()
    except CheckpointError:
        assert state(folder.root) == before
        return
    at = max(index for index, (id, _) in enumerate(folder.states) if id == done.to.id)
    check(folder, done, before, folder.states[at][1], of_person(folder, at))
    if done.checkpoint is not None:
        after = state(folder.root)
        for one in folder.checkpoints().list():
            if one.id > max(id for id, _ in folder.states):
                folder.states.append((one.id, before if one.id != done.checkpoint.id else after))
        again = folder.checkpoints()
        if kind != "redo" and not done.aside:  # and a redo brings back exactly what was
            redone = again.redo()
            assert state(folder.root) == before, redone
            for one in folder.checkpoints().list():
                if one.id > max(id for id, _ in folder.states):
                    folder.states.append((one.id, before if one.id == redone.checkpoint.id else after))  # type: ignore[union-attr]


def note(folder: Folder, id: int) -> None:
    if not folder.states or folder.states[-1][0] != id:
        folder.states.append((id, state(folder.root)))
