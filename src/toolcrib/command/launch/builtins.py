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

from toolcrib.command.launch.plan_streams import Streams, complain

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


def answer(argv: Sequence[str], env: Mapping[str, str], streams: Streams) -> tuple[int, bytes] | None:
    """The status and the output of a command; None for one that has to be started."""
    if streams[1] is None:
        return None  # the program has words of its own for a closed output
    name, words = argv[0], argv[1:]
    if name in ("true", "false", "command") and not words:
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


async def run(name: str, status: int, text: bytes, streams: Streams) -> int:
    """Write what a program would print, and return its status."""
    import asyncio

    out = streams[1]
    assert out is not None
    if stat.S_ISFIFO(os.fstat(out).st_mode):
        room = select.poll()
        room.register(out, select.POLLOUT)
        while not room.poll(0):  # noqa: ASYNC110 - no event tells of room in a pipe that is shared
            await asyncio.sleep(0.01)
    try:
        if text and os.write(out, text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except OSError as failed:
        await complain(streams[2], f"{name}: write error: {failed.strerror}")
        return 1
    await asyncio.sleep(0)  # a long loop must leave room for others
    return status
