"""What a process that was killed leaves behind, and what others in the same folders still use."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.sandbox_runs import backend, run
from toolcrib.command.launch.sandboxed_host import prepare_launch
from toolcrib.command.sandbox import Launch, lease
from toolcrib.command.sandbox.files import placeholders

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no sandbox for Windows")


def child(code: str, *arguments: str, temporary: Path) -> subprocess.Popen[str]:
    """Another process, which says "ready" and then waits to be ended."""
    code = textwrap.dedent(code) + "\nprint('ready', flush=True)\nimport time\ntime.sleep(60)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


USES_SCRATCH = """
import os, sys
from toolcrib.command.sandbox.lease import ScratchFolder
mine = ScratchFolder()
os.makedirs(mine.path() + "/deep/deeper")
open(mine.path() + "/deep/file", "w").close()
os.chmod(mine.path() + "/deep", 0)
"""


@pytest.mark.promise(
    "faults.md", "Leases of folders and locks know no time: they are held while their process lives."
)
@pytest.mark.promise(
    "faults.md",
    "Temporary folders of commands are removed when the next sandbox is made; a link of that "
    "name is not followed.",
)
def test_what_a_killed_process_left_is_swept_and_what_a_living_one_uses_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "toolcrib-notes").mkdir()
    killed, living = child(USES_SCRATCH, temporary=tmp_path), child(USES_SCRATCH, temporary=tmp_path)
    try:
        assert len(list(tmp_path.iterdir())) == 3
        ended(killed)
        mine = lease.ScratchFolder()
        assert len(list(tmp_path.iterdir())) == 2  # it is swept when a sandbox is made, before any command
        place = mine.path()
        # That of the living one, our own, and what is only named alike.
        assert len(list(tmp_path.iterdir())) == 3 and (tmp_path / "toolcrib-notes").exists()
        ended(living)
        mine.close()
        assert not Path(place).exists()
        assert len(lease.ScratchFolder().path()) > 0
        assert [path.name for path in tmp_path.iterdir()] == ["toolcrib-notes"]
    finally:
        ended(killed)
        ended(living)


@pytest.mark.promise(
    "faults.md",
    "Temporary folders of commands are removed when the next sandbox is made; a link of that "
    "name is not followed.",
)
def test_a_link_that_is_named_like_a_scratch_folder_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / f"{lease.SCRATCH}x").symlink_to(tmp_path / "kept")
    lease.ScratchFolder().path()
    assert (tmp_path / "kept" / "file").exists()


def test_removing_a_scratch_folder_changes_nothing_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder for temporary files belongs to everybody."""
    tmp_path.chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch = lease.ScratchFolder()
    shut = Path(scratch.path(), "shut")
    shut.mkdir()
    (shut / "file").touch()
    shut.chmod(0o000)
    scratch.close()
    assert not shut.parent.exists()
    gone = lease.ScratchFolder()
    Path(gone.path()).rmdir()  # by somebody else
    gone.close()
    (tmp_path / f"{lease.SCRATCH}x").symlink_to(tmp_path)
    lease.ScratchFolder().path()
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777


HOLDS_MASKS = """
import sys
from toolcrib.command.sandbox.files.placeholders import Placeholders
masks = Placeholders()
masks.hold([sys.argv[1] + "/.envrc", sys.argv[1] + "/.config/autostart"])
"""


def test_placeholders_that_a_killed_process_left_go_with_the_next_command(tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    ws.mkdir()
    ended(child(HOLDS_MASKS, str(ws), temporary=tmp_path))
    assert sorted(path.name for path in ws.iterdir()) == [".config", ".envrc"]
    sandbox = backend("bubblewrap")(ws, protected=[".envrc", ".config/autostart"])
    run(sandbox, "rmdir .envrc; echo x >.envrc; echo x >.config/autostart/x; echo x >file", ws)
    assert [path.name for path in ws.iterdir()] == ["file"]


def test_placeholders_that_another_process_needs_are_not_taken_from_it(tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    ws.mkdir()
    release = placeholders.Placeholders().hold([f"{ws}/.envrc", f"{ws}/.config/autostart"])
    other = child(HOLDS_MASKS, str(ws), temporary=tmp_path)
    try:
        release(None)  # type: ignore[arg-type] # it does not look at the launch
        assert placeholders.is_placeholder(f"{ws}/.envrc") and placeholders.is_placeholder(
            f"{ws}/.config/autostart"
        )
        again = placeholders.Placeholders().hold([f"{ws}/.envrc", f"{ws}/.config/autostart"])
        ended(other)
        again(None)  # type: ignore[arg-type] # it does not look at the launch
        assert list(ws.iterdir()) == []
    finally:
        ended(other)


@pytest.mark.parametrize("moment", ["lstat", "listdir", "open", "fstat"])
def test_a_placeholder_that_another_process_removes_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A command without it could write where it stands."""
    place = tmp_path / ".envrc"
    of_another = placeholders.Placeholders().hold([str(place)])
    removed: list[str] = []

    def removing(*given: object, **named: object) -> object:
        if not removed and (moment != "open" or given[0] == ".envrc"):
            removed.append(moment)
            of_another(None)  # type: ignore[arg-type] # it does not look at the launch
        return getattr(os, moment)(*given, **named)

    monkeypatch.setattr(placeholders, "os", SimpleNamespace(**{**vars(os), moment: removing}))
    release = placeholders.Placeholders().hold([str(place)])
    assert removed and place.is_dir()
    release(None)  # type: ignore[arg-type] # it does not look at the launch
    assert not place.exists()


def test_a_placeholder_is_known_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed then leaves it behind; another one that looks then takes it for the user's own."""
    seen: list[bool] = []

    def look(fd: int, times: tuple[int, int]) -> None:
        seen.append(placeholders.is_placeholder(f"{tmp_path}/.envrc"))
        os.utime(fd, times)

    monkeypatch.setattr(placeholders, "os", SimpleNamespace(**{**vars(os), "utime": look}))
    release = placeholders.Placeholders().hold([f"{tmp_path}/.envrc"])
    (tmp_path / "usual").mkdir()
    assert (tmp_path / ".envrc").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert seen == [True] and placeholders.is_placeholder(f"{tmp_path}/.envrc")
    release(None)  # type: ignore[arg-type] # it does not look at the launch
    assert not (tmp_path / ".envrc").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_placeholders_of_another_user_are_shared_and_removed(tmp_path: Path) -> None:
    """What a killed run of root leaves behind: no later command of the workspace's owner started."""
    with tempfile.TemporaryDirectory() as ws:
        os.chown(ws, 54_321, 54_321)
        ended(child("import os; os.umask(0o077)\n" + HOLDS_MASKS, ws, temporary=tmp_path))
        os.seteuid(54_321)
        try:
            release = placeholders.Placeholders().hold([f"{ws}/.envrc"])
            assert placeholders.is_placeholder(f"{ws}/.envrc")
            release(None)  # type: ignore[arg-type] # it does not look at the launch
        finally:
            os.seteuid(0)
        assert not Path(ws, ".envrc").exists()


def test_a_folder_of_the_users_own_is_no_placeholder(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    placeholders.Placeholders().hold([f"{tmp_path}/.vscode", f"{tmp_path}/.idea"])(None)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == [".vscode"]
    placeholders.Placeholders().hold([f"{tmp_path}/.idea"])
    (tmp_path / ".idea" / "mine").touch()
    assert not placeholders.is_placeholder(f"{tmp_path}/.idea")


@pytest.mark.skipif(sys.platform != "linux", reason="counted in /proc")
def test_many_commands_of_one_sandbox_hold_each_placeholder_once(tmp_path: Path) -> None:
    held = placeholders.Placeholders()
    paths = [f"{tmp_path}/{name}" for name in (".envrc", ".vscode", ".idea")]
    releases = [held.hold(paths)]
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - descriptors are no paths
    releases += [held.hold(paths) for _ in range(50)]
    # Others that earlier tests left may be closed meanwhile.
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
    for release in releases:
        assert placeholders.is_placeholder(paths[0])
        release(None)  # type: ignore[arg-type] # it does not look at the launch
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_nothing_is_left_of_a_launch_that_was_prepared_while_its_loop_ended(
    tmp_path: Path, name: str
) -> None:
    """The thread goes on, and the loop cancels what waits for it: its descriptors and empty folders stayed."""
    sandbox = backend(name)(tmp_path)
    sandbox.launch(["true"], cwd=str(tmp_path), env={}).close()  # what is opened once
    begun, goes_on = threading.Event(), threading.Event()
    before = len(list(Path("/dev/fd").iterdir()))

    def prepare() -> Launch:
        begun.set()
        goes_on.wait(10)
        return sandbox.launch(["true"], cwd=str(tmp_path), env={})

    async def leave_while_it_is_prepared() -> None:
        preparing = asyncio.ensure_future(prepare_launch(prepare))
        await asyncio.to_thread(begun.wait)
        threading.Timer(0.2, goes_on.set).start()
        assert not preparing.done()

    asyncio.run(leave_while_it_is_prepared())
    assert list(tmp_path.iterdir()) == []
    assert len(list(Path("/dev/fd").iterdir())) == before
