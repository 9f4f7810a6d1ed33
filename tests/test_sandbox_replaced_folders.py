"""A command that runs beside others replaces folders while a later command is started or cleaned up after."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import backend, run
from toolcrib.command.sandbox import Launch, Level
from toolcrib.command.sandbox.files import protected_files
from toolcrib.command.sandbox.files.git_worktree import repository_of_worktree
from toolcrib.command.sandbox.mounts import mount_arguments

BINDS = ("--bind", "--bind-try", "--ro-bind", "--ro-bind-try")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bwrap mounts by name")


@pytest.mark.parametrize("nested", ["repository", "denied path"])
def test_a_command_starts_only_with_what_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nested: str
) -> None:
    """bwrap follows a link that another command puts into the place of a folder when bwrap looks its name up, and that
    is gone again when it mounts. Here it is told at once where the link would lead.
    """
    outside, folder = tmp_path / "outside", tmp_path / "ws/sub"
    outside.mkdir()
    (outside / ".env").write_text("secret")
    (folder / ".git/hooks" if nested == "repository" else folder).mkdir(parents=True)
    (folder / ".env").write_text("A=1")
    level = Level(hidden=(str(folder / ".env"),)) if nested == "denied path" else None
    sandbox = backend("bubblewrap")(tmp_path / "ws", level)
    command = "cat sub/.env; touch sub/written; echo it-runs; ls -A /dev"
    done = run(sandbox, command, tmp_path / "ws")
    assert done.code == 0 and "it-runs" in done.said

    def following(*given: Any) -> list[str]:
        words = mount_arguments(*given)
        for number, word in enumerate(words[:-1]):
            if word in BINDS and words[number + 1] == str(folder):
                words[number + 1] = str(outside)
        return words

    monkeypatch.setattr("toolcrib.command.sandbox.bubblewrap.mount_arguments", following)
    done = run(sandbox, command, tmp_path / "ws")
    assert done.code == 125 and "was replaced while the command was being started" in done.said
    assert "it-runs" not in done.said and not (outside / "written").exists()


@pytest.mark.parametrize("earlier", [None, "[settings]"], ids=["added", "changed"])
def test_what_is_put_back_is_put_back_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: str | None
) -> None:
    """While it is put back, another command puts a link into the place of its folder."""
    outside, workspace = tmp_path / "outside", tmp_path / "ws"
    outside.mkdir()
    (outside / "config.toml").write_text("of the user")
    (workspace / "mise").mkdir(parents=True)
    file = workspace / "mise/config.toml"
    if earlier:
        file.write_text(earlier)
    protected = protected_files.ProtectedFiles(str(workspace), [str(file)])
    file.write_text("of the command")
    look = protected_files._without_links_above

    def replaced(root: str, path: str) -> None:
        look(root, path)
        (workspace / "mise").rename(workspace / "moved")
        (workspace / "mise").symlink_to("../outside")

    monkeypatch.setattr(protected_files, "_without_links_above", replaced)
    monkeypatch.setattr(protected_files, "_real_folders", lambda *_: None)
    launch = Launch([], {}, str(workspace))
    protected.restore(launch)
    assert (outside / "config.toml").read_text() == "of the user" and len(list(outside.iterdir())) == 1


def test_a_named_pipe_beside_gits_settings_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A command may guess the name of what is written beside the settings, and nobody reads from its pipe."""
    done = run(
        backend("landlock")(tmp_path),
        f"git init -q sub; git -C sub config core.pager x; cd sub/.git; mkfifo config.toolcrib-{os.getpid()}",
        tmp_path,
    )
    assert done.git_changes and "pager" not in (tmp_path / "sub/.git/config").read_text()


def test_a_named_pipe_in_the_place_of_a_file_of_git_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes between the look at the file and its opening."""
    os.mkfifo(tmp_path / ".git")
    monkeypatch.setattr(os.path, "isfile", lambda path: True)
    assert repository_of_worktree(str(tmp_path)) == ""


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_folders_in_the_place_of_gits_files_stop_no_later_command(tmp_path: Path, kind: str) -> None:
    sandbox = backend(kind)(tmp_path)
    made = "mkdir -p sub/objects sub/refs sub/config sub/commondir inner/.git/config; touch sub/HEAD"
    assert run(sandbox, made, tmp_path).code == 0
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert run(sandbox, "echo again", tmp_path).said == "again\n"
    assert len(list(Path("/proc/self/fd").iterdir())) == before
