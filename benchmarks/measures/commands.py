"""What it costs to run `true` in a sandbox, and what rules that deny paths add to a call of the shell tool."""

import statistics
from itertools import chain
from typing import Any

from adapters import own


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    samples = []
    took: dict[tuple[str, str], list[float]] = {}
    rounds = 10 if options["quick"] else 40
    for row, path, milliseconds in chain(own.commands(rounds), own.denied_paths(rounds)):
        took.setdefault((row, path), []).append(milliseconds)
    for (row, path), times in took.items():
        figures = {"median ms on the clock": statistics.median(times), "least ms on the clock": min(times)}
        samples.append({"row": row, "path": path, "figures": figures})
    return samples
