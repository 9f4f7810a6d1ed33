"""Trees that are deeper than a path can name, which any command can make: removed, walked within bounds, never fatal."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.growth import cpu_seconds, growth
from tests.sandbox_runs import backend, run
from toolcrib.command.sandbox.files import folder_walk
from toolcrib.command.sandbox.files.folder_walk import FolderWalk
from toolcrib.command.sandbox.files.removal import remove_tree
from toolcrib.command.sandbox.lease import ScratchFolder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no sandbox for Windows")

DEEP = 2_500  # a path names 2,048 of them, and Python calls itself 1,000 times
CHAIN = """
import os, sys
here = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(int(sys.argv[2])):
    os.mkdir("d", dir_fd=here)
    here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
    os.close(above)
"""


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """pytest removes old folders by calling itself for each level, too."""
    yield
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


def chain(top: Path, depth: int) -> Path:
    """A chain of so many folders with a file at the end."""
    top.mkdir(parents=True, exist_ok=True)
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    return top


def test_a_tree_that_no_path_can_name_is_removed(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "kept.txt").write_text("kept")
    top = chain(tmp_path / "top", DEEP)
    shut = top / "shut" / "inner"
    shut.mkdir(parents=True)
    (shut / "file").touch()
    (top / "link").symlink_to(beside)
    shut.chmod(0)
    shut.parent.chmod(stat.S_IRUSR)
    remove_tree(str(top))
    assert sorted(tmp_path.iterdir()) == [beside]
    assert (beside / "kept.txt").read_text() == "kept"
    remove_tree(str(tmp_path / "none"))


@pytest.mark.slow
def test_removing_costs_the_same_for_each_level(tmp_path: Path) -> None:
    def seconds(depth: int) -> float:
        top = str(chain(tmp_path / "top", depth))  # which the kernel makes slower the deeper it is
        begun = cpu_seconds()
        remove_tree(top)
        return cpu_seconds() - begun

    assert min(seconds(1_600) for _ in range(3)) < 16 * min(seconds(200) for _ in range(3))


def test_what_a_killed_process_left_behind_stops_no_later_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = chain(tmp_path / "toolcrib-scratch-0123456789ab", 1_200)
    scratch = ScratchFolder()
    assert not left.exists() and Path(scratch.path()).is_dir()
    chain(Path(scratch.path()) / "own", 1_200)
    scratch.close()
    assert list(tmp_path.iterdir()) == []


def test_a_protected_folder_that_a_command_made_deep_is_put_back(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    done = run(
        backend("landlock")(tmp_path), f"{sys.executable} -c '{CHAIN}' .vscode 2500; echo made", tmp_path
    )
    assert "made" in done.said and not any((tmp_path / ".vscode").iterdir())


def test_a_walk_ends_where_the_paths_get_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (str(chain(tmp_path / str(depth), depth)) for depth in (250, 800))
    walk = FolderWalk()
    assert sum(1 for _ in walk.walk([small], set(), opening=False)) == 251 and walk.whole
    monkeypatch.setattr(folder_walk, "MAX_CHARACTERS", 400 * len(large) + 400 * 400)

    def walking(top: str) -> int:
        return sum(1 for _ in FolderWalk().walk([top], set(), opening=False))

    # by its names the second is ten times as long as the first
    assert growth(lambda n: lambda: walking(large if n == 2 else small), 1, 2, at_most=4) < 4
    assert (
        251 < walking(large) < 600
        and [path for path, _ in walk.walk([large], set(), opening=False)].index(large) == 0
    )
    assert not walk.whole


def test_a_later_launch_lists_no_folder_anew_in_which_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what it looks through for repositories nor protected folders; but it sees what came since."""
    workspace = tmp_path / "ws"
    for folder in ("src/inner", ".vscode/inner", ".git/hooks", "lib/own/.git/hooks"):
        (workspace / folder).mkdir(parents=True)
    before = time.time_ns() - 10**10
    monkeypatch.setattr(
        folder_walk, "RECENT", before - time.time_ns()
    )  # as if nothing had changed for a while
    sandbox = backend("bubblewrap")(workspace)
    sandbox.view()
    listed: list[str] = []
    scandir = os.scandir

    def noted(path: str) -> Iterator[os.DirEntry[str]]:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(folder_walk.os, "scandir", noted)
    view = sandbox.view()
    assert [path for path in listed if path.startswith(str(workspace))] == []
    (workspace / "notes.sh").touch()
    (workspace / ".vscode/inner/tasks.json").symlink_to("../../notes.sh")
    (workspace / "src/inner/.git/hooks").mkdir(parents=True)
    later = sandbox.view()
    assert {*later.protected} - {*view.protected} >= {
        f"{workspace}/notes.sh",
        f"{workspace}/src/inner/.git/hooks",
    }


def test_a_program_folder_in_the_workspace_is_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command can change anything in the environment of this Python, which may hold thousands of folders."""
    (tmp_path / "env/lib/deep").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    sandbox = backend("bubblewrap")(tmp_path)
    with sandbox.launch(["true"], cwd=str(tmp_path), env={}):
        walked = {os.path.relpath(path, tmp_path) for path in sandbox.repositories.walk.folders}
    assert "src" in walked and "env/lib" not in walked
    done = run(sandbox, "touch env/lib/deep/x env/x; mv env other; ln env/y src/y; ls env/lib", tmp_path)
    assert "deep" in done.said and not any((tmp_path / "env/lib/deep").iterdir())
