"""What it costs to store a folder of many files and to put it back: checkpoints, and git on the same folder."""

import itertools
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adapters import own

from measures.processes import milliseconds, run

FILES = 10_000
GIT = {"peer": "git", "name": "git"}
COUNT = itertools.count()


def _grown(root: Path) -> None:
    for number in range(FILES):
        folder = root / f"package{number // 400}" / f"module{number // 20 % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number % 20}.py").write_text(f"print({number})\n" * 60)
    (root / ".gitignore").write_text("*.o\nbuild/\n*.log\n/dist\n__pycache__/\n.cache\n")


def _change(root: Path, files: int) -> None:
    for path in itertools.islice(root.glob("package*/module*/file0.py"), files):
        path.write_text(f"print({next(COUNT)})\n")


def _git(root: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=n", "-c", "user.email=n@localhost", "-c", "gc.auto=0", *arguments]
    run(command, root)


class Git:
    """The same as checkpoints, by git; it starts a process for each."""

    path = "add, write-tree; stash"
    who = GIT

    def __init__(self, root: Path) -> None:
        self.root = root
        _git(root, "init", "-q")

    def first(self) -> None:
        _git(self.root, "add", "-A")

    def settle(self) -> None:
        _git(self.root, "commit", "--allow-empty", "-qam", "stored")

    def store(self) -> None:
        _git(self.root, "add", "-A")
        _git(self.root, "write-tree")

    before_putting_back = settle

    def put_back(self) -> None:
        _git(self.root, "stash", "-u")


def _rows(side: Any, tries: int) -> list[tuple[str, float, float]]:
    """Row, CPU milliseconds and those on the clock."""

    def taken(work: Callable[[], object], before: Callable[[], object], times: int) -> tuple[float, float]:
        found = []
        for _ in range(times):
            before()
            found.append(milliseconds(work))
        used, clock = (statistics.median(column) for column in zip(*found, strict=True))
        return used, clock

    rows = [("the first of a folder", *taken(side.first, lambda: None, 1))]
    side.settle()
    time.sleep(0.2)
    side.store()
    for changed in (0, 100):
        done = taken(side.store, lambda count=changed: _change(side.root, count), tries)
        rows.append((f"{changed} files changed", *done))
    side.settle()

    def before_putting_back() -> None:
        time.sleep(0.05)
        side.before_putting_back()
        _change(side.root, 100)

    rows.append(("put 100 files back", *taken(side.put_back, before_putting_back, tries)))
    return rows


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    samples = []
    with tempfile.TemporaryDirectory() as place:
        for make in (own.Snapshots, *([Git] if shutil.which("git") else [])):
            root = Path(place).resolve() / make.path.partition(",")[0]
            root.mkdir()
            _grown(root)
            for row, used, clock in _rows(make(root), 3 if options["quick"] else 7):
                figures = {"ms on the clock": clock, "ms": used}
                samples.append({"row": row, "path": make.path, "figures": figures, **make.who})
    return samples
