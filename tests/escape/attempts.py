# ruff: noqa: PTH101, PTH103, PTH104 - paths are text and descriptors here
"""Run inside a sandbox: every attempt to get out of it that we know, once. Prints JSON, name to how it went.

Nothing here imports toolcrib, and nothing harms: where success would, the door is opened and shut again. What an
attempt says of itself counts only where nothing can be seen of it outside; `driver` looks there.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from . import files, floods, kernel, processes, sockets
from .trying import (
    ESCAPED,
    TRIED,
    WS,
    write,
)

OF = {module.__name__ for module in (files, processes, sockets, kernel, floods)}

# -- what has to work


ABILITIES: dict[str, Callable[[], Any]] = {}


def ability(step: Callable[[], Any]) -> Callable[[], Any]:
    ABILITIES[step.__name__] = step
    return step


@ability
def write_in_workspace() -> None:
    write(WS + "/made")
    os.rename(WS + "/made", WS + "/kept")
    os.makedirs(WS + "/deep/deeper")
    os.chmod(WS + "/kept", 0o755)


@ability
def run_programs() -> None:
    for command in (["sh", "-c", "echo x"], [sys.executable, "-c", "print(1)"], ["git", "--version"]):
        subprocess.run(command, check=True, capture_output=True, timeout=20)


@ability
def substitute_processes() -> None:
    subprocess.run(["bash", "-c", "cat <(echo x) | grep -q x"], check=True, capture_output=True, timeout=20)


@ability
def commit() -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    write(WS + "/mine/file")
    for words in (["add", "file"], [*who, "commit", "-qm", "x"], ["status"], ["checkout", "-qb", "other"]):
        subprocess.run(["git", "-C", WS + "/mine", *words], check=True, capture_output=True, timeout=20)


@ability
def make_temporary_files() -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")


@ability
def use_threads_and_pairs() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    for sort in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        one, other = socket.socketpair(socket.AF_UNIX, sort)
        one.send(b"x")
        assert other.recv(1) == b"x"


@ability
def run_an_event_loop() -> None:
    async def main() -> int:
        return await (await asyncio.create_subprocess_exec("true")).wait()

    assert asyncio.run(main()) == 0


@ability
def spawn() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], os.environ)
    assert os.waitpid(pid, 0)[1] == 0


def tried(step: Callable[[], Any]) -> str:
    try:
        step()
    except OSError as problem:
        return f"refused: {errno.errorcode.get(problem.errno or 0, str(problem))}"
    except Exception as problem:
        return f"refused: {type(problem).__name__}: {str(problem)[:200]}"
    return ESCAPED


if __name__ == "__main__":
    results = {
        "abilities": {name: tried(step) for name, step in ABILITIES.items()},
        "attempts": {name: tried(step) for name, step in TRIED.items() if step.__module__ in OF},
    }
    sys.stdout.write("\n@@" + json.dumps(results) + "\n")
    sys.stdout.flush()
