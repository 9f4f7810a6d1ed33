"""What it costs to look at a model's arguments after every chunk of them, against keeping the bytes at all.

    python benchmarks/jsonstream_speed.py [folder that holds toolcrib/]

1 MB of arguments in 16-byte chunks, the value asked for after each. The floor is an object of the same face,
``feed`` and ``value``, that does ``bytearray += chunk``; the loop without any call is printed beside it. CPU
time, the best of several rounds in which the contestants take turns. Needs the standard library alone, so
that any interpreter can run it.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SIZE = 1_000_000
CHUNK = 16
ROUNDS = 7
SOURCE = Path(__file__).parents[1] / "src"


def write_arguments(size: int) -> bytes:
    """One long text, as write_file takes it."""
    line = "    def method_{0}(self, value):\n        return value + {0}  # as the caller expects\n"
    lines = "".join(line.format(number) for number in range(size // 80))
    return json.dumps({"path": "src/module.py", "content": lines}).encode()


def edits_arguments(size: int) -> bytes:
    """Many small objects, as an editing tool takes them."""
    edits = [
        {
            "old_text": f"total_{number}(order)",
            "new_text": f"sum_{number}(order, 1)",
            "line": number,
            "all": True,
        }
        for number in range(size // 90)
    ]
    return json.dumps({"path": "src/module.py", "edits": edits}).encode()


class Appended:
    """The floor: keeps what it is fed, and shows it."""

    def __init__(self) -> None:
        self._text = bytearray()

    @property
    def value(self) -> bytearray:
        return self._text

    def feed(self, chunk: bytes) -> None:
        self._text += chunk


def watched(make: Callable[[], Any], chunks: Sequence[bytes]) -> float:
    stream = make()
    start = time.process_time()
    for chunk in chunks:
        stream.feed(chunk)
        stream.value  # noqa: B018 - asking is what is measured
    return time.process_time() - start


def bare(chunks: Sequence[bytes]) -> float:
    text = bytearray()
    start = time.process_time()
    for chunk in chunks:
        text += chunk
    return time.process_time() - start


def main() -> None:
    sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else str(SOURCE))
    stream = importlib.import_module("toolcrib.jsonstream").JsonStream
    print(f"Python {sys.version.split()[0]}, {SIZE // 1000} kB in {CHUNK}-byte chunks")
    print("           floor      value only        with events       floor without calls")
    for name, text in (("write", write_arguments(SIZE)), ("edits", edits_arguments(SIZE))):
        chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
        rounds: list[tuple[float, ...]] = []
        for _ in range(ROUNDS):
            gc.collect()
            rounds.append(
                (
                    watched(Appended, chunks),
                    watched(lambda: stream(events=False), chunks),
                    watched(stream, chunks),
                    bare(chunks),
                )
            )
        floor, value, events, loop = (min(times) for times in zip(*rounds, strict=True))
        print(
            f"{name:6} {floor * 1e3:6.1f} ms {value * 1e3:6.1f} ms ={value / floor:5.1f}x "
            f"{events * 1e3:6.1f} ms ={events / floor:5.1f}x {loop * 1e3:6.1f} ms ="
            f"{value / loop:5.1f}x, {events / loop:5.1f}x"
        )


if __name__ == "__main__":
    main()
