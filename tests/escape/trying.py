# ruff: noqa: PTH123 - paths are text and descriptors here
"""Shared by all attempts: what was given to them, and the table that they are put into.

Nothing here imports toolcrib; it runs inside a sandbox, next to the attempts.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from collections.abc import Callable
from typing import Any

ESCAPED = "escaped"
GIVEN: dict[str, Any] = json.loads(sys.argv[1])
WS, OUT, HOME = GIVEN["ws"], GIVEN["outside"], GIVEN["home"]
PARENT, VICTIM = GIVEN["parent"], GIVEN["victim"]
X86 = os.uname().machine == "x86_64"
TRIED: dict[str, Callable[[], Any]] = {}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def attempt(step: Callable[[], Any]) -> Callable[[], Any]:
    TRIED[step.__name__] = step
    return step


def call(x86: int, arm: int, *arguments: Any) -> int:
    got = libc.syscall(ctypes.c_long(x86 if X86 else arm), *arguments)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(got)


def write(path: str, text: str = "x", mode: str = "w") -> None:
    with open(path, mode) as file:
        file.write(text)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(100_000)


def in_a_child(step: Callable[[], Any]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            step()
            os._exit(0)
        except OSError as problem:
            os._exit(problem.errno or 1)
        except BaseException:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "in a child")


def holds(path: str, text: str) -> None:
    if text.encode() not in read(path):
        raise OSError(errno.ENODATA, "not there")
