"""Checkpoints of a workspace: what an undo puts back, what it keeps, and what it says that it cannot do."""

import codecs
import errno
import os
import shutil
import socket
import stat
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import each
from tests.test_change_sets import FOR_ONE_MORE
from toolcrib.birth_time import birth_time
from toolcrib.checkpoints import CheckpointError, CheckpointLimits, Checkpoints, Conversation, scan
from toolcrib.checkpoints.checkpoints import LIMITS
from toolcrib.checkpoints.content import ContentStore
from toolcrib.checkpoints.scan import RECENT
from toolcrib.command.sandbox.files.placeholders import TIME_OF_A_PLACEHOLDER

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes, links and special files of POSIX")


def workspace(folder: Path) -> Path:
    """A folder with one of everything that a checkpoint covers."""
    root = folder / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "deep" / "b.bin").write_bytes(bytes(range(256)) * 400)  # large enough to be cloned
    (root / "empty").mkdir()
    (root / "link").symlink_to("a.txt")
    (root / "out").symlink_to("/etc")
    (root / "locked").mkdir()
    (root / "locked" / "file").write_text("read only")
    (root / "locked" / "file").chmod(0o444)
    (root / "locked").chmod(0o555)
    (root / os.fsdecode(b"\xff\xfe.txt")).write_text("no UTF-8")
    return root


def state(root: Path) -> dict[str, object]:
    """Everything below a folder: kind, mode, and content or target."""
    found: dict[str, object] = {".": stat.S_IMODE(root.stat().st_mode)}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder) / name
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            if path.is_symlink():
                found[str(path.relative_to(root))] = ("link", str(path.readlink()))
            elif stat.S_ISREG(status.st_mode):
                found[str(path.relative_to(root))] = ("file", mode, path.read_bytes(), status.st_uid)
            else:
                found[str(path.relative_to(root))] = (stat.S_IFMT(status.st_mode), mode)
    return found


def checkpoints(root: Path, limits: CheckpointLimits = LIMITS) -> Checkpoints:
    return Checkpoints(root, store=root.parent / "store", limits=limits)


def opened(root: Path, name: str) -> Path:
    """A folder of the workspace, made writable as a command would."""
    (root / name).chmod(0o755)
    return root / name


def folder_to_file(root: Path) -> None:
    shutil.rmtree(root / "src")
    (root / "src").write_text("a file now")


def file_to_folder(root: Path) -> None:
    (root / "a.txt").unlink()
    (root / "a.txt").mkdir()
    (root / "a.txt" / "inner").write_text("x")


def same_size_and_time(root: Path) -> None:
    before = (root / "a.txt").stat()
    (root / "a.txt").write_text("two\n")
    os.utime(root / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def folder_for_link(root: Path) -> None:
    (root / "out").unlink()
    (root / "out").mkdir()
    (root / "out" / "passwd").write_text("x")


def link_for_folder(root: Path) -> None:
    shutil.rmtree(root / "src")
    (root / "src").symlink_to(root.parent / "elsewhere")


def everything_gone(root: Path) -> None:
    opened(root, "locked")
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def another_owner(root: Path) -> None:
    (root / "a.txt").write_text("two")
    os.chown(root / "a.txt", 54322, 54322)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a file changed": lambda root: (root / "a.txt").write_text("two"),
    "a file of the same size and time": same_size_and_time,
    "a file removed": lambda root: (root / "a.txt").unlink(),
    "a file made": lambda root: (root / "new").write_text("new"),
    "a file emptied": lambda root: os.truncate(root / "src/deep/b.bin", 0),
    "a byte in a large file": lambda root: (root / "src/deep/b.bin").open("r+b").write(b"x"),
    "a mode": lambda root: (root / "run.sh").chmod(0o600),
    "a mode of a folder": lambda root: (root / "src").chmod(0o700),
    "a folder shut": lambda root: (root / "src").chmod(0),
    "a folder renamed": lambda root: (root / "src").rename(root / "lib"),
    "a folder made": lambda root: (root / "x" / "y").mkdir(parents=True),
    "an empty folder removed": lambda root: (root / "empty").rmdir(),
    "a folder is a file": folder_to_file,
    "a file is a folder": file_to_folder,
    "a link changed": lambda root: ((root / "link").unlink(), (root / "link").symlink_to("nowhere")),
    "a link is a file": lambda root: ((root / "link").unlink(), (root / "link").write_text("x")),
    "a link is a folder": folder_for_link,
    "a folder is a link out": link_for_folder,
    "in a read-only folder": lambda root: (opened(root, "locked") / "file").unlink(),
    "a read-only file": lambda root: (opened(root, "locked") / "file").chmod(0o600),
    "no UTF-8": lambda root: (root / os.fsdecode(b"\xff\xfe.txt")).unlink(),
    "everything": everything_gone,
    "the mode of the workspace": lambda root: root.chmod(0o777),
}
if hasattr(os, "geteuid") and os.geteuid() == 0:
    DAMAGE["an owner"] = another_owner


@pytest.mark.promise("undo.md", "the owner of a file whose content or mode changed")
@pytest.mark.promise(
    "undo.md", "files with content and mode; links, as links; folders, also empty ones; any name"
)
@pytest.mark.promise("undo.md", "Whatever a run did to the files of its folder can be taken back")
@pytest.mark.promise("security.md", "What a run did to the files of its folder can be taken back")
@each("damage", DAMAGE.values(), DAMAGE.keys())
def test_an_undo_puts_back_what_was_and_a_redo_what_the_run_did(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    root = workspace(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    kept = checkpoints(root)
    before = state(root)
    kept.take("before")
    damage(root)
    after = state(root)
    assert before != after
    kept.take("after", then="person")

    undone = checkpoints(root).undo()
    assert state(root) == before
    assert undone.changes
    assert undone.kept == {}
    redone = checkpoints(root).redo()
    assert state(root) == after
    assert {change.path for change in redone.changes} == {change.path for change in undone.changes}
    checkpoints(root).undo()
    assert state(root) == before
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]


def test_without_a_checkpoint_after_a_run_everything_since_counts_as_the_runs(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    before = state(root)
    checkpoints(root).take("before")
    folder_to_file(root)
    checkpoints(root).undo()
    assert state(root) == before


@pytest.mark.promise("undo.md", "An undo keeps it and names it")
def test_what_a_person_changed_stays_and_is_named(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    kept = checkpoints(root)
    kept.take("before")
    (root / "a.txt").write_text("by the run\n")
    (root / "run.sh").write_text("by the run\n")
    (root / "new").mkdir()
    (root / "new" / "made").write_text("by the run\n")
    kept.take("after", then="person")
    (root / "a.txt").write_text("by a person\n")
    (root / "new" / "own").write_text("by a person\n")

    undone = kept.undo()
    assert (root / "a.txt").read_text() == "by a person\n"
    assert (root / "run.sh").read_text() == "#!/bin/sh\n"
    assert [path.name for path in (root / "new").iterdir()] == ["own"]
    assert undone.kept.keys() == {"a.txt", "new", "new/own"}


@pytest.mark.promise("undo.md", "A file that the run changed again after you goes back to what you left.")
def test_a_file_that_run_and_person_changed_in_turns_goes_back_to_the_persons_last_words(
    tmp_path: Path,
) -> None:
    root = workspace(tmp_path)
    kept = checkpoints(root)
    kept.take("before")
    (root / "a.txt").write_text("run 1\n")
    kept.take("after", then="person")
    (root / "a.txt").write_text("person\n")
    kept.take("next turn")
    (root / "a.txt").write_text("run 2\n")
    kept.take("after", then="person")
    undone = kept.undo(1)
    assert (root / "a.txt").read_text() == "person\n"
    assert "a.txt" in undone.kept


@pytest.mark.promise("undo.md", "before an undo the present state is stored, and `--redo` brings it back")
def test_undo_goes_back_run_by_run_and_redo_forth(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    states = [state(root)]
    for number in range(3):
        kept = checkpoints(root)
        kept.take("turn", conversation=Conversation(f"run{number}", 1))
        (root / f"file{number}").write_text("x")
        kept.take("after", then="person")
        kept.take("turn", conversation=Conversation(f"run{number}", 3))
        (root / "a.txt").write_text(f"{number}")
        kept.take("after", then="person")
        states.append(state(root))
    for number in (2, 1, 0):
        assert checkpoints(root).undo().to.run == f"run{number}"
        assert state(root) == states[number]
    with pytest.raises(CheckpointError, match="nothing to undo"):
        checkpoints(root).undo()
    for number in (1, 2, 3):
        checkpoints(root).redo()
        assert state(root) == states[number]
    with pytest.raises(CheckpointError, match="nothing to redo"):
        checkpoints(root).redo()


@pytest.mark.promise("undo.md", "Paths in the folder that are not covered are listed with each undo.")
@pytest.mark.promise("security.md", "what they do not is listed")
def test_what_is_not_covered_is_said_and_left_alone(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (root / ".gitignore").write_text("*.log\n/build/\n")
    for name in ("build", "node_modules", ".git"):
        (root / name).mkdir()
        (root / name / "inner").write_text("x")
    (root / "x.log").write_text("x" * 70_000)
    (root / "large").write_bytes(bytes(2_000))
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
    kept = checkpoints(root, CheckpointLimits(file_bytes=1_000_000))
    small = checkpoints(root, CheckpointLimits(file_bytes=1_000))
    kept.take("before")
    assert kept.not_covered().keys() == {"build", "node_modules", ".git", "x.log", "pipe", "socket"}
    for path, reason in {
        "build": "ignore rules leave it out",
        "build/deep/new": "ignore rules leave it out",
        "src/y.log": "ignore rules leave it out",
        ".git/config": "it belongs to the version control",
        "src/node_modules/x": "tools generate it",
        "pipe": "it is no file, folder or link, but a special file",
        "../other": "it lies outside of the workspace",
        "out/passwd": "it lies outside of the workspace",
        "/etc/passwd": "it lies outside of the workspace",
        "a.txt": None,
        "out": None,
        "new/folder/file": None,
        str(root / "src"): None,
        ".": None,
    }.items():
        assert kept.covers(path) == reason, path
    assert small.covers("large") == "it is larger than 0 MB"
    shutil.rmtree(root / "node_modules")
    (root / "build" / "inner").write_text("changed")
    (root / "a.txt").unlink()
    undone = kept.undo()
    assert [change.path for change in undone.changes] == ["a.txt"]
    assert undone.kept == {"node_modules": "it is gone and was not saved: tools generate it"}
    assert undone.not_covered.keys() == {"build", ".git", "x.log", "pipe", "socket"}
    assert (root / "build" / "inner").read_text() == "changed"
    assert not (root / "node_modules").exists()


@pytest.mark.promise("undo.md", "a run cannot take files out by writing a `.gitignore`")
def test_a_new_ignore_file_takes_nothing_from_what_is_covered(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    before = state(root)
    kept = checkpoints(root)
    kept.take("before")
    (root / ".gitignore").write_text("*\n")
    kept.take("after a turn")
    opened(root, "locked")
    shutil.rmtree(root / "src")
    (root / "a.txt").write_text("changed")
    assert kept.covers("a.txt") is None
    kept.undo(1)
    assert state(root) == before


def taken_away(root: Path) -> None:
    shutil.rmtree(root / "src")
    (root / "a.txt").unlink()


def ignored_anew(root: Path) -> None:
    (root / ".gitignore").write_text("src/\na.txt\n")
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "deep" / "other").write_text("x")
    (root / "a.txt").write_text("x" * 70_000)


def crowded(root: Path) -> None:
    for number in range(60):
        (root / f"file{number}").write_text("x")


def shut_anew(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src").chmod(0)


def like_a_placeholder(root: Path) -> None:
    for path in ("a.txt/inner", "src"):
        (root / path).mkdir(parents=True)
    for path in ("a.txt/inner", "a.txt", "src"):
        os.utime(root / path, (TIME_OF_A_PLACEHOLDER, TIME_OF_A_PLACEHOLDER))


def shut_placeholder(root: Path) -> None:
    like_a_placeholder(root)
    (root / "src").chmod(0o100)


TAKEN_OUT: dict[
    str, list[Callable[[Path], None]]
] = {  # what a run does in its turns, with a checkpoint before each
    "removed, and others in place of all the room": [lambda root: (taken_away(root), crowded(root))[0]],
    "removed, then others in place of all the room": [taken_away, crowded],
    "removed, then made anew and ignored": [taken_away, ignored_anew],
    "removed, then made anew without rights": [taken_away, shut_anew],
    "removed, and made like a placeholder of the sandbox": [
        lambda root: (taken_away(root), like_a_placeholder(root))[0]
    ],
    "removed, and made like a placeholder without rights": [
        lambda root: (taken_away(root), shut_placeholder(root))[0],
        lambda root: None,
    ],
    "removed, then made like a placeholder of the sandbox": [taken_away, like_a_placeholder],
    "removed, ignored, and without room": [taken_away, ignored_anew, crowded],
}


@pytest.mark.promise("undo.md", "What was covered once stays covered")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="changes its user in a child")
@each("turns", TAKEN_OUT.values(), TAKEN_OUT.keys())
def test_no_turn_takes_out_what_an_earlier_checkpoint_covers(turns: list[Callable[[Path], None]]) -> None:
    def work(place: Path) -> None:
        root = workspace(place)
        limits = CheckpointLimits(tree_paths=40)
        before = state(root)
        for number, turn in enumerate(turns, 1):
            checkpoints(root, limits).take("turn", conversation=Conversation("run", number))
            turn(root)
            checkpoints(root, limits).take("after", then="person")
        after = set(root.iterdir())
        undone = checkpoints(root, limits).undo(1)
        assert before.items() <= state(root).items(), undone
        more = state(root).keys() - before.keys()  # made where no checkpoint covers it
        assert all(
            path.startswith(("file", "a.txt.before-undo")) or path == "src/deep/other" for path in more
        )
        assert undone.kept.keys() <= more
        checkpoints(root, limits).redo()
        assert after <= set(root.iterdir())
        checkpoints(root, limits).undo()
        assert before.items() <= state(root).items()

    as_nobody(work)


def whole(root: Path) -> None:
    (root / "node_modules").rename(root / "keep")


def whole_and_changed(root: Path) -> None:
    whole(root)
    (root / "keep" / "react" / "index.js").write_text("changed")
    (root / "keep" / "new.js").write_text("new")


def into_a_new_folder(root: Path) -> None:
    (root / "keep").mkdir()
    (root / "node_modules" / "react").rename(root / "keep" / "react")


def in_place_of_a_folder(root: Path) -> None:
    shutil.rmtree(root / "src")
    (root / "node_modules").rename(root / "src")


def in_place_of_a_file(root: Path) -> None:
    (root / "a.txt").unlink()
    (root / "node_modules").rename(root / "a.txt")


def a_file(root: Path) -> None:
    (root / "node_modules" / "react" / "lib" / "a.js").rename(root / "keep")


MOVED: dict[str, tuple[Callable[[Path], None], str]] = {  # and where the file that is not covered is then
    "a folder": (whole, "keep/react/lib/a.js"),
    "a folder, in which something changes": (whole_and_changed, "keep/react/lib/a.js"),
    "a folder in it": (into_a_new_folder, "keep/react/lib/a.js"),
    "a file": (a_file, "keep"),
    "a folder, in the place of another": (in_place_of_a_folder, "src/react/lib/a.js"),
    "a folder, in the place of a file": (in_place_of_a_file, "a.txt/react/lib/a.js"),
}


def wait_for_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until the clock of the file system has passed now. The ones that tests run on are hardly behind."""
    monkeypatch.setattr("toolcrib.checkpoints.undo_plan.CLOCK_MARGIN", 50_000_000)
    time.sleep(0.1)


@pytest.mark.promise("undo.md", "What came from a place that is not covered stays where it is")
@each("moved", MOVED.values(), MOVED.keys())
@each("known", [True, False], ["birth times", "none"])
def test_what_was_moved_out_of_what_is_not_covered_is_not_lost(
    tmp_path: Path, moved: tuple[Callable[[Path], None], str], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "now").touch()
    if not (known and birth_time(str(tmp_path / "now"))):
        if moved is MOVED["a file"]:
            return  # only its birth time tells that it is old
        monkeypatch.setattr("toolcrib.checkpoints.checkpoints.birth_time", lambda path: 0)
    root = workspace(tmp_path)
    (root / "node_modules" / "react" / "lib").mkdir(parents=True)
    for name in ("package.json", "react/index.js", "react/lib/a.js"):
        (root / "node_modules" / name).write_text(name)
    wait_for_the_clock(monkeypatch)
    before = state(root)
    kept = checkpoints(root)
    kept.take("before")
    move, place = moved
    move(root)
    (root / "src2").mkdir()
    if (root / "src" / "deep" / "b.bin").exists():
        (root / "src" / "deep").rename(root / "src2" / "deep")  # covered: it goes back
        (root / "run.sh").rename(root / "src2" / "run.sh")
        (root / "src2" / "run.sh").write_text("changed")
    undone = kept.undo()
    assert (root / place).read_text() == "react/lib/a.js"
    after = state(root)
    assert {path for path in before if after.get(path) != before[path]} == {
        path
        for path in before
        if (path.startswith("node_modules") and not (root / path).exists()) or place.startswith(f"{path}/")
    } - {"src"}
    assert {path.partition("/")[0] for path in after.keys() - before.keys()} == {place.partition("/")[0]}
    top = "keep" if place.startswith("keep") else place.removesuffix("/lib/a.js")
    assert undone.kept[top] == "it was there before, at a place that is not covered"
    kept.redo()
    assert (root / place).read_text() == "react/lib/a.js"


@pytest.mark.promise("undo.md", "Paths in the folder that are not covered are listed with each undo.")
def test_what_a_run_linked_from_elsewhere_or_dated_back_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = workspace(tmp_path)
    (tmp_path / "cache").write_text("of a package manager")
    wait_for_the_clock(monkeypatch)
    before = state(root)
    kept = checkpoints(root)
    kept.take("before")
    (root / "lib").mkdir()
    os.link(tmp_path / "cache", root / "lib" / "linked")
    (root / "lib" / "old").write_text("out of an archive")
    os.utime(root / "lib" / "old", (10**9, 10**9))
    undone = kept.undo()
    assert state(root) == before and not undone.kept


def test_what_a_run_puts_into_an_empty_folder_of_the_sandbox_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = workspace(tmp_path)
    (root / ".vscode").mkdir()
    os.utime(root / ".vscode", (TIME_OF_A_PLACEHOLDER, TIME_OF_A_PLACEHOLDER))
    wait_for_the_clock(monkeypatch)
    kept = checkpoints(root)
    kept.take("before")
    (root / ".vscode" / "settings.json").write_text("{}")
    undone = kept.undo()
    assert not (root / ".vscode").exists() and not undone.kept


def test_what_a_run_made_and_ignored_is_listed_although_the_undo_takes_its_rules_away(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    kept = checkpoints(root)
    kept.take("before")
    (root / ".gitignore").write_text("dist/\n")
    (root / "dist").mkdir()
    (root / "dist" / "app.js").write_text("built")
    undone = kept.undo()
    assert not (root / ".gitignore").exists() and (root / "dist" / "app.js").exists()
    assert undone.not_covered["dist"] == "ignore rules leave it out"


def test_what_a_person_makes_and_ignores_where_a_run_removed_something_stays(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    kept = checkpoints(root)
    kept.take("before")
    taken_away(root)
    kept.take("after", then="person")
    ignored_anew(root)
    kept.take("next turn")
    (root / "run.sh").unlink()
    undone = kept.undo(1)
    assert (root / "a.txt").read_text() == "x" * 70_000
    assert (root / "src" / "deep" / "other").exists()
    assert (root / "run.sh").exists()
    assert undone.kept.keys() == {".gitignore", "a.txt", "src/deep/b.bin", "src/deep/other"}


def test_empty_folders_of_the_sandbox_are_no_change(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    taken = checkpoints(root)
    taken.take("before")
    for path in (".vscode", ".cargo/bin", "a command's/with.txt"):
        (root / path).mkdir(parents=True)
    (root / "a command's" / "file").write_text("hidden by its time?")
    for path in (".vscode", ".cargo/bin", ".cargo", "a command's"):
        os.utime(root / path, (TIME_OF_A_PLACEHOLDER, TIME_OF_A_PLACEHOLDER))
    after = taken.take("after")
    assert after.changed == 3
    assert {change.path for change in taken.undo().changes} == {
        "a command's",
        "a command's/with.txt",
        "a command's/file",
    }
    assert (root / ".vscode").is_dir()


@pytest.mark.promise("undo.md", "Small files that ignore rules leave out")
def test_small_ignored_files_are_covered_where_they_are_few(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (root / ".git" / "info").mkdir(parents=True)
    (root / ".git" / "info" / "exclude").write_text("/notes\n")
    (root / ".gitignore").write_text(".env\n*.o\n")
    (root / ".ignore").write_text("*.local\n!kept.o\n")
    for name in (".env", "notes", "a.local", "src/.env"):
        (root / name).write_text(f"KEY={name}\n")
    (root / "notes2").mkdir()
    for number in range(21):
        (root / "notes2" / f"{number}.o").write_text("x")
    (root / "notes2" / "kept.o").write_text("x")
    kept = checkpoints(root)
    first = kept.take("before")
    assert kept.covers(".env") is kept.covers("notes2/kept.o") is None
    assert kept.covers("notes2/1.o") == kept.covers("new.local") == "ignore rules leave it out"
    (root / ".env").unlink()
    (root / "notes").write_text("lost")
    (root / "b.local").write_text("new")
    (root / "notes2" / "1.o").unlink()
    for number in range(30):  # more of them do not take away what is covered
        (root / f"{number}.local").write_text("x")
    kept.take("after", then="person")
    undone = kept.undo(first.id)
    assert (root / ".env").read_text() == "KEY=.env\n" and (root / "notes").read_text() == "KEY=notes\n"
    assert {change.path for change in undone.changes} == {".env", "notes"}
    assert (root / "b.local").exists() and undone.not_covered["b.local"] == "ignore rules leave it out"
    assert undone.kept["notes2/1.o"] == "it is gone and was not saved: ignore rules leave it out"
    for folder, _, names in os.walk(tmp_path / "store"):
        assert not stat.S_IMODE(Path(folder).stat().st_mode) & 0o077 or folder == str(tmp_path / "store")
        assert not any(stat.S_IMODE((Path(folder) / name).stat().st_mode) & 0o077 for name in names)


def test_what_was_ignored_once_is_not_removed_when_it_is_covered_later(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (root / ".gitignore").write_text("build/\n")
    (root / "build").mkdir()
    (root / "build" / "mine").write_text("mine")
    kept = checkpoints(root)
    kept.take("before")
    (root / ".gitignore").unlink()
    kept.take("after", then="person")
    undone = kept.undo()
    assert (root / "build" / "mine").read_text() == "mine"
    assert "build" in undone.kept


@pytest.mark.promise(
    "undo.md",
    "What stands in the way of a file and is too large to be stored is renamed, never removed.",
)
def test_what_cannot_be_saved_is_set_aside_not_lost(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    kept = checkpoints(root, CheckpointLimits(file_bytes=200_000))
    kept.take("before")
    (root / "a.txt").write_bytes(b"x" * 300_000)
    (root / "new").write_bytes(b"y" * 300_000)
    (root / "run.sh").unlink()
    os.mkfifo(root / "run.sh")
    undone = kept.undo()
    assert (root / "a.txt").read_text() == "one\n"
    assert (root / "run.sh").read_text() == "#!/bin/sh\n"
    assert (root / undone.aside["a.txt"]).stat().st_size == 300_000
    assert stat.S_ISFIFO((root / undone.aside["run.sh"]).stat().st_mode)
    assert "could not be saved" in undone.kept["new"]


@pytest.mark.skipif(sys.platform != "linux", reason="access lists of Linux")
def test_a_file_that_is_put_back_keeps_its_access_list(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    try:
        os.setxattr(root / "a.txt", "system.posix_acl_access", FOR_ONE_MORE)
    except OSError:
        pytest.skip("the file system has no access lists")
    kept = checkpoints(root)
    kept.take("before")
    for mode in (0o660, 0o600, 0o666):
        (root / "a.txt").write_text("two")
        (root / "a.txt").chmod(mode)
        kept.undo()
        assert (root / "a.txt").read_text() == "one\n"
        assert os.getxattr(root / "a.txt", "system.posix_acl_access") == FOR_ONE_MORE
        kept.take("before")


@pytest.mark.skipif(sys.platform != "linux", reason="access lists of Linux")
def test_a_list_that_a_run_gave_a_private_file_allows_nobody_more_after_an_undo(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (root / "a.txt").chmod(0o600)
    kept = checkpoints(root)
    kept.take("before")
    try:
        os.setxattr(root / "a.txt", "system.posix_acl_access", FOR_ONE_MORE)
    except OSError:
        pytest.skip("the file system has no access lists")
    kept.undo()
    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o600  # what a list allows at most is nothing


@each("name", ["a" * 255, "\N{SNOWMAN}" * 80])
def test_what_is_set_aside_has_a_name_that_the_system_takes(tmp_path: Path, name: str) -> None:
    root = workspace(tmp_path)
    (root / name).write_text("one")
    kept = checkpoints(root)
    kept.take("before")
    (root / name).unlink()
    os.mkfifo(root / name)
    undone = kept.undo()
    assert (root / undone.aside[name]).is_fifo()
    assert (root / name).read_text() == "one"


def test_a_file_that_grows_as_fast_as_it_is_read_costs_no_more_than_the_largest(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    kept = checkpoints(root, CheckpointLimits(file_bytes=1_000_000))
    (root / "log").write_bytes(b"x" * 900_000)
    ended = threading.Event()

    def write() -> None:
        with (root / "log").open("ab") as log:
            while not ended.is_set() and log.tell() < 300_000_000:
                log.write(b"x" * 4_000_000)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        kept.take("before")
    finally:
        ended.set()
        writer.join()
    copies = [copy.stat().st_size for copy in (kept.folder / "content").rglob("*") if copy.is_file()]
    assert max(copies) <= 1_000_001


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits the size of files in a child")
def test_what_could_not_be_saved_once_is_saved_when_it_can() -> None:
    import resource

    def work(place: Path) -> None:
        root = workspace(place)
        kept = checkpoints(root)
        kept.take("before", conversation=Conversation("r", 0))
        (root / "new").write_bytes(b"x" * 60_000)
        (root / "a.txt").write_bytes(b"x" * 60_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))  # as on a full disk
        kept.take("after", then="person")
        assert "cannot be copied" in str(kept.covers("new"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        time.sleep(2 * RECENT / 1e9)  # until the clock tells a later change apart
        Checkpoints(root, store=place / "store").take("again", then="person")
        assert kept.covers("new") is None
        undone = kept.undo()
        assert not (root / "new").exists() and (root / "a.txt").read_text() == "one\n", undone

    as_nobody(work)


@pytest.mark.parametrize("room", [0, 1])
def test_an_undo_for_which_the_disk_had_no_room_goes_on_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """It counted as done: there was nothing to undo any more."""
    root = workspace(tmp_path)
    kept = checkpoints(root)
    before = kept.take("before", conversation=Conversation("r", 0))
    for name in ("a.txt", "run.sh"):
        (root / name).write_text("changed\n")
    kept.take("after", then="person")
    real, left = ContentStore.write_to, [None] * room

    def write_to(contents: ContentStore, digest: str, fd: int) -> None:
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        left.pop()
        real(contents, digest, fd)

    with monkeypatch.context() as patch:
        patch.setattr(ContentStore, "write_to", write_to)
        undone = kept.undo()
    assert len(undone.kept) == 2 - room
    for again in (kept.preview_undo(), kept.undo()):
        assert (again.to, len(again.changes), again.kept) == (before, 2 - room, {})
    assert (root / "a.txt").read_text() == "one\n"
    assert (root / "run.sh").read_text() == "#!/bin/sh\n"
    with pytest.raises(CheckpointError, match="nothing to undo"):
        kept.undo()
    kept.redo()
    assert (root / "a.txt").read_text() == "changed\n"


@pytest.mark.promise("undo.md", "In a private folder of yours")
def test_the_store_lies_outside_and_belongs_to_its_user_alone(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    with pytest.raises(CheckpointError, match="outside of the workspace"):
        Checkpoints(root, store=root / "store")
    with pytest.raises(CheckpointError, match="a folder that exists"):
        Checkpoints(root / "nothing", store=tmp_path / "store")
    kept = checkpoints(root)
    kept.take("before")
    for folder, folders, files in os.walk(tmp_path / "store"):
        for name in folders + files:
            assert (Path(folder) / name).stat().st_mode & 0o077 == 0, name
    kept.folder.chmod(0o755)
    with pytest.raises(CheckpointError, match="read by others"):
        kept.take("again")


def test_old_checkpoints_are_removed_with_what_only_they_need(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    limits = CheckpointLimits(stored_bytes=400_000)
    for number in range(12):  # more than 400,000 bytes
        kept = checkpoints(root, limits)
        (root / "large").write_bytes(os.urandom(50_000))
        kept.take(f"{number}")
    listed = kept.list()
    assert 2 <= len(listed) < 12
    stored = sum(path.stat().st_size for path in (kept.folder / "content").rglob("*") if path.is_file())
    assert stored <= 450_000
    was = (root / "large").read_bytes()
    (root / "large").unlink()
    kept.undo()
    assert (root / "large").read_bytes() == was
    with pytest.raises(CheckpointError, match="there is no checkpoint 1; there are"):
        kept.undo(1)


def test_a_damaged_copy_is_never_written_back(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    kept = checkpoints(root)
    kept.take("before")
    for copy in (kept.folder / "content").rglob("*"):
        if copy.is_file() and copy.read_bytes() == b"one\n":
            copy.write_bytes(b"0ne\n")
    (root / "a.txt").write_text("changed")
    (root / "run.sh").unlink()
    undone = kept.undo()
    assert (root / "a.txt").read_text() == "changed"
    assert "damaged" in undone.kept["a.txt"]
    assert (root / "run.sh").exists()


def test_a_history_that_was_cut_off_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    checkpoints(root).take("before")
    file = checkpoints(root).folder / "checkpoints.jsonl"
    file.write_bytes(file.read_bytes() + b'{"format": 1, "id"')
    (root / "a.txt").write_text("changed")
    kept = checkpoints(root)
    assert kept.take("after").id == 2
    assert [one.id for one in checkpoints(root).list()] == [1, 2]


@pytest.mark.promise("undo.md", "An undo is refused while calls of a run are at work in the folder.")
def test_an_undo_is_refused_while_calls_are_at_work(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    working = checkpoints(root)
    working.begin_turn("turn 1: shell", Conversation("run", 1))
    (root / "a.txt").write_text("changed")
    for other in (working, checkpoints(root)):
        with pytest.raises(CheckpointError, match="calls of a run are at work"):
            other.undo()
    working.end_turn()
    assert len(checkpoints(root).undo().changes) == 1


def test_a_worker_that_a_turn_forked_is_not_at_work_after_it(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    working = checkpoints(root)
    working.begin_turn("turn 1: count", Conversation("run", 1))
    (root / "a.txt").write_text("changed")
    read, write = os.pipe()
    worker = os.fork()  # as a pool of processes does, whose workers stay
    if not worker:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        assert working.end_turn() is not None
        assert len(checkpoints(root).undo().changes) == 1
    finally:
        os.close(write)
        os.waitpid(worker, 0)
        os.close(read)


def as_nobody(work: Callable[[Path], object]) -> None:
    """Does the work in a child that is not root, in a folder of its own; root may do everything."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        codecs.lookup("ascii")  # the other user may have no right to load modules of Python itself
        birth_time(name)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if os.geteuid() == 0:
                    os.chown(place, 54322, 54322)
                    os.setgroups([])
                    os.setgid(54322)
                    os.setuid(54322)
                work(place)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


SHUT: dict[str, Callable[[Path], object]] = {
    "a folder": lambda root: (root / "src").chmod(0),
    "a folder in a folder": lambda root: ((root / "src/deep").chmod(0), (root / "src").chmod(0)),
    "a file": lambda root: (root / "a.txt").chmod(0),
    "a file that was changed": lambda root: ((root / "a.txt").write_text("two"), (root / "a.txt").chmod(0)),
    "in a read-only folder": lambda root: (
        (opened(root, "locked") / "file").unlink(),
        (root / "locked").chmod(0o555),
    ),
    "a folder that may be listed only": lambda root: ((root / "a.txt").unlink(), (root / "src").chmod(0o400)),
    "a folder that was changed": lambda root: (
        (root / "src/deep/b.bin").unlink(),
        (root / "src/deep").chmod(0o100),
    ),
    "a folder that may be listed only, above a change": lambda root: (
        (root / "src/deep/b.bin").unlink(),
        (root / "src").chmod(0o400),
    ),
    "the workspace": lambda root: ((root / "a.txt").unlink(), (root / "src").chmod(0), root.chmod(0)),
    "the workspace, which may be listed only": lambda root: ((root / "a.txt").unlink(), root.chmod(0o400)),
    "the workspace, which is read-only": lambda root: ((root / "new").write_text("x"), root.chmod(0o555)),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="changes its user in a child")
@pytest.mark.parametrize("name", SHUT)
def test_rights_that_a_command_took_away_do_not_stop_an_undo(name: str) -> None:
    def work(place: Path) -> None:
        root = workspace(place)
        before = state(root)
        kept = checkpoints(root)
        kept.take("before")
        SHUT[name](root)
        kept.take("after", then="person")
        undone = kept.undo()
        assert state(root) == before, undone
        assert undone.kept == {}
        kept.redo()
        kept.undo()
        assert state(root) == before

    as_nobody(work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="changes its user in a child")
@each("name", ["src", "src/deep/b.bin", "a.txt"])
def test_what_an_undo_puts_back_without_rights_can_be_taken_back_again(name: str) -> None:
    def work(place: Path) -> None:
        root = workspace(place)
        checkpoints(root).take("turn", conversation=Conversation("run", 1))
        (root / name).chmod(0)
        checkpoints(root).take("turn", conversation=Conversation("run", 2))
        (root / name).chmod(0o700)
        for path in ("src", "a.txt"):
            shutil.rmtree(root / path) if path == "src" else (root / path).unlink()
        checkpoints(root).take("after", then="person")
        after = state(root)
        checkpoints(root).undo(2)
        assert (root / name).stat().st_mode & 0o777 == 0
        checkpoints(root).redo()
        assert state(root) == after

    as_nobody(work)


@pytest.mark.promise("undo.md", "sockets, pipes and devices")
def test_a_hostile_tree_is_neither_left_nor_waited_for(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (root / "loop").symlink_to(".")
    (root / "up").symlink_to("..")
    os.mkfifo(root / "pipe")  # who opens it waits for a writer
    (root / "zero").symlink_to("/dev/zero")
    deep = root
    for _ in range(150):
        deep = deep / "x"
        deep.mkdir()
    (deep / "file").write_text("deep")
    (root / ".gitignore").write_text("*" * 500 + "[!a]" * 200 + "x\n" + "a*" * 400 + "b\n")
    (root / ("a" * 250)).write_text("matched in time")
    kept = checkpoints(root)
    before = state(root)
    started = time.process_time()
    kept.take("before")
    assert time.process_time() - started < 5
    assert any("folders deep" in reason for reason in kept.not_covered().values())
    (root / "src" / "deep" / "b.bin").unlink()
    (root / "src" / "deep").rmdir()
    (root / "src" / "deep").symlink_to("/etc")
    (root / "x" / "new").write_text("new")
    kept.undo()
    assert state(root) == before


@each("more", [0, 1, 2])
def test_a_new_file_in_a_full_tree_is_covered_only_where_an_undo_removes_it(
    tmp_path: Path, more: int
) -> None:
    root = workspace(tmp_path)
    kept = checkpoints(root, CheckpointLimits(tree_paths=len(state(root)) + more))
    kept.take("before")
    covered = []
    for name in "abcd":  # whatever order the folder is listed in
        covered.append(kept.covers(f"new-{name}") is None)
        (root / f"new-{name}").write_text("x")
        kept.take("turn")
    assert covered == [more > 0, more > 1, False, False]
    undone = kept.undo(1)
    there = [(root / f"new-{name}").exists() for name in "abcd"]
    assert not any(stays and said for stays, said in zip(there, covered, strict=True))
    assert not any(there) or "" in undone.not_covered


def test_a_tree_that_is_too_large_is_covered_in_part_and_says_so(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    limits = CheckpointLimits(tree_paths=30)
    kept = checkpoints(root, limits)
    kept.take("before")
    (root / "many").mkdir()
    for number in range(100):
        (root / "many" / f"{number}").write_text("x")
    kept.take("many more")
    assert "the workspace has more than 30 files" in kept.not_covered().values()
    (root / "a.txt").write_text("changed")  # known before, so it stays covered
    assert kept.covers("a.txt") is None
    assert kept.covers("many/new") == "the workspace has more than 30 files"
    undone = kept.undo(1)
    assert (root / "a.txt").read_text() == "one\n"
    assert 0 < len(list((root / "many").iterdir())) < 100
    assert "many" in undone.kept


def test_the_end_of_a_turn_hands_no_change_of_another_run_to_a_person(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    before = state(root)
    one, other = checkpoints(root), checkpoints(root)  # as two processes
    first = one.begin_turn("one", Conversation("one", 1))
    other.begin_turn("other", Conversation("other", 1))
    (root / "run.sh").write_text("of the other")
    assert other.end_turn() is None
    (root / "a.txt").write_text("of the one")
    assert one.end_turn() is not None
    (root / "mine").write_text("of a person")
    undone = checkpoints(root).undo(first.id if first else None)
    assert list(undone.kept) == ["mine"]
    (root / "mine").unlink()
    assert state(root) == before


def test_two_processes_share_the_checkpoints(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    one, other = checkpoints(root), checkpoints(root)
    one.take("one")
    (root / "a.txt").write_text("two")
    other.take("two")
    (root / "a.txt").write_text("three")
    assert one.take("three").id == 3
    assert [taken.label for taken in other.list()] == ["one", "two", "three"]
    shutil.rmtree(one.folder)  # somebody made room
    assert one.take("anew").id == 1
    (root / "a.txt").unlink()
    one.undo()
    assert (root / "a.txt").read_text() == "three"


def test_a_placeholder_that_goes_during_a_scan_was_never_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process removes it when its command ends; an undo made it again, as a folder of the user's own."""
    root = tmp_path / "ws"
    (root / ".envrc").mkdir(parents=True)
    os.utime(root / ".envrc", (TIME_OF_A_PLACEHOLDER, TIME_OF_A_PLACEHOLDER))
    enter = scan._Scan._enter

    def removed_first(self: scan._Scan, folder: scan._Folder, name: str, depth: int) -> scan._Folder | None:
        (root / name).rmdir()
        return enter(self, folder, name, depth)

    monkeypatch.setattr(scan._Scan, "_enter", removed_first)
    taken = checkpoints(root)
    taken.take("before")
    monkeypatch.undo()
    assert taken.not_covered() == {}
    (root / "new").touch()
    taken.undo()
    assert list(root.iterdir()) == []


def test_a_placeholder_that_is_never_covered_is_not_named(tmp_path: Path) -> None:
    """The undo said that `.git` is gone and was not saved, where none had ever been."""
    root = tmp_path / "ws"
    for path in (".git", ".idea"):
        (root / path).mkdir(parents=True)
        os.utime(root / path, (TIME_OF_A_PLACEHOLDER, TIME_OF_A_PLACEHOLDER))
    taken = checkpoints(root)
    taken.take("before")
    assert taken.not_covered() == {}
    (root / ".git").rmdir()
    (root / "new").touch()
    assert taken.undo().kept == {}
    (root / ".idea/mine").touch()
    taken.take("after")
    assert ".idea" in taken.not_covered()
