"""A workspace cannot be left: not by names, not by links, not by being quick."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import each
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import (
    EditFile,
    EditFileParams,
    GlobFiles,
    GlobParams,
    Grep,
    GrepParams,
    ListDir,
    ListDirParams,
    ReadFile,
    ReadFileParams,
    Shell,
    ShellParams,
    Workspace,
    WriteFile,
    WriteFileParams,
)
from toolcrib.tools.backends import Write, version_of

SECRET = "what lies outside"
CTX: Context[None] = Context()


@pytest.fixture(params=[False, True], ids=["kernel", "portable"])
def ws(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "inside.txt").write_text("inside")
    for name, target in {
        "link.txt": "sub/inside.txt",
        "link_up.txt": "sub/../sub/inside.txt",
        "absolute.txt": str(root / "sub/inside.txt"),
        "folder": "sub",
        "out.txt": "../outside/secret.txt",
        "out": "../outside",
        "out_absolute": str(outside),
        "out_by_inside": str(root) + "/../outside",
        "chain": "out",
        "circle": "circle",
        "nothing": "not/there",
        "magic": "/proc/self/cwd",
        "device": "/dev/zero",
    }.items():
        (root / name).symlink_to(target)
    return Workspace(root, portable=request.param)


def read(ws: Workspace, path: str) -> str:
    got = ReadFile(ws).execute(ReadFileParams(path=path), CTX)
    assert isinstance(got, str)
    return got


def write(ws: Workspace, path: str, content: str = "changed") -> str:
    return WriteFile(ws).execute(WriteFileParams(path=path, content=content), CTX)


@pytest.mark.parametrize(
    "path",
    [
        "sub/inside.txt",
        "./sub//inside.txt",
        "sub/../sub/inside.txt",
        "not_there/../sub/inside.txt",
        "link.txt",
        "link_up.txt",
        "absolute.txt",
        "folder/inside.txt",
        "{root}/sub/inside.txt",
        "{root}/../root/sub/inside.txt",
    ],
)
def test_inside_is_reached(ws: Workspace, path: str) -> None:
    assert read(ws, path.format(root=ws.root.path)) == "inside"


OUTSIDE = [
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "{root}/../outside/secret.txt",
    "{root}-other/x.txt",
    "out.txt",
    "out/secret.txt",
    "out_absolute/secret.txt",
    "out_by_inside/secret.txt",
    "chain/secret.txt",
    "folder/../../outside/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "magic/secret.txt",
    "circle",
    "nothing",
    "device",
    "/dev/stdin",
    "~/secret.txt",
    "~root/secret.txt",
    "C:\\secret.txt",
    "sub/inside.txt\0.png",
    "\udcff",
    "",
    "  ",
]


@pytest.mark.promise("security.md", "File tools stay in the workspace")
@each("path", OUTSIDE)
def test_outside_is_not_read(ws: Workspace, path: str) -> None:
    with pytest.raises(ToolError) as refused:
        read(ws, path.format(root=ws.root.path))
    assert SECRET not in refused.value.message


@pytest.mark.promise("security.md", "File tools stay in the workspace")
@pytest.mark.parametrize("path", [path for path in OUTSIDE if path not in ("nothing", "magic/secret.txt")])
def test_outside_is_not_written(ws: Workspace, path: str) -> None:
    outside = Path(ws.root.path).parent / "outside"
    with pytest.raises(ToolError):
        write(ws, path.format(root=ws.root.path))
    assert {entry.name: entry.read_text() for entry in outside.iterdir()} == {"secret.txt": SECRET}


@pytest.mark.parametrize("name", ["out", "out_absolute", "chain", "magic"])
def test_no_folder_is_made_behind_a_link_that_leads_out(ws: Workspace, name: str) -> None:
    with pytest.raises(ToolError):
        write(ws, f"{name}/new/file.txt")
    assert [entry.name for entry in (Path(ws.root.path).parent / "outside").iterdir()] == ["secret.txt"]


@pytest.mark.parametrize("name", ["pipe", "socket", "sub"])
def test_only_regular_files_are_opened_and_nothing_waits(ws: Workspace, name: str) -> None:
    import socket

    root = Path(ws.root.path)
    os.mkfifo(root / "pipe")
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(root)  # the names of sockets are short
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        for attempt in (lambda: read(ws, name), lambda: write(ws, name)):
            with pytest.raises(ToolError, match=r"folder|not a regular file"):
                attempt()
        assert Grep(ws).execute(GrepParams(pattern="inside"), CTX).count("1: inside") == 4


def test_a_search_follows_links_only_where_they_stay_inside(ws: Workspace) -> None:
    found = GlobFiles(ws).execute(GlobParams(pattern="*.txt"), CTX).splitlines()
    assert sorted(found) == ["absolute.txt", "link.txt", "link_up.txt", "sub/inside.txt"]
    assert SECRET not in Grep(ws).execute(GrepParams(pattern="."), CTX)
    for path in ("out", "chain", ".."):
        with pytest.raises(ToolError, match="outside the workspace"):
            Grep(ws).execute(GrepParams(pattern=".", path=path), CTX)
        with pytest.raises(ToolError, match="outside the workspace"):
            ListDir(ws).execute(ListDirParams(path=path), CTX)


def test_a_listing_does_not_tell_where_links_lead_outside(ws: Workspace) -> None:
    listed = ListDir(ws).execute(ListDirParams(), CTX)
    assert "link.txt@ -> sub/inside.txt" in listed
    assert "absolute.txt@ -> sub/inside.txt" in listed
    assert "out@ -> (nothing, or outside the workspace)" in listed
    assert "outside/" not in listed and ws.root.path not in listed


async def test_a_command_cannot_be_started_outside(ws: Workspace) -> None:
    shell = Shell(ws)
    assert (await shell.execute(ShellParams(command="cat inside.txt", workdir="sub"), CTX)).text == "inside"
    with pytest.raises(ToolError, match=r"folder is a link to another folder\. Give sub as workdir"):
        await shell.execute(ShellParams(command="cat inside.txt", workdir="folder"), CTX)
    for workdir in ("..", "out", "/", "chain"):
        with pytest.raises(ToolError, match="outside the workspace"):
            await shell.execute(ShellParams(command="true", workdir=workdir), CTX)


def test_words_do_not_tell_host_paths(ws: Workspace) -> None:
    for path in ("not_there.txt", "sub", "sub/inside.txt/x", "out.txt", "circle"):
        with pytest.raises(ToolError) as refused:
            read(ws, f"{ws.root.path}/{path}")
        assert ws.root.path not in refused.value.message


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("sub/insid.txt", "Did you mean sub/inside.txt?"),
        ("LINK.txt", "Did you mean link.txt"),
        ("no/where.txt", "There is no folder no either."),
        ("sub/inside.txt/x", "is a file, not a folder"),
        ("sub", "Use list_dir"),
    ],
)
def test_a_missing_file_is_answered_with_what_is_there(ws: Workspace, path: str, words: str) -> None:
    with pytest.raises(ToolError) as refused:
        read(ws, path)
    assert words in refused.value.message


@pytest.mark.parametrize(("depth", "made"), [(90, True), (2_000, False)])
def test_folders_on_the_way_are_made_up_to_a_depth(tmp_path: Path, depth: int, made: bool) -> None:
    tool, path = WriteFile(Workspace(tmp_path)), "d/" * depth + "f"
    try:
        tool.execute(WriteFileParams(path=path, content="x"), Context())
    except ToolError as refused:
        assert "More than 100 folders" in refused.message
    assert (tmp_path / "d").exists() == made


def test_further_folders_can_be_read_and_not_written(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (tmp_path / "root").mkdir()
    ws = Workspace(tmp_path / "root", readable=[kept])
    kept.mkdir()  # after the workspace: it comes to exist with the first long output
    (kept / "output.txt").write_text("one\ntwo\n")
    (kept / "out").symlink_to("/etc")
    assert read(ws, f"{kept}/output.txt") == "one\ntwo"
    assert "1: one" in Grep(ws).execute(GrepParams(pattern="one", path=f"{kept}/output.txt"), CTX)
    with pytest.raises(ToolError, match="can only be read"):
        write(ws, f"{kept}/output.txt")
    for path in (f"{kept}/../outside", f"{kept}/out/passwd"):
        with pytest.raises(ToolError, match="outside the workspace"):
            read(ws, path)


# Races: another process flips a name between a folder and a link that leads out; the name is always there.

FLIP = """
import ctypes, os, sys
one, other = sys.argv[1:]
renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
print("ready", flush=True)
while os.getppid() > 1:
    if renameat2 is not None:
        renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2)
        continue
    for name, to in ((one, one + "3"), (other, one), (one + "3", other)):
        try:
            os.rename(name, to)
        except OSError:
            pass
"""


@pytest.fixture
def flipping(ws: Workspace) -> Iterator[Workspace]:
    root = Path(ws.root.path)
    (root / "victim").mkdir()
    (root / "victim" / "secret.txt").write_text("inside")
    (root / "trap").symlink_to("../outside")
    flipper = subprocess.Popen(
        [sys.executable, "-c", FLIP, str(root / "victim"), str(root / "trap")], stdout=subprocess.PIPE
    )
    assert flipper.stdout is not None
    flipper.stdout.readline()
    try:
        yield ws
    finally:
        flipper.kill()
        flipper.wait()
        flipper.stdout.close()


RACES = 3_000


@pytest.mark.promise("security.md", "There is no check that a rename could come after.")
def test_a_raced_link_never_leads_a_read_out(flipping: Workspace) -> None:
    seen: set[str] = set()
    for _ in range(RACES):
        try:
            seen.add(read(flipping, "victim/secret.txt"))
        except ToolError:
            continue
    assert SECRET not in seen


@pytest.mark.promise("security.md", "File tools stay in the workspace")
def test_a_raced_link_never_leads_a_write_out(flipping: Workspace) -> None:
    for number in range(RACES // 5):
        try:
            write(flipping, f"victim/new{number % 3}.txt")
            write(flipping, "victim/secret.txt")
        except ToolError:
            continue
    outside = Path(flipping.root.path).parent / "outside"
    assert {entry.name: entry.read_text() for entry in outside.iterdir()} == {"secret.txt": SECRET}


@pytest.mark.promise("security.md", "There is no check that a rename could come after.")
def test_a_raced_link_never_leads_a_search_out(flipping: Workspace) -> None:
    for _ in range(RACES // 10):
        try:
            listed = ListDir(flipping).execute(ListDirParams(path="victim", depth=2), CTX)
            assert listed in ("secret.txt  6 B", "secret.txt")  # without a size where it was moved meanwhile
        except ToolError:
            continue


# Writing.


def test_a_write_replaces_in_one_step_and_keeps_the_mode(ws: Workspace) -> None:
    path = Path(ws.root.path) / "sub" / "inside.txt"
    path.chmod(0o750)
    with path.open() as before:
        write(ws, "sub/inside.txt", "new")
        assert before.read() == "inside"  # who had it open sees the old file whole
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["inside.txt"]


def test_a_write_goes_through_links_that_stay_inside(ws: Workspace) -> None:
    for name in ("link.txt", "absolute.txt", "folder/inside.txt"):
        write(ws, name, name)
        assert (Path(ws.root.path) / "sub" / "inside.txt").read_text() == name
    assert (Path(ws.root.path) / "link.txt").is_symlink()


def test_new_files_and_folders_have_the_usual_permissions(ws: Workspace) -> None:
    usual = os.umask(0o027)
    try:
        write(ws, "new/deep/file.txt")
    finally:
        os.umask(usual)
    new = Path(ws.root.path) / "new"
    assert stat.S_IMODE((new / "deep/file.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o750


def test_a_file_marked_read_only_stays(ws: Workspace) -> None:
    path = Path(ws.root.path) / "sub" / "inside.txt"
    path.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        write(ws, "sub/inside.txt")
    assert path.read_text() == "inside"


def test_a_failed_write_leaves_nothing_behind(ws: Workspace) -> None:
    stamp = version_of(ws.read("sub/inside.txt", 100))
    (Path(ws.root.path) / "sub" / "inside.txt").write_text("meanwhile")
    with pytest.raises(ToolError, match="changed by somebody else"):
        ws.apply([Write("sub/inside.txt", b"too late", stamp)])
    sub = Path(ws.root.path) / "sub"
    assert {entry.name: entry.read_text() for entry in sub.iterdir()} == {"inside.txt": "meanwhile"}


def test_edits_from_many_threads_all_survive(ws: Workspace) -> None:
    names = [f"value{number:02}" for number in range(20)]
    write(ws, "shared.txt", "".join(f"{name} = 0\n" for name in names))
    edit = EditFile(ws)

    def change(name: str) -> None:
        edit.execute(
            EditFileParams(path="shared.txt", old_string=f"{name} = 0", new_string=f"{name} = 1"), CTX
        )

    threads = [threading.Thread(target=change, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(ws, "shared.txt") == "\n".join(f"{name} = 1" for name in names)


def test_descriptors_are_given_back(ws: Workspace) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no way to count descriptors here")
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for path in ("sub/inside.txt", *OUTSIDE):
        for attempt in (read, write):
            try:
                attempt(ws, path.format(root=ws.root.path))
            except ToolError:
                continue
    Grep(ws).execute(GrepParams(pattern="x"), CTX)
    ListDir(ws).execute(ListDirParams(depth=3), CTX)
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) <= before


def test_calls_on_different_files_name_different_resources(ws: Workspace) -> None:
    tool = ReadFile(ws)
    same = ["sub/x", "./sub//x", "sub/y/../x", f"{ws.root.path}/sub/x"]
    assert {tuple(tool.resources(ReadFileParams(path=path))) for path in same} == {("sub/x",)}
    assert tool.resources(ReadFileParams(path="/etc/passwd")) == ["/etc/passwd"]
