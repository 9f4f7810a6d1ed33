"""What a soak counts: one result for each call, events without a gap, and what the process holds."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolcrib import ToolResult
from toolcrib.call import CallKey
from toolcrib.errors import ErrorCode
from toolcrib.events import CallFinished, Event, Notice, RunFinished
from toolcrib.sink import EventLog

OVER = "the batch is over"
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8


class Events(EventLog):
    """Counts events as they come, and remembers nothing of a run that is over."""

    def __init__(self) -> None:
        super().__init__()
        self.put = self.count
        self.wrong: list[str] = []
        self.finished: Counter[str] = Counter()
        self.runs = 0
        self._next: dict[str, int] = {}
        self._ended: dict[str, set[CallKey]] = {}

    def count(self, event: Event) -> None:
        run = event.run
        if event.seq != self._next.get(run, 0):
            self.wrong.append(f"{run}: {event.kind} has number {event.seq}, not {self._next.get(run, 0)}")
        self._next[run] = event.seq + 1
        if isinstance(event, CallFinished):
            if event.key in self._ended.setdefault(run, set()):
                self.wrong.append(f"{event.key} has finished twice")
            self._ended[run].add(event.key)
            if event.code != ErrorCode.UNKNOWN_TOOL:  # a name that a model made up has no statistics
                self.finished[event.tool] += 1
            self._drop(str(event.key))
        if isinstance(event, RunFinished):
            self.runs += 1  # a second one of the same run would have a wrong number
        if isinstance(event, RunFinished) or (isinstance(event, Notice) and event.message == OVER):
            self._drop(run)

    def _drop(self, run: str) -> None:
        self._next.pop(run, None)
        self._ended.pop(run, None)

    @property
    def open_runs(self) -> int:
        return len(self._next)


@dataclass
class Calls:
    """Counts the calls that began and their results."""

    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def ended(
        self, kind: str, recorded: list[ToolResult], result: ToolResult | None, codes: tuple[Any, ...]
    ) -> None:
        """A call has ended: `result` is what its caller was given, None where the caller was cancelled."""
        with self.lock:
            self.count += 1
            self.kinds[kind] += 1
            if len(recorded) != 1:
                self.wrong.append(f"{kind} has {len(recorded)} results")
            elif result is not None and recorded[0] is not result:
                self.wrong.append(f"{kind} was given another result than the one that was recorded")
            elif recorded[0].code not in codes:
                self.wrong.append(f"{kind} gave {recorded[0].code}: {recorded[0].text[:200]}")


class Held:
    """What a process holds at a moment."""

    def __init__(self) -> None:
        folder = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")
        self.threads = Counter(thread.name for thread in threading.enumerate())
        self.descriptors = len(list(folder.iterdir()))
        self.temporary = {path.name for path in Path(tempfile.gettempdir()).iterdir()}

    def beyond(self, before: Held) -> dict[str, Any]:
        """What there is now and was not there before."""
        more = {
            "threads": list((self.threads - before.threads).elements()),
            "descriptors": max(0, self.descriptors - before.descriptors),
            "files": sorted(self.temporary - before.temporary),
        }
        return {name: what for name, what in more.items() if what}


@dataclass(frozen=True)
class Memory:
    """How much memory is in use after so many calls."""

    calls: int
    blocks: int
    resident: int  # KiB; 0 where the system does not say

    @classmethod
    def after(cls, calls: int) -> Memory:
        gc.collect()
        statm = Path("/proc/self/statm")
        pages = int(statm.read_text().split()[1]) if statm.exists() else 0
        return cls(calls, sys.getallocatedblocks(), pages * os.sysconf("SC_PAGE_SIZE") // 1024)


def growth(measured: list[Memory], what: str) -> float:
    """By how much it grew from the first to the last measurement, on the line of least squares through all of them."""
    points = [(one.calls, getattr(one, what)) for one in measured]
    middle_x, middle_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    return slope * (points[-1][0] - points[0][0])


def steady_allocator() -> None:
    """Let glibc give large texts back at once, and keep one heap for all threads: else what is free looks used."""
    if sys.platform == "linux":
        try:
            mallopt = ctypes.CDLL("libc.so.6").mallopt
        except (OSError, AttributeError):  # another C library
            return
        mallopt(M_MMAP_THRESHOLD, 131_072)
        mallopt(M_ARENA_MAX, 1)
