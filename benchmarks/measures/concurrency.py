"""Ten thousand calls at once of a tool that waits 10 ms: CPU and memory."""

import asyncio
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import workload
from adapters import floor

CALLS = 10_000
FLOOR = "validate, await, to_json"


def _resident(field: str) -> float:
    """The process's resident memory in MB: "VmRSS" now, "VmHWM" at its peak (elsewhere the peak for both)."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text("ascii", "replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024 * 1024 if sys.platform == "darwin" else 1024
    )


async def _all(call: Any, raw: str, count: int) -> None:
    await asyncio.gather(*(call(raw) for _ in range(count)))


async def _measured(call: Any, raw: str, *, collector: bool) -> tuple[float, float]:
    await _all(call, raw, 20)
    gc.collect()
    if not collector:
        gc.disable()  # whether a full pass falls into the block depends on what else was imported
    memory, begun = _resident("VmRSS"), time.process_time()
    await _all(call, raw, CALLS)
    return time.process_time() - begun, _resident("VmHWM") - memory


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    function, raw = workload.KINDS["slow"]
    paths: dict[str, Any] = adapter.calls(function, "slow") if hasattr(adapter, "calls") else {}
    if "path" in options:
        call = floor.CALLS["slow"](function) if options["path"] == FLOOR else paths[options["path"]]
        found = asyncio.run(_measured(call, raw, collector=options["collector"]))
        return [dict(zip(("seconds", "memory"), found, strict=True))]
    if not paths:
        return []
    samples = []
    for collector in (False, True):
        shared = {**options, "collector": collector}
        bare = _in_a_fresh_process({**shared, "path": FLOOR})
        if adapter.NAME == "toolcrib":
            samples += _samples(FLOOR, bare, bare, collector, peer="floor", name="floor")
        for path in paths:
            samples += _samples(path, _in_a_fresh_process({**shared, "path": path}), bare, collector)
    return samples


def _samples(
    path: str, found: dict[str, float], bare: dict[str, float], collector: bool, **who: str
) -> list[dict[str, Any]]:
    ratio = {"× floor": found["seconds"] / bare["seconds"], "CPU s": found["seconds"]}
    memory = {"peak MB more": found["memory"]}
    how = ", collector on" if collector else ""
    return [
        {"row": f"10,000 calls of 10 ms{how}", "path": path, "figures": ratio, **who},
        {"row": f"memory of 10,000 calls{how}", "path": path, "figures": memory, **who},
    ]


def _in_a_fresh_process(options: dict[str, Any]) -> dict[str, float]:
    """Memory has one peak a process, so that every path gets its own."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "samples.json"
        command = [sys.executable, *sys.argv[:3], json.dumps(options), str(output)]
        subprocess.run(command, check=True, capture_output=True)
        found: dict[str, float] = json.loads(output.read_text("utf-8"))["samples"][0]
        return found
