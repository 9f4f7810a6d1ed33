"""What a call costs: from the arguments' JSON text to the text that the model is told."""

import asyncio
from typing import Any

import clock
import workload
from adapters import floor

KINDS = ("async", "sync", "nested")


async def _measured(path: Any, kind: str, bare: Any, raw: str, seconds: float) -> tuple[float, float]:
    """Microseconds a call, and those of the floor around it."""
    count = await clock.count_for(path, raw, seconds)
    floor_block = clock.block_sync if kind == "sync" else None

    async def of_floor(times: int) -> float:
        if floor_block is not None:
            return floor_block(bare, raw, times) / times
        return await clock.block(bare, raw, times) / times

    times = 2000 if kind == "nested" else 40_000
    times = max(200, int(times * seconds))
    before = await of_floor(times)
    spent = await _settled(path, raw, count)
    after = await of_floor(times)
    return spent / count * 1e6, (before + after) / 2 * 1e6


async def _settled(path: Any, raw: str, count: int) -> float:
    """A block of calls, and what listeners on other threads still had to do when it ended."""
    import time

    settle = getattr(path, "settle", None)
    if settle is None:
        return await clock.block(path, raw, count)
    settle()
    begun = time.process_time()
    await clock.block(path, raw, count)
    settle()
    return time.process_time() - begun


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    seconds = 0.1 if options["quick"] else 0.4
    samples = []
    for kind in KINDS:
        function, raw = workload.KINDS[kind]
        bare = floor.CALLS[kind](function)
        for label, path in adapter.calls(function, kind).items():
            spent, least = asyncio.run(_measured(path, kind, bare, raw, seconds))
            figures = {"µs": spent, "floor µs": least, "× floor": spent / least}
            row = "async, subscriber" if "subscriber" in label else kind
            samples.append({"row": row, "path": label, "figures": figures})
    return samples
