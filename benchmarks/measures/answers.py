"""What it costs to have a streamed answer's calls complete: from the bytes of its events to names and arguments."""

import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import answer_streams
from answer_streams import ANSWERS, WIRES, Frame

Read = Callable[[list[Frame], Callable[[], None]], answer_streams.Calls]


class TooLong(Exception):
    """Said by `step` when the time is over."""


class Clock:
    """Stops a reader when its time is over."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.steps = 0
        self.begun = time.process_time()

    def step(self) -> None:
        self.steps += 1
        if not self.steps & 63 and time.process_time() - self.begun > self.limit:
            raise TooLong


class Counted(list[Frame]):
    """Frames that know how many of them were had."""

    had = 0

    def __iter__(self) -> Iterator[Frame]:
        self.had = 0
        for frame in super().__iter__():
            self.had += 1
            yield frame


def _plain(calls: answer_streams.Calls) -> answer_streams.Calls:
    return [(name, json.loads(given) if isinstance(given, str) else given) for name, given in calls]


def _timed(read: Read, frames: list[Frame], limit: float) -> tuple[float, float, Any]:
    """CPU seconds, the share of the events that was had, and the calls; None where the time was over before."""
    counted = Counted(frames)
    gc.collect()
    clock = Clock(limit)
    try:
        calls = read(counted, clock.step)
    except TooLong:
        calls = None
    return time.process_time() - clock.begun, counted.had / len(frames), calls


def _floored(frames: list[Frame], times: int) -> float:
    gc.collect()
    begun = time.process_time()
    for _ in range(times):
        answer_streams.floor(frames)
    return (time.process_time() - begun) / times


def _sample(read: Read, frames: list[Frame], expected: answer_streams.Calls, limit: float) -> dict[str, Any]:
    times = max(1, 3_000 // len(frames))
    before = _floored(frames, times)
    spent, share, calls = _timed(read, frames, limit)
    if calls is None:
        spent /= share**2
    elif _plain(calls) != expected:
        raise AssertionError("the calls are not those that were sent")
    elif spent < limit / 10:
        spent = statistics.median(_timed(read, frames, limit)[0] for _ in range(min(times * 3, 15)))
    least = (before + _floored(frames, times)) / 2
    figures = {"floor ms": least * 1e3, "ms": spent * 1e3, "× floor": spent / least}
    return {"figures": figures, "guessed": ["ms", "× floor"] if calls is None else []}


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    limit = 2.0 if options["quick"] else 8.0
    samples = []
    readers = adapter.answers() if hasattr(adapter, "answers") else {}
    for wire, framed in WIRES.items():
        warm = framed(ANSWERS["4 calls"])
        for label, answer in ANSWERS.items():
            frames = framed(answer)
            for path, read in readers.get(wire, {}).items():
                _timed(read, warm, limit)
                row = f"{wire}, {label}"
                samples.append({"row": row, "path": path, **_sample(read, frames, answer.calls, limit)})
    return samples
