"""Ten thousand calls at once of a tool that waits 10 ms: CPU and memory."""

import asyncio
import gc
import resource
import sys
import time
from pathlib import Path
from typing import Any

import workload
from adapters import floor

TITLE = "Ten thousand calls at once"
ABOUT = (
    "10,000 concurrent calls of a tool that sleeps 10 ms, in a fresh process: CPU seconds of all threads, "
    "and how far the peak of resident memory rose."
)
ROUNDS = 5
CALLS = 10_000


def _peak() -> float:
    """The process's own peak of resident memory in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text("ascii", "replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024 * 1024 if sys.platform == "darwin" else 1024
    )


async def _all(call: Any, raw: str, count: int) -> None:
    await asyncio.gather(*(call(raw) for _ in range(count)))


async def _measured(call: Any, raw: str) -> tuple[float, float]:
    await _all(call, raw, 20)
    gc.collect()
    memory, begun = _peak(), time.process_time()
    await _all(call, raw, CALLS)
    return time.process_time() - begun, _peak() - memory


def _samples(path: str, spent: float, memory: float, **more: Any) -> list[dict[str, Any]]:
    return [
        {"row": "10,000 calls of 10 ms", "path": path, "figures": {"CPU s": spent}, **more},
        {"row": "memory of 10,000 calls", "path": path, "figures": {"peak MB more": memory}, **more},
    ]


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    function, raw = workload.KINDS["slow"]
    paths = list(adapter.calls(function, "slow").items())
    if not paths:
        return []
    floor_too = adapter.NAME == "toolcrib"
    chosen = options.get("path")
    if chosen is not None:
        label, call = (
            ("validate, await, to_json", floor.CALLS["slow"](function)) if chosen < 0 else paths[chosen]
        )
        more = {"peer": "floor", "name": "floor"} if chosen < 0 else {}
        return _samples(label, *asyncio.run(_measured(call, raw)), **more)
    samples: list[dict[str, Any]] = []
    for number in range(-1 if floor_too else 0, len(paths)):  # memory has one peak a process
        samples += _in_a_fresh_process({**options, "path": number})
    return samples


def _in_a_fresh_process(options: dict[str, Any]) -> list[dict[str, Any]]:
    import json
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "samples.json"
        command = [sys.executable, *sys.argv[:3], json.dumps(options), str(output)]
        subprocess.run(command, check=True, capture_output=True)
        return json.loads(output.read_text("utf-8"))["samples"]
