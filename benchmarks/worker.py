"""Runs one measure for one peer, inside that peer's environment: `worker.py PEER MEASURE OPTIONS OUTPUT`."""

import importlib
import importlib.metadata
import json
import sys
from pathlib import Path


def versions(adapter: object) -> dict[str, str]:
    """The releases that were measured, and the floor's."""
    names = [*getattr(adapter, "PACKAGES", ()), "pydantic"]
    return {name: importlib.metadata.version(name) for name in names}


def main() -> None:
    peer, measure, options, output = sys.argv[1:]
    adapter = importlib.import_module(f"adapters.{peer}")
    samples = importlib.import_module(f"measures.{measure}").measure(adapter, json.loads(options))
    result = {"name": adapter.NAME, "samples": samples, "versions": versions(adapter)}
    Path(output).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()
