"""CPU time of pieces of work: of the whole process, all threads."""

import gc
import time
from collections.abc import Awaitable, Callable
from typing import Any

AsyncCall = Callable[[str], Awaitable[Any]]


async def block(call: AsyncCall, raw: str, count: int) -> float:
    """CPU seconds of `count` calls, one after the other."""
    gc.collect()
    begun = time.process_time()
    for _ in range(count):
        await call(raw)
    return time.process_time() - begun


def block_sync(call: Callable[[str], Any], raw: str, count: int) -> float:
    """The same for a floor that awaits nothing."""
    gc.collect()
    begun = time.process_time()
    for _ in range(count):
        call(raw)
    return time.process_time() - begun


async def count_for(call: AsyncCall, raw: str, seconds: float) -> int:
    """How many calls take about that much CPU; warms the call up on the way."""
    await block(call, raw, 3)  # connections, caches
    count = 1
    while True:
        spent = await block(call, raw, count)
        if spent >= seconds / 4:
            return max(1, int(count * seconds / spent))
        count *= 2 if spent else 8


def best_of(work: Callable[[], Any], times: int) -> float:
    """The least CPU seconds of several runs of the same work."""
    best = float("inf")
    for _ in range(times):
        gc.collect()
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best
