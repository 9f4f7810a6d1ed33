"""What a call costs where secrets are masked and where each call is noted in a log on the disk."""

import asyncio
import gc
import os
import tempfile
import time
from typing import Any

import workload
from adapters import floor

ALONE = 1_000  # fewer are over before the processor's caches are filled again, which the collector empties
AT_ONCE = 1_000
FIRST = 200  # calls that are not measured, as in `calls`


async def _alone(call: Any, raw: str) -> tuple[float, float]:
    """Microseconds of CPU and of the clock for each of many calls, one after the other."""
    for _ in range(FIRST):
        await call(raw)
    gc.collect()
    clock, begun = time.perf_counter(), time.process_time()
    for _ in range(ALONE):
        await call(raw)
    return (time.process_time() - begun) / ALONE * 1e6, (time.perf_counter() - clock) / ALONE * 1e6


async def _at_once(call: Any, raw: str) -> tuple[float, float]:
    await asyncio.gather(*(call(raw) for _ in range(FIRST)))
    gc.collect()
    clock, begun = time.perf_counter(), time.process_time()
    await asyncio.gather(*(call(raw) for _ in range(AT_ONCE)))
    return (time.process_time() - begun) / AT_ONCE * 1e6, (time.perf_counter() - clock) / AT_ONCE * 1e6


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    if not hasattr(adapter, "guarded"):
        return []
    function, raw = workload.KINDS["async"]
    samples = []
    for row, call in adapter.guarded(function).items():
        for how, work in (
            ("one after the other", _alone(call, raw)),
            (f"{AT_ONCE:,} at once", _at_once(call, raw)),
        ):
            spent, clock = asyncio.run(work)
            figures = {"µs on the clock": clock, "µs": spent}
            samples.append({"row": f"{row}, {how}", "path": "Toolbox.call", "figures": figures})
    return samples + [_of_disk(path, work) for path, work in floor.LOGS.items()]


def _of_disk(path: str, work: Any) -> dict[str, Any]:
    """What the disk takes alone for what the log does one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.open(f"{folder}/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            asyncio.run(work(file, FIRST))
            clock, begun = time.perf_counter(), time.process_time()
            asyncio.run(work(file, ALONE))
            spent = (time.process_time() - begun) / ALONE * 1e6
            figures = {"µs on the clock": (time.perf_counter() - clock) / ALONE * 1e6, "µs": spent}
        finally:
            os.close(file)
    row = "audit log, one after the other"
    return {"row": row, "path": path, "figures": figures, "peer": "floor", "name": "floor"}
