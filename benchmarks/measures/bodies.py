"""What it costs to build the body of a request from a conversation, which an agent does each turn."""

import gc
import json
import statistics
import time
from typing import Any

TURNS = (10, 100, 1_000)
IN_A_ROW = 5


def _milliseconds(make: Any, times: int) -> float:
    spent = []
    for _ in range(times):
        gc.collect()
        begun = time.process_time()
        for _ in range(IN_A_ROW):
            make()
        spent.append((time.process_time() - begun) * 1e3 / IN_A_ROW)
    return statistics.median(spent)


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    if not hasattr(adapter, "bodies"):
        return []
    samples = []
    for path, bodies_of in adapter.bodies().items():
        for turns in TURNS:
            make = bodies_of(turns)
            assert len(json.dumps(make(), default=str)) > turns * 100
            figures = {"ms": _milliseconds(make, 3 if options["quick"] else 9)}
            samples.append({"row": f"after {turns:,} turns", "path": path, "figures": figures})
    return samples
