"""Milliseconds for a confined command, by back end, beside the same command unconfined.

    python benchmarks/sandboxed_command.py [ROUNDS]

From before `launch` until after `close` of `/bin/true`: started by the launcher that is kept ("kept"), as the tools do,
and by a launcher of its own ("own"), as `subprocess` does. The back ends take turns, so that a busy machine is unkind
to all of them alike. The least is nearest to what a quiet machine gives.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from toolcrib.command.launch.output import BoundedOutput
from toolcrib.command.launch.process import run_process
from toolcrib.command.sandbox import Bubblewrap, Landlock, Level, NoSandbox, Sandbox, environment
from toolcrib.command.sandbox.choose import ORDER, why_not_working

ROWS: dict[str, Callable[[Path], Sandbox]] = {
    "none": lambda ws: NoSandbox(),
    "bubblewrap": Bubblewrap,
    "bubblewrap, read_only": lambda ws: Bubblewrap(ws, Level.of("read_only")),
    "bubblewrap, protected=[]": lambda ws: Bubblewrap(ws, protected=[]),
    "bubblewrap, landlock=True": lambda ws: Bubblewrap(ws, landlock=True),
    "landlock": Landlock,
}


async def kept(sandbox: Sandbox, workspace: str) -> float:
    began = time.perf_counter()
    with sandbox.launch(["/bin/true"], cwd=workspace, env=environment(os.environ)) as launch:
        outcome = await run_process(
            launch.argv,
            cwd=workspace,
            env=launch.env,
            timeout=60,
            output=BoundedOutput(1000),
            pass_fds=launch.pass_fds,
            on_start=launch.started,
        )
        if outcome.code != 0:
            raise SystemExit(f"{sandbox.report().backend}: exit code {outcome.code}")
    return (time.perf_counter() - began) * 1e3


def own(sandbox: Sandbox, workspace: str) -> float:
    began = time.perf_counter()
    with sandbox.launch(["/bin/true"], cwd=workspace, env=environment(os.environ)) as launch:
        process = subprocess.Popen(launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds)
        launch.started()
        if process.wait() != 0:
            raise SystemExit(f"{sandbox.report().backend}: exit code {process.returncode}")
    return (time.perf_counter() - began) * 1e3


async def main(rounds: int) -> None:
    works = {row.name for row in ORDER if sys.platform in row.platforms and not why_not_working(row)} | {
        "none"
    }
    with tempfile.TemporaryDirectory() as place:
        made = {name: make(Path(place)) for name, make in ROWS.items() if name.partition(",")[0] in works}
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in made}
        for _ in range(rounds + 1):
            for name, sandbox in made.items():
                took[name].append((await kept(sandbox, place), own(sandbox, place)))
    print("| | least, kept | median, kept | least, own | median, own |\n| --- | --- | --- | --- | --- |")
    for name, times in took.items():
        figures = [
            f"{number:.1f}"
            for ms in zip(*times[1:], strict=True)
            for number in (min(ms), statistics.median(ms))
        ]
        print(f"| {name} | {' | '.join(figures)} |")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
