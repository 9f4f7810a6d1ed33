"""A coding agent: finds out why the tests of a small project fail, mends it, and leaves a way back.

    python examples/coding_agent.py

Works on a copy of `examples/invoices`, in the best sandbox of this machine. What the sandbox confines and a checkpoint
can bring back runs unasked; for all else you are asked. With TOOLCRIB_MODEL set that model works on it, else a scripted
one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from toolcrib import Agent, Answer, Question, Toolbox, Verdict
from toolcrib.assembly import default_tools
from toolcrib.checkpoints import Checkpoints
from toolcrib.events import CallFinished
from toolcrib.models import Model, Scripted, resolve_model
from toolcrib.tools import TodoWrite

PROJECT = Path(__file__).parent / "invoices"
TASK = "The tests of this project fail (python3 -m unittest). Find out why, mend the code, not the tests, and check it."
TESTS = "python3 -m unittest"
FOUND = '    mark = max(digits.rfind("."), digits.rfind(","))\n    whole, cents = digits[:mark], digits[mark + 1 :]\n'
MENDED = """\
    mark = max(digits.rfind("."), digits.rfind(","))
    if mark < max(1, len(digits) - 3):  # no mark, or one before three digits, which separates thousands
        mark = len(digits)
    whole, cents = digits[:mark], digits[mark + 1 :] or "0"
"""


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def plan(*done: str) -> dict[str, Any]:
    steps = ("See which tests fail", "Find the cause", "Mend it", "Run the tests again")
    states = [*done, *["pending"] * (len(steps) - len(done))]
    todos = [{"content": step, "status": state} for step, state in zip(steps, states, strict=True)]
    return {"name": "todo_write", "arguments": {"todos": todos}}


def script() -> Model:
    """The answers of a model that works on the task."""
    return Scripted(
        [
            {"calls": [plan("in_progress"), {"name": "shell", "arguments": {"command": TESTS}}]},
            {
                "text": "Amounts without cents are read wrongly.",
                "calls": [
                    plan("completed", "in_progress"),
                    {"name": "grep", "arguments": {"pattern": "def parse|parse\\(", "include": "*.py"}},
                    {"name": "read_file", "arguments": {"path": "amounts.py"}},
                ],
            },
            call("edit_file", path="amounts.py", old_string=FOUND, new_string=MENDED),
            call("shell", command=TESTS),
            {
                "text": "A mark counted as the decimal mark also where there is none, or where it separates thousands. "
                "Now it does only before one or two digits, and all tests pass."
            },
        ]
    )


def ask(question: Question) -> Answer:
    """Asks whoever started the example; without a terminal, nothing that asks is done."""
    print(f"? {question.heading} ({question.reason}) {question.arguments}")
    try:
        return Answer(Verdict.YES if input("  y or n: ").strip() == "y" else Verdict.NO)
    except EOFError:
        return Answer(Verdict.NO)


def show(event: CallFinished) -> None:
    """One line for each call: how it ended, and the line of its result that says most."""
    lines = [line for line in event.result.text.splitlines() if line.strip()] if event.result else []
    telling = [line for line in lines if line.startswith(("FAILED", "OK", "Edited"))] or lines[:1]
    print(f"[{event.tool}: {event.state.value}] {' '.join(telling)}")


async def work(folder: Path, store: Path) -> None:
    named = os.environ.get("TOOLCRIB_MODEL")
    model = resolve_model(named) if named else script()
    box = Toolbox([TodoWrite()], builtin=default_tools(folder), autonomy="sandboxed", approver=ask)
    checkpoints = Checkpoints(folder, store=store)
    agent = Agent(model, toolbox=box, checkpoints=checkpoints, completion_tool=False)
    async with agent, box:
        run = agent.start(TASK)
        async for event in run:
            if isinstance(event, CallFinished):
                show(event)
        outcome = await run
    print(f"[{outcome.reason}] {outcome.text}")
    for change in checkpoints.preview_undo().changes:
        print(f"an undo would change {change.path}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(PROJECT, Path(place) / "invoices"))
        asyncio.run(work(folder, Path(place) / "checkpoints"))
