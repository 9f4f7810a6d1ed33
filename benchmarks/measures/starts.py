"""What whole processes cost: from start to the first answered call, and of the command line."""

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from measures.processes import milliseconds, run

WAIT = "import asyncio; asyncio.run(asyncio.to_thread(int))"
MODEL = "import pydantic; pydantic.create_model('P', a=int).model_validate_json('{\"a\": 1}')"
SCRIPT = """
turns:
  - text: I read it.
    calls:
      - name: read_file
        arguments: {path: README.md}
  - Done.
"""
FIRST = "import to first answered call"
TOOLCRIB = ["-m", "toolcrib"]
COMMANDS = {
    "toolcrib tools list": [*TOOLCRIB, "tools", "list"],
    "toolcrib tools call": [*TOOLCRIB, "tools", "call", "read_file", "--path", "README.md"],
    "toolcrib run, two scripted turns": [*TOOLCRIB, "run", "Go.", "--model", "scripted:script.yaml"],
}
PROGRAMS = Path(__file__).parents[1] / "first_calls"  # a program a peer, whose docstring names its way
FLOORS = {"asyncio with a thread": ["-c", WAIT], "asyncio and Pydantic": ["-c", f"{WAIT}; {MODEL}"]}


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[tuple[str, str, list[str], dict[str, str]]] = []
    if adapter.NAME == "toolcrib":
        floor = {"peer": "floor", "name": "floor"}
        rows += [(FIRST, path, argv, floor) for path, argv in FLOORS.items()]
        rows += [(row, "", argv, {}) for row, argv in COMMANDS.items()]
    program = PROGRAMS / f"{adapter.__name__.rpartition('.')[2]}.py"
    if program.exists():
        label = program.read_text("utf-8").partition('"""')[2].partition('."""')[0]
        rows.append((FIRST, label, ["-P", str(program)], {}))  # -P: a peer has its program's name
    took: list[list[float]] = [[] for _ in rows]
    with tempfile.TemporaryDirectory() as place:
        folder, home = Path(place, "work"), Path(place, "home")
        for made in (folder, home):
            made.mkdir()
        (folder / "README.md").write_text("hello\n")
        (folder / "script.yaml").write_text(SCRIPT)
        for number in range(4 if options["quick"] else 11):
            for spent, (_, _, argv, _) in zip(took, rows, strict=True):
                used, _ = milliseconds(lambda a=argv: run([sys.executable, *a], folder, {"HOME": str(home)}))
                if number:  # the first one may have compiled
                    spent.append(used)
    return [
        {"row": row, "path": path, "figures": {"least ms": min(spent), "ms": statistics.median(spent)}, **who}
        for spent, (row, path, _, who) in zip(took, rows, strict=True)
    ]
