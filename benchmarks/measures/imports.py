"""What an import costs: CPU of the statement in a fresh process, bytecode compiled."""

import statistics
import subprocess
import sys
from typing import Any

CODE = "import time; begun = time.process_time(); {}; print(time.process_time() - begun)"


def _once(statement: str) -> float:
    # -I: the environment's own packages and nothing of ours; PYTHONDONTWRITEBYTECODE is not heeded
    code = [sys.executable, "-I", "-c", CODE.format(statement)]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1]) * 1e3


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    times = 3 if options["quick"] else 5
    statements = {"import pydantic": "import pydantic", **adapter.IMPORTS}
    spent: dict[str, list[float]] = {label: [] for label in statements}
    for number in range(times + 1):
        for label, statement in statements.items():
            milliseconds = _once(statement)
            if number:  # the first one may have compiled
                spent[label].append(milliseconds)
    least = statistics.median(spent.pop("import pydantic"))
    return [
        {
            "row": label,
            "path": statements[label],
            "figures": {"ms": statistics.median(values), "× pydantic": statistics.median(values) / least},
        }
        for label, values in spent.items()
    ]
