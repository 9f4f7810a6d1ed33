# ruff: noqa: PTH110, PTH108, PTH123 - paths are text and descriptors here
"""Attempts to outlive the command, and to take more than was given."""

from __future__ import annotations

import errno
import os
import signal

from .trying import (
    GIVEN,
    WS,
    attempt,
)

# -- outliving, flooding


# Only once the command itself is gone; not for ever.
# The command's first process ends a few milliseconds before the supervisor has ended the others and says so: what still
# runs in between has not outlived the command.
AFTER_ALL = f"for i in $(seq 400); do kill -0 {os.getpid()} || break; sleep 0.1; done; sleep 0.5; echo x >'{WS}/survived'"


@attempt
def outlive_the_command() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            os.execve("/bin/sh", ["sh", "-c", AFTER_ALL], {"PATH": "/usr/bin:/bin"})
        os._exit(0)
    os.wait()


@attempt
def start_very_many_processes() -> None:
    started = []
    try:
        for _ in range(GIVEN["processes"] * 3):
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            started.append(pid)
    finally:
        for pid in started:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@attempt
def take_very_much_memory() -> None:
    bytearray(GIVEN["memory"] * 2)


@attempt
def fill_shared_memory() -> None:
    path = "/dev/shm/full-" + GIVEN["token"]
    try:
        with open(path, "wb", buffering=0) as file:
            for _ in range(GIVEN["scratch"] // (1 << 20) + 1):
                if file.write(bytes(1 << 20)) < 1 << 20:
                    raise OSError(errno.ENOSPC, "full")
    finally:
        if os.path.exists(path):
            os.unlink(path)


@attempt
def write_a_very_large_file() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open(WS + "/large", "wb") as file:
        file.seek(GIVEN["file_size"] + 10)
        file.write(b"x")
        file.flush()
    os.unlink(WS + "/large")
