"""How long a policy of rules takes to decide, by the number of rules."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from adapters import own

COUNTS = (2, 20, 200)


def _micros(work: Any, times: int) -> float:
    for _ in range(20):
        work()
    found = []
    for _ in range(9):
        begun = time.process_time()
        for _ in range(times):
            work()
        found.append((time.process_time() - begun) / times * 1e6)
    return statistics.median(found)


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    times = 100 if options["quick"] else 500
    found: dict[tuple[str, str], dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        (root / "src/deep/down").mkdir(parents=True)
        (root / "src/deep/down/module.py").write_text("x")
        for count in COUNTS:
            for row, path, work in own.decisions(root, count):
                found.setdefault((row, path), {})[f"µs, {count} rules"] = _micros(work, times)
    return [{"row": row, "path": path, "figures": figures} for (row, path), figures in found.items()]
