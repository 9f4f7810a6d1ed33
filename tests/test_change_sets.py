"""A change set whose process is killed in the middle, by SIGKILL at every step: each file is old or new at any moment,
and the next use of the workspace finishes the set.
"""

from __future__ import annotations

import errno
import os
import signal
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib import folder_handles
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import EditFile, EditFileParams, Workspace, change_journal, local_changes
from toolcrib.tools.backends import Change, Delete, Move, Write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills a fork of this process")

OLD = {"a": b"old a", "b": b"old b", "c": b"old c"}
NEW = {"a": b"new a", "d/e": b"new e", "f": b"old c"}
CHANGES: list[Change] = [Write("a", b"new a"), Write("d/e", b"new e"), Delete("b"), Move("c", "f")]
STEPS = 5  # a move is two


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "root"
    root.mkdir()
    for name, data in OLD.items():
        (root / name).write_bytes(data)
    return root


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def without_our_own(found: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in found.items() if ".toolcrib-" not in path}


class Counted:
    """Lets so many steps happen, then does something before the next one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, before_step: int, do: Callable[[], Any]) -> None:
        self.left = before_step
        self.do = do
        for name in ("rename_in", "rename_new_in", "remove_in"):
            counted = self._counted(getattr(local_changes, name, getattr(change_journal, name)))
            for module in (local_changes, change_journal):
                monkeypatch.setattr(module, name, counted)

    def _counted(self, real: Callable[..., None]) -> Callable[..., None]:
        def step(*args: Any) -> None:
            self.left -= 1
            if self.left == -1:
                self.do()
            real(*args)

        return step


def make_and_die(root: Path, before_step: int, changes: list[Change] = CHANGES) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            with pytest.MonkeyPatch.context() as patch:
                Counted(patch, before_step, lambda: os.kill(os.getpid(), signal.SIGKILL))
                Workspace(root).apply(changes)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("step", range(STEPS + 3))  # the last ones are when what was kept is removed
def test_a_set_that_was_killed_is_finished_by_the_next_use(root: Path, step: int) -> None:
    make_and_die(root, step)
    for path, data in without_our_own(tree(root)).items():
        assert data in (OLD.get(path), NEW.get(path))
    Workspace(root)
    assert tree(root) == NEW
    assert list((root.parent / "state/toolcrib/changes").glob("*.json")) == []


@pytest.mark.parametrize("step", range(1, STEPS))
def test_what_somebody_changed_in_between_stays(root: Path, step: int) -> None:
    make_and_die(root, step)
    there = without_our_own(tree(root))
    for path in there:
        (root / path).unlink()  # during a move, a file has two names
        (root / path).write_bytes(b"mine " + path.encode())
    Workspace(root)
    after = tree(root)
    assert {path: after[path] for path in there} == {path: b"mine " + path.encode() for path in there}


@pytest.mark.parametrize("step", range(STEPS))
def test_a_step_that_fails_takes_back_those_before_it(
    root: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(28, "no space")

    Counted(monkeypatch, step, fail)
    with pytest.raises(ToolError, match="disk is full"):
        Workspace(root).apply(CHANGES)
    assert tree(root) == OLD
    assert not (root / "d").exists()


def full_home(monkeypatch: pytest.MonkeyPatch, notes: int) -> None:
    """The disk with the user's notes takes so many more of them."""
    left, real = [None] * notes, change_journal.replace_private_file

    def write(path: Path, data: bytes) -> None:
        if not left:
            raise OSError(errno.ENOSPC, "no space")
        left.pop()
        real(path, data)

    monkeypatch.setattr(change_journal, "replace_private_file", write)


def notes_of(root: Path) -> list[Path]:
    return list((root.parent / "state/toolcrib/changes").glob("*.json"))


def test_a_home_whose_disk_is_full_keeps_no_change_from_being_made(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_home(monkeypatch, notes=0)
    Workspace(root).apply(CHANGES)
    assert (tree(root), notes_of(root)) == (NEW, [])


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize("notes", [0, 1])
def test_a_step_that_fails_takes_back_those_before_it_also_where_that_cannot_be_noted(
    root: Path, notes: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "no space")

    Counted(monkeypatch, step, fail)
    full_home(monkeypatch, notes)
    with pytest.raises(ToolError, match="disk is full"):
        Workspace(root).apply(CHANGES)
    assert (tree(root), notes_of(root)) == (OLD, [])


NEW_FILES: dict[str, list[Change]] = {
    "a move": [Move("c", "f")],
    "a new file": [Write("f", b"new f")],
    "a new file among others": [Write("a", b"new a"), Write("f", b"new f"), Delete("b")],
}


@pytest.mark.parametrize("changes", NEW_FILES.values(), ids=NEW_FILES)
@pytest.mark.parametrize("second_names", [True, False])
def test_a_file_that_comes_in_between_is_not_replaced(
    root: Path, changes: list[Change], second_names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not second_names:  # as on FAT

        def refuse(*_: Any, **__: Any) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", refuse)
    real = folder_handles.rename_new_in

    def late(*args: Any) -> None:
        (root / "f").write_bytes(b"mine")
        real(*args)

    monkeypatch.setattr(local_changes, "rename_new_in", late)
    with pytest.raises(ToolError, match="f exists already; nothing was changed"):
        Workspace(root).apply(changes)
    assert tree(root) == {**OLD, "f": b"mine"}


def test_a_file_that_changes_while_it_is_moved_is_not_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = folder_handles.link_in

    def late(*args: Any) -> None:
        real(*args)
        (root / "mine").write_bytes(b"mine")
        (root / "mine").rename(root / "c")

    monkeypatch.setattr(local_changes, "link_in", late)
    with pytest.raises(ToolError, match="c was changed by somebody else"):
        Workspace(root).apply([Move("c", "f")])
    assert tree(root) == {**OLD, "c": b"mine"}


@pytest.mark.parametrize("undone", range(3))
def test_a_set_that_was_killed_while_it_was_taken_back_is_taken_back(root: Path, undone: int) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            with pytest.MonkeyPatch.context() as patch:

                def fail_then_die() -> None:
                    Counted(patch, undone, lambda: os.kill(os.getpid(), signal.SIGKILL))
                    raise OSError(28, "no space")

                Counted(patch, 3, fail_then_die)
                Workspace(root).apply(CHANGES)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    Workspace(root)
    assert tree(root) == OLD


def test_what_a_killed_write_left_is_removed_by_a_later_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_and_die(root, 0, [Write("a", b"new a")])
    (left,) = (path for path in tree(root) if path.startswith(".toolcrib-"))
    assert without_our_own(tree(root)) == OLD
    Workspace(root).apply([Write("b", b"new b")])
    assert left in tree(root)  # it may be that of a process that writes now
    monkeypatch.setattr(local_changes, "ABANDONED", -60)
    Workspace(root).apply([Write("b", b"newer b")])
    assert tree(root) == {**OLD, "b": b"newer b"}


def access_list(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xFFFFFFFF
# The owner and user 1234 may read and write, the group and others may do nothing; the mode is 0660 all the same.
FOR_ONE_MORE = access_list((1, 6, NOBODY), (2, 6, 1234), (4, 0, NOBODY), (16, 6, NOBODY), (32, 0, NOBODY))


@pytest.mark.skipif(sys.platform != "linux", reason="access lists of Linux")
@pytest.mark.parametrize("change", [Write("a", b"new"), Move("a", "moved", b"new"), Move("a", "moved")])
@pytest.mark.parametrize("refused", [False, True])
def test_a_changed_file_keeps_its_access_list_and_attributes(
    root: Path, change: Change, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        os.setxattr(root / "a", "system.posix_acl_access", FOR_ONE_MORE)
        os.setxattr(root / "a", "user.note", b"mine")
    except OSError:
        pytest.skip("the file system has no access lists")
    if refused and isinstance(change, Move) and change.data is None:
        return  # nothing is set there: the file itself moves
    if refused:

        def refuse(*_: Any) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "setxattr", refuse)
    Workspace(root).apply([change])
    there = root / ("moved" if isinstance(change, Move) else "a")
    if refused:
        assert there.stat().st_mode & 0o777 == 0o600
    else:
        assert os.getxattr(there, "system.posix_acl_access") == FOR_ONE_MORE
        assert os.getxattr(there, "user.note") == b"mine"


@pytest.mark.skipif(sys.platform != "linux", reason="access lists of Linux")
def test_a_changed_file_gets_no_access_list_from_its_folder(root: Path) -> None:
    (root / "a").chmod(0o660)
    try:
        os.setxattr(root, "system.posix_acl_default", FOR_ONE_MORE)
    except OSError:
        pytest.skip("the file system has no access lists")
    Workspace(root).apply([Write("a", b"new")])
    assert os.listxattr(root / "a") == [] and (root / "a").stat().st_mode & 0o777 == 0o660


def test_a_note_in_the_project_itself_is_not_obeyed(root: Path) -> None:
    (root / ".toolcrib").mkdir()
    (root / ".toolcrib/changes.json").write_text("{}")
    Workspace(root).apply(CHANGES)
    assert (root / ".toolcrib/changes.json").read_text() == "{}"


def test_a_workspace_without_a_writable_home_changes_files_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root.parent / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(root.parent / "file"))
    Workspace(root).apply(CHANGES)
    assert tree(root) == NEW


def test_two_processes_that_edit_one_file_lose_no_edit(root: Path) -> None:
    def add(name: str) -> None:
        tool = EditFile(Workspace(root))
        for number in range(25):
            params = EditFileParams(
                path="a", old_string="old a", new_string=f"old a\n{name} {number} says hello"
            )
            while True:
                try:
                    tool.execute(params, Context())
                    break
                except ToolError as refused:
                    assert "changed by somebody else" in refused.message

    children = []
    for name in ("one", "other"):
        pid = os.fork()
        if pid == 0:
            try:
                add(name)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
    lines = (root / "a").read_text().split("\n")
    assert sorted(lines) == sorted(
        ["old a", *(f"{name} {number} says hello" for name in ("one", "other") for number in range(25))]
    )
