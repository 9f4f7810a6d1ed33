"""No descriptor left: what was opened is closed, nothing weaker runs, and it works again when there are some."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_runs import BACKENDS, backend
from toolcrib.command.sandbox import NoSandbox, Sandbox
from toolcrib.context import Context
from toolcrib.tools import Shell, ShellParams, Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")

LIMIT = 256


def in_fork(work: Callable[[], Any]) -> Any:
    """What a fork of this process returns, so that the limits of this one stay."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            os.write(writing, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return json.loads(said)


def open_descriptors() -> list[str]:
    found = []
    for path in Path("/proc/self/fd").iterdir():
        try:
            found.append(f"{path.name}: {path.readlink()}")
        except FileNotFoundError:  # the one that lists them
            continue
    return found


def with_spare(count: int, work: Callable[[], Any]) -> Any:
    """Does the work while no more than so many descriptors can be opened at once."""
    filling: list[int] = []
    try:
        while True:
            filling.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range(count):
        os.close(filling.pop())
    try:
        return work()
    finally:
        for fd in filling:
            os.close(fd)


def attempts(run: Callable[[], Any], spares: range) -> dict[str, Any]:
    """What a run gives with few descriptors, and which it left open; and what it gives with enough of them."""
    import resource

    first = run()
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    before = open_descriptors()
    results, left = [], []
    for count in spares:
        results.append(with_spare(count, run))
        left.append(sorted({*open_descriptors()} - {*before}))
    return {"first": first, "results": results, "left": left, "last": run()}


@pytest.mark.parametrize("command", ["echo a | cat", "x=a; echo $x"], ids=["plan", "script"])
@pytest.mark.parametrize("kind", [*BACKENDS, "none"])
def test_a_command_that_cannot_be_started_leaves_no_descriptor(
    kind: str, command: str, tmp_path: Path
) -> None:
    place = tmp_path / "ws"
    place.mkdir()
    sandbox: Sandbox = NoSandbox() if kind == "none" else backend(kind)(place)

    def work() -> dict[str, Any]:
        loop = asyncio.new_event_loop()
        shell = Shell(Workspace(place), grace=0.1, sandbox=sandbox)

        def run() -> str:
            try:
                return str(loop.run_until_complete(shell.execute(ShellParams(command=command), Context())))
            except Exception as problem:
                return f"{type(problem).__name__}: {problem}"

        return attempts(run, range(0, 46, 5 if kind != "none" else 1))

    said = in_fork(work)
    assert said["first"] == said["last"] == "a"
    assert said["left"] == [[] for _ in said["left"]]
    assert any("Too many open files" in words for words in said["results"])
    assert said["results"][-1] == "a"
