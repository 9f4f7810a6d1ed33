"""CPU of whole processes, with what they start: for measures of commands beside programs."""

import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path


def cpu() -> float:
    """CPU seconds of this process and of its children that have ended, user and system."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """What the work costs: of CPU, and on the clock."""
    begun, used = time.perf_counter(), cpu()
    work()
    return (cpu() - used) * 1e3, (time.perf_counter() - begun) * 1e3


def run(argv: list[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
    """Runs a program to its end, unseen. Raises CalledProcessError where it fails."""
    subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
