"""One contract for all backends: what a tool reads and changes is the same wherever the files are."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sandbox_runs import backend as backend_class
from toolcrib import Toolbox
from toolcrib.access import Access, Reach
from toolcrib.assembly import default_tools
from toolcrib.command.sandbox import Level
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
    Workspace,
    WriteFile,
    WriteFileParams,
)
from toolcrib.tools.backends import (
    ABSENT,
    Backend,
    Change,
    CommandBackend,
    CompositeBackend,
    Delete,
    MemoryBackend,
    Move,
    SqliteBackend,
    Write,
    version_of,
)

CTX: Context[None] = Context()


def child_process(folder: Path) -> CommandBackend:
    """Files that a plain `sh` in another folder reaches."""
    folder.mkdir()

    async def run(command: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", command, cwd=folder, stdin=-1, stdout=-1, stderr=-1
        )
        out, err = await process.communicate(stdin)
        return process.returncode or 0, out, err

    return CommandBackend(run)


def workspace(folder: Path) -> Workspace:
    folder.mkdir()
    return Workspace(folder)


MAKERS: dict[str, Callable[[Path], Backend]] = {
    "workspace": lambda tmp: workspace(tmp / "root"),
    "memory": lambda tmp: MemoryBackend(),
    "sqlite": lambda tmp: SqliteBackend(tmp / "files.db"),
    "command": lambda tmp: child_process(tmp / "far"),
    "composite": lambda tmp: CompositeBackend(
        {"/memories/": MemoryBackend()}, default=workspace(tmp / "root")
    ),
}
if sys.platform == "win32":
    del MAKERS["command"]


class Routed:
    """All paths of a test go below a prefix, so that the backend there has to keep to the contract too."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def __call__(self, path: str) -> str:
        return self.prefix + path


@pytest.fixture(params=[*((name, "") for name in MAKERS), ("composite", "/memories/")], ids="".join)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Backend, Routed]:
    name, prefix = request.param
    backend, at = MAKERS[name](tmp_path), Routed(prefix)
    content = {
        "a.py": "import os\n",
        "docs/guide.md": "# Guide\n",
        "docs/deep/x.txt": "x" * 10,
        "umlaut ü.txt": "ü",
    }
    made = backend.apply([Write(at(path), text.encode()) for path, text in content.items()])
    assert made == (True,) * len(content)
    return backend, at


def test_all_tools_at_once_are_those_that_work_where_the_files_are(files: tuple[Backend, Routed]) -> None:
    backend, at = files
    box = Toolbox(builtin=default_tools(backend), autonomy="full")
    seen = box.call_sync("read_file", {"path": at("a.py")})
    assert "import os" in seen.text
    box.call_sync("write_file", {"path": at("b.py"), "content": "b = 1\n"})
    assert backend.read(at("b.py"), 100) == b"b = 1\n"

    place = backend.command_backend()
    names = {tool.facts.name for tool in default_tools(backend)}
    assert ("shell" in names) is ("process_list" in names) is (place is not None)
    assert ("python" in names) is isinstance(place, Workspace)
    if place is not None:
        there = "a.py" in box.call_sync("shell", {"command": "find . -name a.py"}).text
        assert there is (not at.prefix)  # commands of a composite run in its default backend
    if not isinstance(place, Workspace):
        with pytest.raises(ValueError, match="a folder of this machine"):
            default_tools(backend, level=Level())


def everything(backend: Backend, at: Routed) -> dict[str, bytes]:
    top = at("") or "."
    found: dict[str, bytes] = {}
    for folder in backend.walk(top, lambda path: True):
        for entry in folder.entries:
            path = entry.name if folder.path in (".", top.rstrip("/")) else f"{folder.path}/{entry.name}"
            if entry.kind == "file":
                full = path if path.startswith(at("")) else at(path)
                found[full.removeprefix(at(""))] = backend.read(full, 1_000_000)
    return found


def test_reads(files: tuple[Backend, Routed]) -> None:
    backend, at = files
    assert backend.read(at("docs/../docs/./guide.md"), 100) == b"# Guide\n"
    assert backend.place(at("docs//x/../guide.md")).shown == at("docs/guide.md")
    opened, status = backend.open_file(at("docs/deep/x.txt"))
    with opened:
        assert (opened.read(4), status.kind, status.size) == (b"xxxx", "file", 10)
        opened.seek(8)
        assert opened.read() == b"xx"
    folder = backend.stat(at("docs"))
    assert folder is not None and folder.kind == "folder"
    assert backend.stat(at("nothing")) is None
    assert [(entry.name, entry.kind) for entry in backend.entries(at("docs"))] == [
        ("deep", "folder"),
        ("guide.md", "file"),
    ]
    assert sorted(everything(backend, at)) == ["a.py", "docs/deep/x.txt", "docs/guide.md", "umlaut ü.txt"]
    skipped = [folder.path for folder in backend.walk(at("docs"), lambda path: True, skip=["deep"])]
    assert skipped == [at("docs")]
    assert [folder.path for folder in backend.walk(at("docs"), lambda path: False)] == [at("docs")]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("docs/guid.md", "There is no file .*guid.md. Did you mean .*docs/guide.md"),
        ("nowhere/a.py", "There is no folder .*nowhere either"),
        ("docs", "docs is a folder, not a file"),
        ("a.py/x", "a part of this path is a file"),
    ],
)
def test_says_why_a_file_cannot_be_read(files: tuple[Backend, Routed], path: str, words: str) -> None:
    backend, at = files
    with pytest.raises(ToolError, match=words):
        backend.read(at(path), 100)


@pytest.mark.parametrize("path", ["", " ", "a\0b", "../x", "docs/../../x", "/etc/passwd", "~/x", "\udc80"])
def test_refuses_what_is_no_path_inside(files: tuple[Backend, Routed], path: str) -> None:
    backend, _ = files
    if path == "/etc/passwd" and isinstance(backend, MemoryBackend | SqliteBackend):
        pytest.skip("its root is /")
    with pytest.raises(ToolError):
        backend.read(path, 100)
    with pytest.raises(ToolError):
        backend.apply([Write(path, b"x")])
    assert backend.resource(path) == path


def test_a_set_of_changes_is_made(files: tuple[Backend, Routed]) -> None:
    backend, at = files
    made = backend.apply(
        [
            Write(at("a.py"), b"import sys\n", version_of(b"import os\n")),
            Write(at("new/folder/b.py"), b"", ABSENT),
            Delete(at("docs/deep/x.txt"), version_of(b"x" * 10)),
            Move(at("docs/guide.md"), at("docs/old/guide.md")),
            Move(at("umlaut ü.txt"), at("it's $(here).txt"), b"moved and changed"),
        ]
    )
    assert made == (False, True, False, True, True)
    assert everything(backend, at) == {
        "a.py": b"import sys\n",
        "new/folder/b.py": b"",
        "docs/old/guide.md": b"# Guide\n",
        "it's $(here).txt": b"moved and changed",
    }


REFUSED: list[tuple[str, Callable[[Routed], Change], str]] = [
    ("stale", lambda at: Write(at("a.py"), b"y", version_of(b"other")), "was changed by somebody else"),
    ("stale delete", lambda at: Delete(at("a.py"), version_of(b"other")), "was changed by somebody else"),
    ("there already", lambda at: Write(at("a.py"), b"y", ABSENT), "exists already"),
    ("gone", lambda at: Write(at("gone"), b"y", version_of(b"")), "was deleted meanwhile"),
    ("nothing to delete", lambda at: Delete(at("gone")), "There is no file"),
    ("nothing to move", lambda at: Move(at("gone"), at("b")), "There is no file"),
    ("target taken", lambda at: Move(at("a.py"), at("umlaut ü.txt")), "exists already"),
    ("a folder", lambda at: Write(at("docs"), b"y"), "is a folder"),
    ("below a file", lambda at: Write(at("a.py/b"), b"y"), "a part of this path is a file"),
    ("the root", lambda at: Write(at("."), b"y"), "folder"),
    ("twice", lambda at: Write(at("docs/../first"), b"z"), "named twice"),
]


@pytest.mark.parametrize(("change", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_nothing_is_changed_if_one_change_is_refused(
    files: tuple[Backend, Routed], change: Callable[[Routed], Change], words: str
) -> None:
    backend, at = files
    before = everything(backend, at)
    others = [Write(at("first"), b"1"), Write(at("x/y/second"), b"2"), Delete(at("docs/guide.md"))]
    with pytest.raises(ToolError, match=words):
        backend.apply([*others, change(at)])
    assert everything(backend, at) == before
    assert backend.stat(at("x")) is None


@pytest.mark.parametrize(
    ("denied", "change"),
    [
        (Access(Reach.WRITE, "b"), Write("b", b"")),
        (Access(Reach.DELETE, "a.py"), Delete("a.py")),
        (Access(Reach.READ, "a.py"), Move("a.py", "b")),
        (Access(Reach.WRITE, "b"), Move("a.py", "b")),
    ],
    ids=str,
)
def test_permits_decide_on_each_path(files: tuple[Backend, Routed], denied: Access, change: Change) -> None:
    backend, at = files
    before = everything(backend, at)
    name = at(denied.target)
    moved = {"to": at(change.to)} if isinstance(change, Move) else {}
    change = change.__class__(
        **{**{key: getattr(change, key) for key in change.__slots__}, "path": at(change.path), **moved}
    )
    with pytest.raises(ToolError):
        backend.apply(
            [Write(at("c"), b""), change],
            lambda access: (access.reach, access.target) != (denied.reach, name),
        )
    assert everything(backend, at) == before
    with pytest.raises(ToolError):
        backend.read(at("a.py"), 100, lambda access: access.target != at("a.py"))
    assert backend.stat(at("a.py"), lambda access: access.target != at("a.py")) is None


def test_of_two_writers_who_read_the_same_one_is_told(files: tuple[Backend, Routed]) -> None:
    backend, at = files
    done: list[str] = []

    def add(line: str) -> None:
        while True:
            old = backend.read(at("a.py"), 10_000)
            try:
                backend.apply([Write(at("a.py"), old + line.encode(), version_of(old))])
            except ToolError as refused:
                assert "changed by somebody else" in refused.message
                continue
            done.append(line)
            return

    threads = [threading.Thread(target=add, args=(f"line {n}\n",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(backend.read(at("a.py"), 10_000).decode().splitlines()[1:]) == sorted(
        f"line {n}" for n in range(6)
    )


def test_tools_work_on_it(files: tuple[Backend, Routed]) -> None:
    backend, at = files
    top = at("") or "."
    assert ReadFile(backend).execute(ReadFileParams(path=at("a.py")), CTX) == "import os"
    assert "Created" in WriteFile(backend).execute(
        WriteFileParams(path=at("src/m.py"), content="a = 1\n"), CTX
    )
    said = EditFile(backend).execute(EditFileParams(path=at("src/m.py"), old_string="1", new_string="2"), CTX)
    assert "line 1" in said
    assert backend.read(at("src/m.py"), 100) == b"a = 2\n"
    assert "m.py" in ListDir(backend).execute(ListDirParams(path=top, depth=3), CTX)
    found = GlobFiles(backend).execute(GlobParams(pattern="**/*.py", path=top), CTX)
    assert sorted(found.splitlines()) == sorted([at("a.py"), at("src/m.py")])
    found = Grep(backend).execute(GrepParams(pattern="Gui.e", path=top), CTX)
    assert found.splitlines()[0] == at("docs/guide.md")


def test_a_composite_routes_by_prefix_and_takes_back_what_another_backend_refuses(tmp_path: Path) -> None:
    memory = MemoryBackend({"notes.md": "old"})
    local = workspace(tmp_path / "root")
    both = CompositeBackend({"/memories/": memory}, default=local)
    both.apply([Write("f", b"1"), Write("/memories/new.md", b"2")])
    assert (tmp_path / "root/f").read_bytes() == b"1" and memory.read("new.md", 10) == b"2"
    changes: list[Change] = [
        Write("/memories/notes.md", b"new"),
        Delete("/memories/new.md"),
        Write("f", b"3", version_of(b"x")),
    ]
    with pytest.raises(ToolError, match="f was changed by somebody else"):
        both.apply(changes)
    assert memory.read("notes.md", 10) == b"old" and memory.read("new.md", 10) == b"2"
    assert both.apply([Move("/memories/new.md", "kept.md")]) == (True,)
    assert (tmp_path / "root/kept.md").read_bytes() == b"2" and memory.stat("new.md") is None
    assert both.accesses_to(Reach.READ, "/memories/notes.md")[0].target == "/memories/notes.md"
    for path in ("/memories/../f", "/memories2/x", "/memories/../../etc/passwd"):
        with pytest.raises(ToolError, match="outside the workspace"):
            both.read(path, 100)
    with pytest.raises(ToolError, match=r"There is no file /memories/gone\.md"):
        both.read("/memories/gone.md", 100)


def test_memory_is_saved_and_restored() -> None:
    backend = MemoryBackend({"a/b.txt": b"\xff\x00"})
    again = MemoryBackend.restored(backend.saved())
    assert again.read("a/b.txt", 10) == b"\xff\x00"
    with pytest.raises(ValueError, match="format"):
        MemoryBackend.restored({"format": 99, "files": {}})


def test_sqlite_lasts_and_is_shared(tmp_path: Path) -> None:
    one, other = SqliteBackend(tmp_path / "f.db"), SqliteBackend(tmp_path / "f.db")
    one.apply([Write("a", b"1")])
    assert other.read("a", 10) == b"1"
    with pytest.raises(ToolError, match="changed by somebody else"):
        other.apply([Write("a", b"2", version_of(b"0"))])
    if sys.platform != "win32":
        assert (tmp_path / "f.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
def test_links_behind_commands_are_decided_on_by_where_they_lead(tmp_path: Path) -> None:
    backend = child_process(tmp_path / "far")
    far = tmp_path / "far"
    (far / "secret").write_text("s")
    (far / "link").symlink_to("secret")
    (far / "out").symlink_to("/etc/passwd")
    (far / "round").symlink_to("round")
    assert backend.leads_to("link") == "secret" and backend.leads_to("out") is None
    assert backend.read("link", 10) == b"s"
    for path, words in {"out": "leads outside", "round": "in a circle"}.items():
        with pytest.raises(ToolError, match=words):
            backend.read(path, 10)
    with pytest.raises(ToolError, match="leads to another place"):
        backend.read("link", 10, lambda access: access.target != "secret")
    with pytest.raises(ToolError, match="is a symlink"):
        backend.apply([Delete("link")])
    backend.apply([Write("link", b"through")])
    assert (far / "link").is_symlink() and (far / "secret").read_bytes() == b"through"


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
def test_a_script_that_was_killed_in_the_middle_is_finished_by_the_next_set(tmp_path: Path) -> None:
    backend = child_process(tmp_path / "far")
    far = tmp_path / "far"
    backend.apply([Write("a", b"old a"), Write("b", b"old b")])
    real = backend._run

    async def run(command: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        if " .toolcrib-changes || " in command:
            first, second, rest = command.partition("\nmake ")
            step, _, others = rest.partition("\n")
            await real(f"{first}{second}{step}\nkill -9 $$\n{others}", stdin)
            gone.append(True)
        if gone:
            raise ConnectionError("and so is the one who sent it")
        return await real(command, stdin)

    gone: list[bool] = []
    backend._run = run
    with pytest.raises(ToolError, match="cannot be reached"):
        backend.apply([Write("a", b"new a"), Write("b", b"new b")])
    assert ((far / "a").read_bytes(), (far / "b").read_bytes()) == (b"new a", b"old b")
    backend._run = real
    backend.apply([Write("c", b"")])
    assert ((far / "a").read_bytes(), (far / "b").read_bytes()) == (b"new a", b"new b")
    assert sorted(path.name for path in far.iterdir()) == ["a", "b", "c"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
@pytest.mark.parametrize("signed", [False, True])
def test_a_file_of_a_project_is_not_run_as_the_note_of_a_set(tmp_path: Path, signed: bool) -> None:
    backend, note = child_process(tmp_path / "far"), tmp_path / "far" / ".toolcrib-changes"
    script = "touch ../canary\n"
    content = (f"{'0' * 64}\n" if signed else "") + script
    note.write_text(content)
    backend.apply([Write("a", b"1"), Write("b", b"2")])
    backend.apply([Move("a", "c"), Write("d", b"3")])
    assert not (tmp_path / "canary").exists()
    assert note.read_text() == content
    assert sorted(path.name for path in (tmp_path / "far").iterdir()) == [note.name, "b", "c", "d"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
@pytest.mark.parametrize("name", [".toolcrib-changes", ".toolcrib-changes.new"])
@pytest.mark.parametrize("leads_to", ["../canary", "../nowhere", ".."])
def test_no_link_of_a_project_leads_the_note_of_a_set_elsewhere(
    tmp_path: Path, name: str, leads_to: str
) -> None:
    backend = child_process(tmp_path / "far")
    (tmp_path / "canary").write_text("mine")
    (tmp_path / "far" / name).symlink_to(leads_to)
    backend.apply([Write("a", b"1"), Write("b", b"2")])
    assert (tmp_path / "canary").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"canary", "far"}
    assert {path.name for path in (tmp_path / "far").iterdir()} - {name} == {"a", "b"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
def test_a_file_with_the_name_of_the_note_can_be_written(tmp_path: Path) -> None:
    backend = child_process(tmp_path / "far")
    backend.apply([Write(".toolcrib-changes", b"mine")])
    assert backend.read(".toolcrib-changes", 10) == b"mine"
    (tmp_path / "far" / ".toolcrib-changes").unlink()
    os.mkfifo(tmp_path / "far" / ".toolcrib-changes")
    backend.apply([Write("a", b"not waited for")])


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
def test_files_in_a_sandbox_are_edited_without_the_folder_of_the_host(tmp_path: Path) -> None:
    backend_class("bubblewrap")  # skips where it does not work
    walls = [
        "bwrap",
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--bind",
        str(tmp_path),
        "/mnt",
        "--chdir",
        "/mnt",
    ]

    async def run(command: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            *walls, "sh", "-c", command, stdin=-1, stdout=-1, stderr=-1
        )
        out, err = await process.communicate(stdin)
        return process.returncode or 0, out, err

    backend = CommandBackend(run, "/mnt")
    WriteFile(backend).execute(WriteFileParams(path="a/b.py", content="x = 1\n"), CTX)
    EditFile(backend).execute(EditFileParams(path="/mnt/a/b.py", old_string="1", new_string="2"), CTX)
    assert (tmp_path / "a/b.py").read_text() == "x = 2\n"
    assert backend.place("/mnt/a/b.py").shown == "a/b.py"
    with pytest.raises(ToolError, match="outside"):
        backend.read("/etc/passwd", 100)
    ran = asyncio.run(backend.run_command(f"cat {backend.folder_of_commands('a')}/b.py; exit 3"))
    assert (ran.code, ran.stdout) == (3, b"x = 2\n")
