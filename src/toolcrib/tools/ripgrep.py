"""ripgrep behind the workspace's walls: it is given text, opens no file and reads no settings.

It says in which texts a match of an expression may be. What is shown is found in those by Python's `re`, so a search
has the same results with ripgrep and without it.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import IO

from toolcrib.tools.regex_search import TICK, TooSlow

# Never from PATH, which may begin in the workspace, where a model writes programs.
FOLDERS = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin:/run/current-system/sw/bin"
OPTIONS = (
    "--no-config", "--text", "--encoding=none", "--no-mmap", "--threads=1", "--color=never", "--no-heading",
    "--no-filename", "--no-line-number", "--byte-offset", "--only-matching", "--replace=",
)  # fmt: skip


def find_ripgrep() -> str | None:
    """Where ripgrep is installed on this system; None where it is not."""
    return shutil.which("rg", path=FOLDERS)


def texts_with_matches(
    program: str, expression: str, texts: Sequence[bytes], deadline: float, check: Callable[[], None]
) -> list[int] | None:
    """The indices of the UTF-8 texts in which an expression is found on a line.

    None where ripgrep does not take the expression or cannot run. Raises TooSlow when the deadline passes, and what
    `check` raises.
    """
    starts: list[int] = []
    parts: list[bytes] = []
    size = 0
    for text in texts:
        starts.append(size)
        text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
        parts += (text, b"\n")
        size += len(text) + 1
    output = _run([program, *OPTIONS, f"--regexp={expression}", "-"], b"".join(parts), deadline, check)
    if output is None:
        return None
    found = {bisect_right(starts, int(line[:-1])) - 1 for line in output.splitlines()}
    return sorted(found)


def _run(argv: list[str], data: bytes, deadline: float, check: Callable[[], None]) -> bytes | None:
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        return None
    # Not by `communicate`, which forgets the rest of the input when a timeout passes.
    stdin, child.stdin = child.stdin, None
    assert stdin is not None
    writer = threading.Thread(target=_write, args=(stdin, data), name="toolcrib ripgrep", daemon=True)
    with child:
        try:
            writer.start()
        except RuntimeError:  # the system has no thread left
            stdin.close()
            child.kill()
            return None
        try:
            while True:
                check()
                if time.monotonic() > deadline:
                    raise TooSlow
                try:
                    output, _ = child.communicate(timeout=TICK)
                except subprocess.TimeoutExpired:
                    continue
                return output if child.returncode in (0, 1) else None
        finally:
            if child.poll() is None:
                child.kill()
            writer.join()


def _write(stdin: IO[bytes], data: bytes) -> None:
    try:
        with stdin:
            stdin.write(data)
    except OSError:  # the child has ended, or was killed at the deadline
        pass
