"""Programs that only print their words or compare two texts, answered here: to start one takes a thousand times longer.

Only what a shell's own command and the program of that name do alike is answered.
"""

from __future__ import annotations

import errno
import os
import re
import select
import signal
import stat
from collections.abc import Callable, Mapping, Sequence

MAX_TEXT = 4_096  # bytes, which a pipe takes in one write if it has room at all (PIPE_BUF)
INTEGER = re.compile(r"-?[0-9]{1,18}")
NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda one, other: one == other,
    "-ne": lambda one, other: one != other,
    "-lt": lambda one, other: one < other,
    "-le": lambda one, other: one <= other,
    "-gt": lambda one, other: one > other,
    "-ge": lambda one, other: one >= other,
}


def answer(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int, bytes] | None:
    """The status and the output of a command; None for one that has to be started."""
    name, words = argv[0], argv[1:]
    if name in ("true", "false") and not words:
        return int(name == "false"), b""
    if name == "echo" and "POSIXLY_CORRECT" not in env:
        return _echo(words)
    if name == "test":
        return _test(words)
    return None


def _echo(words: Sequence[str]) -> tuple[int, bytes] | None:
    end = "\n"
    if words[:1] == ["-n"]:
        words, end = words[1:], ""
    if words and words[0].startswith("-"):
        return None  # another option, or a text that looks like one
    text = (" ".join(words) + end).encode("utf-8", "surrogateescape")
    return (0, text) if len(text) <= MAX_TEXT else None


def _test(words: Sequence[str]) -> tuple[int, bytes] | None:
    """Texts and whole numbers. Files are looked at by the program, which sees what the sandbox shows."""
    holds: bool | None = None
    if len(words) == 2 and words[0] in ("-n", "-z"):
        holds = (words[1] == "") is (words[0] == "-z")
    elif len(words) == 3 and words[1] in ("=", "!="):
        holds = (words[0] == words[2]) is (words[1] == "=")
    elif len(words) == 3 and words[1] in NUMBERS and all(map(INTEGER.fullmatch, (words[0], words[2]))):
        holds = NUMBERS[words[1]](int(words[0]), int(words[2]))
    return None if holds is None else (int(not holds), b"")


async def write(fd: int, text: bytes) -> int:
    """Write what a program would print; returns its status. Raises OSError where it could not be written."""
    import asyncio

    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        room = select.poll()
        room.register(fd, select.POLLOUT)
        while not room.poll(0):  # noqa: ASYNC110 - no event tells of room in a pipe that is shared
            await asyncio.sleep(0.01)
    try:
        if text and os.write(fd, text) != len(text):
            raise OSError(errno.ENOSPC, "No space left on device")
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    return 0
