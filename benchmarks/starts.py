"""CPU milliseconds of whole processes: from start to the first answered call, and of the command line.

    python benchmarks/starts.py [ROUNDS]

User and system time of the process and of what it started, bytecode compiled before. The rows take turns, so that a
busy machine is unkind to all of them alike. The floors are what asyncio, Pydantic's core and Pydantic cost alone.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WAIT = "import asyncio; asyncio.run(asyncio.to_thread(int))"
CORE = (
    "from pydantic_core import SchemaValidator, core_schema as s; "
    "SchemaValidator(s.typed_dict_schema({'a': s.typed_dict_field(s.int_schema())})).validate_json('{\"a\": 1}')"
)
MODEL = "import pydantic; pydantic.create_model('P', a=int).model_validate_json('{\"a\": 1}')"
CALL = """
import asyncio
from toolcrib import Effect, Toolbox, tool

@tool(effect=Effect.READ, secrets=())
def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b

assert asyncio.run(Toolbox([add]).call("add", {"a": 1, "b": 2})).text == "3"
"""
SCRIPT = """
turns:
  - text: I read it.
    calls:
      - name: read_file
        arguments: {path: README.md}
  - Done.
"""
TOOLCRIB = ["-m", "toolcrib"]
ROWS = {
    "floor: asyncio": ["-c", WAIT],
    "floor: asyncio, Pydantic's core": ["-c", f"{WAIT}; {CORE}"],
    "floor: asyncio, Pydantic": ["-c", f"{WAIT}; {MODEL}"],
    "import to first answered call": ["-c", CALL],
    "toolcrib tools list": [*TOOLCRIB, "tools", "list"],
    "toolcrib tools call": [*TOOLCRIB, "tools", "call", "read_file", "--path", "README.md"],
    "toolcrib run, two scripted turns": [*TOOLCRIB, "run", "Go.", "--model", "scripted:script.yaml"],
}


def once(arguments: list[str], folder: Path) -> float:
    """CPU milliseconds of one process with its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def main(rounds: int) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "README.md").write_text("hello\n")
        (folder / "script.yaml").write_text(SCRIPT)
        for arguments in ROWS.values():  # compiles what is not compiled yet
            once(arguments, folder)
        took: dict[str, list[float]] = {row: [] for row in ROWS}
        for _ in range(rounds):
            for row, arguments in ROWS.items():
                took[row].append(once(arguments, folder))
    print("| | least | median |\n| --- | --- | --- |")
    for row, times in took.items():
        print(f"| {row} | {min(times):.0f} | {statistics.median(times):.0f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
