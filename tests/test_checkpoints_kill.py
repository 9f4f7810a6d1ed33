"""A process that is killed while it takes a checkpoint, undoes or redoes: every file is old or new, and the rest follows."""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_checkpoints import checkpoints, everything_gone, folder_to_file, opened, state, workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="forks"),
]

STEPS = frozenset(
    {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "os.truncate"}
)


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Does the work in a child that is killed just before its n-th step on files; whether it came to that."""
    child = os.fork()
    if child == 0:
        left = step

        def count(event: str, _: object) -> None:
            nonlocal left
            if event in STEPS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            sys.addaudithook(count)
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def by_the_run(root: Path) -> None:
    (root / "a.txt").write_text("by the run\n" * 30_000)  # several blocks, so that a half would show
    (root / "src" / "deep" / "b.bin").write_bytes(b"x" * 150_000)
    (root / "run.sh").chmod(0o600)
    (root / "new").mkdir()
    (root / "new" / "made").write_text("made")
    (opened(root, "locked") / "file").unlink()
    (root / "locked").chmod(0o555)
    (root / "link").unlink()
    (root / "link").mkdir()
    (root / "empty").rmdir()


@pytest.mark.promise(
    "undo.md", "An undo that was interrupted is finished by the next use of the checkpoints."
)
@pytest.mark.promise("undo.md", "A file is replaced in one step, so that a crash leaves it old or new.")
@pytest.mark.parametrize("changes", [by_the_run, folder_to_file, everything_gone])
@pytest.mark.parametrize("way", ["undo", "redo"])
def test_an_undo_that_is_killed_leaves_old_or_new_and_is_finished(
    tmp_path: Path, changes: Callable[[Path], None], way: str
) -> None:
    for step in range(0, 400, 2):
        place = tmp_path / str(step)
        place.mkdir()
        root = workspace(place)
        old = state(root)
        checkpoints(root).take("before")
        changes(root)
        checkpoints(root).take("after", then="person")
        new = state(root)
        if way == "redo":
            checkpoints(root).undo()
            old, new = new, old
        killed = killed_at(step, lambda root=root: getattr(checkpoints(root), way)())  # type: ignore[misc]
        for path, now in contents(root).items():
            assert now in (contents_in(old, path), contents_in(new, path)), f"{path} at step {step}"
        begun = (checkpoints(root).folder / "undo.json").exists()
        killed_at(step // 2, lambda root=root: checkpoints(root).take("the next run"))  # type: ignore[misc]
        checkpoints(root).take("the run after that")  # finishes it
        assert not (checkpoints(root).folder / "undo.json").exists()
        assert state(root) == (old if begun or not killed else new), step
        if not killed:
            break
        (checkpoints(root).undo if way == "redo" and begun else checkpoints(root).list)()
        shutil.rmtree(place)
    else:
        raise AssertionError("it never ended")
    assert step > 20


def contents(root: Path) -> dict[str, object]:
    """The contents of the files, without those that an undo makes on the way."""
    now = state(root)
    return {
        path: contents_in(now, path)
        for path in now
        if contents_in(now, path) and ".toolcrib-undo-" not in path
    }


def contents_in(found: dict[str, object], path: str) -> object:
    """The content of a file; modes of files and folders on the way may differ for a moment."""
    one = found.get(path)
    return one[2] if isinstance(one, tuple) and one[0] == "file" else None


def test_a_checkpoint_that_is_killed_costs_nothing_that_was_stored(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    old = state(root)
    checkpoints(root).take("before")
    by_the_run(root)
    new = state(root)
    for step in range(400):
        if not killed_at(step, lambda: checkpoints(root).take("after", then="person")):
            break
        assert state(root) == new
        assert checkpoints(root).list()[0].label == "before"
    checkpoints(root).undo(1)
    assert state(root) == old
