"""Milliseconds to store a folder of many files and to put it back: checkpoints, and git on the same folder.

python benchmarks/snapshots.py [files]

CPU time of the process and of the ones that it starts, the median of several tries; wall time in brackets. git starts a
process for each, a checkpoint of a run does not.
"""

from __future__ import annotations

import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from toolcrib.checkpoints import CheckpointLimits, Checkpoints

TRIES = 7
COUNT = itertools.count()


def cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def millis(do: Callable[[], object], before: Callable[[], object] = lambda: None, tries: int = TRIES) -> str:
    """What one try costs, after `before`."""
    found = []
    for _ in range(tries):
        before()
        begun, used = time.perf_counter(), cpu()
        do()
        found.append((cpu() - used, time.perf_counter() - begun))
    spent, passed = (statistics.median(column) * 1000 for column in zip(*found, strict=True))
    return f"{spent:10.1f} ({passed:.0f})"


def make(root: Path, files: int) -> None:
    for number in range(files):
        folder = root / f"package{number // 400}" / f"module{number // 20 % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number % 20}.py").write_text(f"print({number})\n" * 60)
    (root / ".gitignore").write_text("*.o\nbuild/\n*.log\n/dist\n__pycache__/\n.cache\n")


def change(root: Path, files: int) -> None:
    for path in itertools.islice(root.glob("package*/module*/file0.py"), files):
        path.write_text(f"print({next(COUNT)})\n")


def git(root: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=n", "-c", "user.email=n@localhost", "-c", "gc.auto=0", *arguments]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(place: Path, files: int) -> None:
    ours, theirs = place / "ours", place / "theirs"
    make(ours, files)
    make(theirs, files)
    git(theirs, "init", "-q")
    limits = CheckpointLimits(tree_paths=4 * files)
    kept = Checkpoints(ours, store=place / "store", limits=limits)
    rows = [
        (
            "first",
            millis(lambda: kept.take("first"), tries=1),
            millis(lambda: git(theirs, "add", "-A"), tries=1),
        )
    ]
    git(theirs, "commit", "-qm", "first")
    time.sleep(0.2)
    kept.take("settled")

    def stored() -> None:
        git(theirs, "add", "-A")
        git(theirs, "write-tree")

    def put_back() -> None:
        git(theirs, "stash", "-u")

    def steady(changed: int) -> tuple[str, str, str]:
        own = millis(lambda: kept.take("again"), lambda: change(ours, changed))
        return f"{changed} changed", own, millis(stored, lambda: change(theirs, changed))

    rows += map(steady, (0, 1, 100))
    rows.append(
        (
            "0 changed, new process's first",
            millis(lambda: Checkpoints(ours, store=place / "store", limits=limits).take("new")),
            "",
        )
    )
    git(theirs, "commit", "-qm", "second")

    def taken() -> None:
        time.sleep(0.1)
        kept.take("before", then="person")
        kept.take("before")
        change(ours, 100)

    rows.append(("100 put back", millis(kept.undo, taken), millis(put_back, lambda: change(theirs, 100))))
    print(f"{files:,} files{'':24}{'checkpoint':>17}{'git add, write-tree, or stash':>34}")
    for name, one, other in rows:
        print(f"{name:34}{one:>18}{other:>34}")
    size = sum(path.stat().st_size for path in (place / "store").rglob("*") if path.is_file())
    print(
        f"stored: {size / 1e6:.1f} MB of {sum(p.stat().st_size for p in ours.rglob('*') if p.is_file()) / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(os.path.realpath(folder)), int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
