"""What is left when the process is killed with SIGKILL, which no code of ours can see: nothing that runs, and no lie."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sandbox_runs import BACKENDS, backend
from toolcrib.command.launch.process import run_process
from toolcrib.command.sandbox import NoSandbox, Sandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="where the system has no /proc, survivors cannot be found"
    ),
]
ROUNDS = 100
START = 0.08  # seconds in which a command is certainly started
GONE_WITHIN = 5.0


def in_fork(work: Callable[[], None]) -> int:
    """The id of a fork of this process that does the work and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return pid


def killed_after(pid: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def named_in_command_lines(tag: str) -> list[int]:
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and tag.encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def sandbox_of(kind: str, place: Path) -> Sandbox:
    return NoSandbox() if kind == "none" else backend(kind)(place)


@pytest.mark.parametrize("kind", [*BACKENDS, "none"])
def test_no_command_survives_the_process_that_was_starting_it(kind: str, tmp_path: Path) -> None:
    sandbox, tag = sandbox_of(kind, tmp_path), secrets.token_hex(8)
    sandbox.launch(
        ["true"], cwd=str(tmp_path), env={}
    ).close()  # what is tried once in a process is tried here
    script = ["/bin/sh", "-c", f"sleep 60; : {tag}"]
    env = {"PATH": os.environ["PATH"]}
    chance = random.Random(7)

    def work() -> None:
        launch = sandbox.launch(script, cwd=str(tmp_path), env=env)
        os.write(ready, b"r")
        running = run_process(
            launch.argv, cwd=str(tmp_path), env=launch.env, timeout=60, keep=100,
            pass_fds=launch.pass_fds, on_start=launch.started,
        )  # fmt: skip
        asyncio.run(running)

    begun, ready = os.pipe()
    for _ in range(ROUNDS):
        pid = in_fork(work)
        assert os.read(begun, 1) == b"r"
        killed_after(pid, chance.random() * START)
    os.close(begun)
    os.close(ready)
    deadline = time.monotonic() + GONE_WITHIN
    while (left := named_in_command_lines(tag)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
