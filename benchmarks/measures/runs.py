"""What a run costs where many go on at once in one event loop: a scripted model, one flat async tool, five turns."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import clock
import workload

COUNTS = (50, 200, 1_000)
TURNS = 5


def _cost(run: Callable[[], Awaitable[None]], count: int, times: int) -> float:
    """The least CPU milliseconds of one of so many runs."""

    async def all_at_once() -> None:
        await asyncio.gather(*(run() for _ in range(count)))

    return clock.best_of(lambda: asyncio.run(all_at_once()), times) / count * 1e3


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    if not hasattr(adapter, "loop"):
        return []
    function, _ = workload.KINDS["async"]
    ways = {"runs": adapter.loop(function, TURNS, lambda: None)}
    if hasattr(adapter, "streamed"):
        ways["streams"] = adapter.streamed(function, TURNS)
    samples = []
    for way, run in ways.items():
        asyncio.run(run())
        for count in COUNTS:
            times = 1 if options["quick"] else 2 if count == COUNTS[-1] else 4
            figures = {"ms a run": _cost(run, count, times)}
            samples.append({"row": f"{count:,} {way}", "path": "agent", "figures": figures})
    return samples
