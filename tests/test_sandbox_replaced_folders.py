"""A command that runs beside others replaces folders while a later command is started or cleaned up after."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import backend, run
from toolcrib.command.sandbox import Launch, Level, mounts
from toolcrib.command.sandbox.files import protected_files
from toolcrib.command.sandbox.files.git_worktree import repository_of_worktree
from toolcrib.command.sandbox.mounts import mount_arguments

BINDS = ("--bind", "--bind-try", "--ro-bind", "--ro-bind-try")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bwrap mounts by name")


@pytest.mark.parametrize("name", ["sub", "Icon\r", "a b\\c\nd\te", "Straße"])
@pytest.mark.parametrize("nested", ["repository", "denied path"])
def test_a_command_starts_only_with_what_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nested: str, name: str
) -> None:
    """bwrap follows a link that another command puts into the place of a folder when bwrap looks its name up, and that
    is gone again when it mounts. Here it is told at once where the link would lead.
    """
    outside, folder = tmp_path / "outside", tmp_path / "ws" / name
    outside.mkdir()
    (outside / ".env").write_text("secret")
    (folder / ".git/hooks" if nested == "repository" else folder).mkdir(parents=True)
    (folder / ".env").write_text("A=1")
    level = Level(hidden=(str(folder / ".env"),)) if nested == "denied path" else None
    sandbox = backend("bubblewrap")(tmp_path / "ws", level)
    command = "cd *; cat .env; touch written; echo it-runs; ls -A /dev"
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


REFUSED_FOR_LONG = """
import os, sys, time
from toolcrib.command.sandbox.process import mounted, supervise

def runs_later():
    while os.read(reader, 4096):
        pass
    open(sys.argv[1], "w").close()
    os._exit(0)

def fails(*given):
    raise ValueError(sys.argv[2])

look = supervise.descendants
supervise.descendants = lambda root: (time.sleep(0.3), look(root))[1]  # as on a machine with many processes
supervise.children_of = lambda bwrap: [bwrap]
mounted.__dict__[sys.argv[2]] = fails
reader, writer = mounted.full_pipe()
code = supervise.supervise(runs_later, application=None, memory=None, processes=None, mounted=(reader, writer),
    mounts={"/usr": "/etc"})
sys.exit(code)
"""


@pytest.mark.parametrize("fails", ["_Expected", "mounts_of_process", "why_not_as_told"])
def test_a_command_is_ended_before_it_could_start(tmp_path: Path, fails: str) -> None:
    """Whatever goes wrong in the check, what waits for its end is not let go on."""
    ran = tmp_path / "ran"
    done = subprocess.run(
        [sys.executable, "-c", REFUSED_FOR_LONG, str(ran), fails], capture_output=True, text=True, timeout=30
    )
    assert not ran.exists()
    assert done.returncode != 0 and fails in done.stderr


# What is done before a command runs in {ws}, in mounts of its own.
ON_OTHER_MACHINES = {
    "a folder in memory": "mount -t tmpfs t {ws}",
    "mounts in the workspace, with any names": r"""
        mkdir -p $'{ws}/a b\\\\c\nd\r\xe9' && mount -t tmpfs t $'{ws}/a b\\\\c\nd\r\xe9'
        mkdir -p $'{ws}/a b\\\\c\nd\r\xe9/repository/.git/hooks'""",
    "a mount that another one covers": "mount -t tmpfs t {ws}/sub && mount -t tmpfs t {ws}",
    "a mount that was moved over a later one": """
        mkdir {ws}/inner {ws}/sub/inner && mount -t tmpfs t {ws}/inner && mount -t tmpfs t {ws}/sub
        mount --move {ws}/inner {ws}/sub""",
    "a folder mounted twice": "mount --bind {ws} {ws} && mount --bind {ws} {ws}",
    "mounts that come and go together": "mount --make-rshared / && mount -t tmpfs t {ws}",
}
IN_A_WORKSPACE = """
import pathlib, sys
from tests.sandbox_runs import run
from toolcrib.command.sandbox import Bubblewrap, Level
workspace = pathlib.Path(sys.argv[1])
(workspace / "sub/.git/hooks").mkdir(parents=True, exist_ok=True)
(workspace / "sub/.env").write_text("")
level = Level(blank=(str(workspace / "sub/.env"),))
done = run(Bubblewrap(workspace, level), "echo it-runs; touch sub/.git/hooks/x", workspace)
print(done.code, done.said)
"""


def test_a_check_refuses_no_command_on_other_machines(tmp_path: Path) -> None:
    backend("bubblewrap")
    refused: list[str] = []
    for number, (name, before) in enumerate(ON_OTHER_MACHINES.items()):
        workspace = tmp_path / str(number)
        (workspace / "sub").mkdir(parents=True)
        runs = f"cd / && exec {sys.executable} -c '{IN_A_WORKSPACE}' {workspace}"
        done = subprocess.run(
            ["unshare", "-Urm", "bash", "-ec", before.format(ws=workspace) + "\n" + runs],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        if not done.stdout.startswith("1 it-runs\n"):
            refused.append(f"{name}: {done.stdout}{done.stderr}")
    assert not refused, "\n".join(refused)


def test_a_command_may_write_to_the_terminal_of_a_program(tmp_path: Path) -> None:
    """bwrap mounts that terminal as the console."""
    (tmp_path / "sub/.git/hooks").mkdir(parents=True)
    ours, theirs = os.openpty()
    with backend("bubblewrap")(tmp_path).launch(["echo", "it-runs"], cwd=str(tmp_path), env={}) as launch:
        code = subprocess.run(launch.argv, pass_fds=launch.pass_fds, stdout=theirs, timeout=30).returncode
    os.close(theirs)
    assert (code, os.read(ours, 4096)) == (0, b"it-runs\r\n")
    os.close(ours)


def test_a_package_behind_a_link_is_mounted_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(Path(mounts.__file__).parents[3])
    monkeypatch.syspath_prepend(tmp_path / "link")
    file = "command/sandbox/mounts.py"
    assert runpy.run_path(str(tmp_path / "link/toolcrib" / file))["EMPTY"] == mounts.EMPTY


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
    # Others that earlier tests left may be closed meanwhile.
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
