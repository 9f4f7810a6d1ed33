"""What it costs to know the arguments so far after every chunk of them."""

import gc
import json
import time
from collections.abc import Callable
from typing import Any

import workload

CHUNK = 16
SIZES = {"10 kB": 10_000, "1 MB": 1_000_000}


class Appended:
    """The floor: keeps what it is fed, and shows it."""

    def __init__(self) -> None:
        self.value = bytearray()

    def feed(self, chunk: bytes) -> None:
        self.value += chunk


def _floor() -> Callable[[bytes], Any]:
    kept = Appended()

    def step(chunk: bytes) -> Any:
        kept.feed(chunk)
        return kept.value

    return step


def _timed(
    make: Callable[[], Callable[[Any], Any]], chunks: list[Any], limit: float
) -> tuple[float, int, Any]:
    """CPU seconds, how many chunks were read, and the last value."""
    gc.collect()
    step, value = make(), None
    begun = time.process_time()
    for start in range(0, len(chunks), 64):
        for chunk in chunks[start : start + 64]:
            value = step(chunk)
        if time.process_time() - begun > limit:
            break
    return time.process_time() - begun, min(start + 64, len(chunks)), value


def _sample(make: Any, text: str, limit: float) -> dict[str, Any]:
    chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
    raw = [chunk.encode() for chunk in chunks]
    before = min(_timed(_floor, raw, limit)[0] for _ in range(3))
    spent, done, value = _timed(make, chunks, limit)
    if done == len(chunks):
        if value != json.loads(text):
            raise AssertionError("the last value is not the whole")
        if spent < limit / 10:
            spent = min(spent, *(_timed(make, chunks, limit)[0] for _ in range(4)))
    after = min(_timed(_floor, raw, limit)[0] for _ in range(3))
    guessed = done < len(chunks)
    whole = spent * (len(chunks) / done) ** 2
    figures = {"ms": whole * 1e3, "× append": whole / ((before + after) / 2)}
    return {"figures": figures, "guessed": list(figures) if guessed else []}


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    samples = []
    limit = 2.0 if options["quick"] else 8.0
    paths = adapter.stream() if hasattr(adapter, "stream") else {}
    for kind in ("write", "edits"):
        for label, size in SIZES.items():
            text = workload.stream_payload(kind, size)
            for path, make in paths.items():
                samples.append({"row": f"{kind}, {label}", "path": path, **_sample(make, text, limit)})
    return samples
