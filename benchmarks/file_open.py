"""Microseconds to open a file: bare, checked first as others do it (which races), and confined as the tools do it.

python benchmarks/file_open.py [rounds]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from toolcrib.access import Access
from toolcrib.tools import Workspace
from toolcrib.tools.confined_open import open_beneath, real_beneath

DEPTHS = (1, 3, 8)
READ = os.O_RDONLY


def micros(do: Callable[[], object], rounds: int) -> float:
    """The median over batches of the time that one takes."""
    for _ in range(50):
        do()
    found: list[float] = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(rounds):
            do()
        found.append((time.perf_counter() - start) / rounds * 1e6)
    return statistics.median(found)


def checked(root: str, path: str) -> int:
    """Resolve, compare, open: what a rename between the steps walks around."""
    real = os.path.realpath(os.path.join(root, path))  # noqa: PTH118 - measured as it is written elsewhere
    if os.path.commonpath([root, real]) != root:
        raise PermissionError(path)
    return os.open(real, READ)


def permitted(access: Access) -> bool:
    return True


def measure(root: str, rounds: int) -> None:
    paths = ["/".join([*(f"d{level}" for level in range(depth - 1)), "file.txt"]) for depth in DEPTHS]
    for path in paths:
        whole = Path(root, path)
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text("x")
    Path(root, "link").symlink_to("d0")
    linked = [path.replace("d0", "link", 1) for path in paths]
    kernel, portable = Workspace(root), Workspace(root, portable=True)
    fd, prefixes = kernel.root.fd(), kernel.root.prefixes
    rows: list[tuple[str, Callable[[str], object]]] = [
        ("os.open, nothing looked at", lambda path: os.close(os.open(f"{root}/{path}", READ))),
        ("realpath, compared, os.open (races)", lambda path: os.close(checked(root, path))),
        ("confined: openat2", lambda path: os.close(open_beneath(fd, prefixes, path, READ))),
        (
            "confined: openat2, no link",
            lambda path: os.close(open_beneath(fd, prefixes, path, READ, follow=False)),
        ),
        ("confined: a walk", lambda path: os.close(open_beneath(fd, prefixes, path, READ, portable=True))),
        ("where a name leads: openat2", lambda path: real_beneath(fd, prefixes, path)),
        ("where a name leads: a walk", lambda path: real_beneath(fd, prefixes, path, portable=True)),
        ("a tool's open_file: openat2", lambda path: os.close(kernel.open_file(path, permitted)[0])),
        ("a tool's open_file: a walk", lambda path: os.close(portable.open_file(path, permitted)[0])),
    ]
    print(f"{'depth':42}" + "".join(f"{depth:>8}" for depth in DEPTHS))
    for name, do in rows:
        print(f"{name:42}" + "".join(f"{micros(lambda p=path, d=do: d(p), rounds):8.1f}" for path in paths))
    do = rows[-2][1]
    row = "".join(f"{micros(lambda p=path: do(p), rounds):8.1f}" for path in linked[1:])
    print(f"{'a tool' + chr(39) + 's open_file: through a link':42}{'':8}{row}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        measure(os.path.realpath(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
