"""The small files by which git is led elsewhere (`.git`, `commondir`, `gitdir`): all who read them follow as git does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sandbox_runs import BACKENDS, backend, run
from toolcrib.command.sandbox.files.git_named_files import named_by_git
from toolcrib.command.sandbox.files.git_repositories import GitRepositories
from toolcrib.command.sandbox.files.git_worktree import repository_of_worktree

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="names that Windows cannot have"),
]

# What is made of a linked worktree `tree` of the repository `repository`, whose `.git` leads to `{own}`.
WORKTREES: dict[str, Callable[[Path, Path], object]] = {
    "as git writes it": lambda file, own: None,
    "ends as lines do on Windows": lambda file, own: file.write_bytes(b"gitdir: %b\r\n" % bytes(own)),
    "does not end": lambda file, own: file.write_bytes(b"gitdir: %b" % bytes(own)),
    "ends several times": lambda file, own: file.write_bytes(b"gitdir: %b\n\r\n\n" % bytes(own)),
    "relative": lambda file, own: file.write_bytes(
        b"gitdir: %b\n" % os.fsencode(os.path.relpath(own, file.parent))
    ),
    "commondir of Windows": lambda file, own: (own / "commondir").write_bytes(b"../..\r\n"),
    "no commondir": lambda file, own: (own / "commondir").unlink(),
    "a link to a commondir": lambda file, own: (
        (own / "commondir").rename(own / "x") and (own / "commondir").symlink_to("x")
    ),
    "of many slashes": lambda file, own: file.write_bytes(
        b"gitdir: %b\n" % bytes(own).replace(b"/", b"/" * 200)
    ),
    "two spaces": lambda file, own: file.write_bytes(b"gitdir:  %b\n" % bytes(own)),
    "two lines": lambda file, own: file.write_bytes(b"gitdir: %b\nx\n" % bytes(own)),
    "a byte that ends names": lambda file, own: file.write_bytes(b"gitdir: %b\0x\n" % bytes(own)),
    "too large": lambda file, own: file.write_bytes(b"gitdir: %b" % bytes(own) + b"\n" * (1 << 20)),
    "of a folder that is gone": lambda file, own: shutil.rmtree(own),
}


@pytest.mark.parametrize("name", ["tree", "tr\udce9e", "two\nlines", "a b"])
def test_a_worktree_is_what_git_takes_for_one(tmp_path: Path, name: str) -> None:
    if name == "tr\udce9e" and sys.platform == "darwin":
        pytest.skip("names are UTF-8 there")
    wrong: list[str] = []
    for number, (case, change) in enumerate(WORKTREES.items()):
        place = tmp_path / str(number)
        repository, tree = place / "repository", place / name
        _git("init", "-q", repository)
        _git(
            "-C",
            repository,
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "x",
            "--allow-empty",
        )
        _git("-C", repository, "worktree", "add", "-q", "--detach", tree)
        own = repository / ".git/worktrees" / os.fsdecode(_own(tree))
        change(tree / ".git", own)
        by_git = _common(tree)
        found = repository_of_worktree(str(tree))
        if found not in ("", by_git) or (found == "" and by_git and case not in NOT_PROVED):
            wrong.append(f"{case}: {found!r}, by git {by_git!r}")
        _git("-C", repository, "config", "core.hooksPath", tree / "my-hooks")
        named = named_by_git(str(tree), home=str(place))
        if bool(named) != bool(by_git and case != "no commondir"):
            wrong.append(f"{case}: {named!r} is named, and git finds {by_git!r}")
        _, pointer = next(iter(GitRepositories()._scan([str(tree)]).pointers.values()), (b"", ""))
        if by_git and pointer != str(own):
            wrong.append(f"{case}: leads to {pointer!r}")
    assert not wrong, "\n".join(wrong)


NOT_PROVED = ("no commondir",)  # git takes the worktree's own folder for a repository then


def _git(*words: object) -> bytes:
    return subprocess.run(["git", *map(str, words)], check=True, capture_output=True).stdout


def _own(tree: Path) -> bytes:
    return (tree / ".git").read_bytes().rstrip(b"\n").rpartition(b"/")[2]


def _common(tree: Path) -> str:
    """Where git has the repository of a folder; "" where it finds none."""
    found = subprocess.run(
        ["git", "-C", str(tree), "rev-parse", "--path-format=absolute", "--git-common-dir"],
        capture_output=True,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)},
    )
    return os.fsdecode(found.stdout.removesuffix(b"\n")) if found.returncode == 0 else ""


@pytest.mark.parametrize("kind", BACKENDS)
def test_no_file_of_git_keeps_commands_from_being_run(tmp_path: Path, kind: str) -> None:
    files = {
        ".git": b"gitdir: a\0b\n",
        "a/.git": b"gitdir: \0",
        "b/.git": b"gitdir: c\n",
        "b/c/commondir": b"\0",
        "b/c/gitdir": b"\0",
        "b/c/HEAD": b"\0",
        "b/c/config": b"[include]\n\tpath = \"\0\"\n[core]\n\thooksPath = \"~\0\"\n",
        "d/.git": b"gitdir: " + b"x" * 10_000 + b"\n",
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert run(backend(kind)(tmp_path), "echo it-runs", tmp_path).said == "it-runs\n"
