"""What a call costs: from the arguments' JSON text to the text that the model is told."""

import asyncio
import gc
import time
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import clock
import workload
from adapters import floor

BLOCKS = 8  # short ones, so that other work on the machine falls on a block and the floor beside it alike
LISTENED = {"subscriber": "async, subscriber", "events()": "async, events()"}
KINDS = ("async", "sync", "nested", "file")


class Figures(NamedTuple):
    """Microseconds of a call and of the floor, and their ratio: medians of the blocks."""

    spent: float
    floor: float
    ratio: float


async def _measured(path: Any, kind: str, bare: Any, raw: str, seconds: float) -> Figures:
    """Blocks of calls, each between two blocks of the floor."""

    async def of_floor(times: int) -> float:
        whole = clock.block_sync(bare, raw, times) if kind == "sync" else await clock.block(bare, raw, times)
        return whole / times * 1e6

    count = await clock.count_for(path, raw, seconds / BLOCKS)
    times = int({"nested": 2_000, "file": 10_000}.get(kind, 60_000) * seconds / BLOCKS)
    await of_floor(times)
    floors, paths = [await of_floor(times)], []
    for _ in range(BLOCKS):
        paths.append(await _settled(path, raw, count) / count * 1e6)
        floors.append(await of_floor(times))
    around = [(before + after) / 2 for before, after in pairwise(floors)]
    ratios = [spent / least for spent, least in zip(paths, around, strict=True)]
    return Figures(median(paths), median(floors), median(ratios))


async def _settled(path: Any, raw: str, count: int) -> float:
    """A block of calls, and what listeners still had to do when it ended."""
    settle, drained = getattr(path, "settle", None), getattr(path, "drained", None)
    if settle is None and drained is None:
        return await clock.block(path, raw, count)
    if settle is not None:
        settle()
    gc.collect()
    begun = time.process_time()
    for _ in range(count):
        await path(raw)
    if settle is not None:
        settle()
    else:
        await drained()
    return time.process_time() - begun


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    seconds = 0.25 if options["quick"] else 0.6
    samples: list[dict[str, Any]] = []
    for kind in KINDS:
        function, raw = workload.KINDS[kind]
        bare = floor.CALLS[kind](function)
        for label, path in (adapter.calls(function, kind) if hasattr(adapter, "calls") else {}).items():
            found = asyncio.run(_measured(path, kind, bare, raw, seconds))
            figures = {"µs": found.spent, "floor µs": found.floor, "× floor": found.ratio}
            row = next((row for word, row in LISTENED.items() if word in label), kind)
            samples.append({"row": row, "path": label, "figures": figures})
    return samples
