"""What it costs to declare a tool, and to use it for the first time."""

import gc
import tempfile
import time
from typing import Any

import workload
from adapters import floor


def _each(work: Any, items: list[Any]) -> tuple[float, list[Any]]:
    gc.collect()
    begun = time.process_time()
    made = [work(item) for item in items]
    return (time.process_time() - begun) / len(items) * 1e6, made


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    if not hasattr(adapter, "define"):
        return []
    with tempfile.TemporaryDirectory() as folder:
        functions = workload.many_functions(310 if options["quick"] else 1010, folder)
        first, rest = functions[:10], functions[10:]
        for function in first:  # what is loaded and cached once is not a tool's
            adapter.use(adapter.define(function))
            floor.define_and_use(function, workload.ARGUMENTS)
        least, _ = _each(lambda function: floor.define_and_use(function, workload.ARGUMENTS), rest)
        defined, tools = _each(adapter.define, rest)
        used, _ = _each(adapter.use, tools)
    rows = {"definition": defined, "first use": used, "both": defined + used}
    return [
        {"row": row, "path": "", "figures": {"floor µs": least, "× floor": spent / least, "µs": spent}}
        for row, spent in rows.items()
    ]
