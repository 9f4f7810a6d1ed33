"""What a turn of the whole agent loop costs besides the model: one tool call a turn, a model that is a script."""

import asyncio
import gc
import statistics
import time
from itertools import pairwise
from typing import Any

import workload
from adapters import floor

TURNS = 210


def _spans(run: Any, marks: list[float]) -> list[float]:
    gc.collect()
    marks.clear()
    asyncio.run(run())
    return [(after - before) * 1e3 for before, after in pairwise(marks)]


def _samples(path: str, runs: list[list[float]], **who: str) -> list[dict[str, Any]]:
    early = statistics.median(span for spans in runs for span in spans[1:21])
    late = statistics.median(span for spans in runs for span in spans[189:209])
    shared = {"path": path, **who}
    return [
        {"row": "turn 2", "figures": {"ms a turn": early}, **shared},
        {"row": "turn 200", "figures": {"× growth": late / early, "ms a turn": late}, **shared},
    ]


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    if not hasattr(adapter, "loop"):
        return []
    function, raw = workload.KINDS["async"]
    marks: list[float] = []

    def mark() -> None:
        marks.append(time.process_time())

    run = adapter.loop(function, TURNS, mark)
    first = _spans(run, marks)
    if len(first) < 209:
        raise AssertionError(f"the loop ended after {len(first)} turns")
    times = 1 if sum(first) > 500 else 3 if options["quick"] else 5
    samples = _samples("agent", [_spans(run, marks) for _ in range(times)])
    if adapter.NAME == "toolcrib":

        async def bare() -> None:
            await floor.bare_loop(function, TURNS, raw, mark)

        samples += _samples(
            "a list of messages", [_spans(bare, marks) for _ in range(5)], peer="floor", name="floor"
        )
    return samples
