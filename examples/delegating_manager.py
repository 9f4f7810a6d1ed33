"""A manager with three helpers; a helper of a helper wants to delete, and all of them wait until a person has answered.

    pip install toolcrib
    python examples/delegating_manager.py

The models are scripted, so that no key is needed. The clerk hands its task on to the archivist, which asks before it
deletes: two levels below the manager. The whole tree of runs ends at the question, is stored as JSON, and goes on from
there.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from toolcrib import Agent, Context, Effect, ToolError, tool
from toolcrib.agent import Outcome
from toolcrib.agent.delegation import Delegate, delegation_tools
from toolcrib.models import Scripted


@tool(effect=Effect.READ, secrets=(), open_world=False)
def list_reports(*, ctx: Context[Path]) -> list[str]:
    """List the reports in the archive."""
    return sorted(path.name for path in ctx.deps.iterdir())


@tool(effect=Effect.WRITE, secrets=(), open_world=False)
def write_report(name: str, text: str, *, ctx: Context[Path]) -> str:
    """Write a report.

    Args:
        name: Its file name, such as "2024.txt".
        text: What it says.
    """
    (ctx.deps / Path(name).name).write_text(text, encoding="utf-8")
    return f"Wrote {name}."


@tool(effect=Effect.DESTRUCTIVE, secrets=(), open_world=False)
def delete_report(name: str, *, ctx: Context[Path]) -> str:
    """Delete a report for good.

    Args:
        name: Its file name, such as "2023.txt".
    """
    report = ctx.deps / Path(name).name
    if not report.exists():
        raise ToolError(f"There is no report {name!r}.")
    report.unlink()
    return f"Deleted {name}."


def calls(*asked: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A scripted answer that asks for calls."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in asked]}


def task(agent: str, words: str) -> tuple[str, dict[str, Any]]:
    return "new_task", {"agent": agent, "task": words}


def team() -> Agent[Path]:
    """The manager and, below it, everybody else."""
    archivist = Agent(
        Scripted(
            [calls(("list_reports", {})), calls(("delete_report", {"name": "2021.txt"})), "2021.txt is gone."]
        ),
        [list_reports, delete_report],
        autonomy="full",  # as far as the manager lets it
    )
    clerk = Agent(
        Scripted([calls(task("archivist", "Delete the oldest report.")), "The archivist has tidied up."]),
        delegation_tools({"archivist": Delegate(archivist, "Keeps the archive.")}),
        autonomy="full",
    )
    researcher = Agent(Scripted([calls(("list_reports", {})), "There are 2021 and 2022."]), [list_reports])
    writer = Agent(
        Scripted(
            [calls(("write_report", {"name": "2023.txt", "text": "All went well."})), "2023 is written."]
        ),
        [write_report],
        autonomy="full",
    )
    helpers = {
        "clerk": Delegate(clerk, "Keeps order."),
        "researcher": Delegate(researcher, "Finds out what there is."),
        "writer": Delegate(writer, "Writes reports."),
    }
    script: list[dict[str, Any] | str] = [
        calls(task("researcher", "Which reports are there?")),
        calls(task("writer", "Write the report of 2023."), task("clerk", "Make room in the archive.")),
        "The archive is in order.",
    ]
    return Agent(Scripted(script), delegation_tools(helpers), on_question="suspend")


def show(outcome: Outcome, depth: int = 0) -> None:
    """Print how a run ended, and the runs below it."""
    print(f"{'  ' * depth}[{outcome.reason.value}] {outcome.text}")
    for nested in outcome.nested:
        show(nested, depth + 1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder)
        for year in (2021, 2022):
            (archive / f"{year}.txt").write_text(f"The report of {year}.", encoding="utf-8")
        manager = team()
        outcome = manager.run_sync("Write the report of 2023, and make room.", deps=archive)
        while outcome.questions:
            stored = json.dumps(outcome.to_json())  # in a database, say; another process may go on
            for question in outcome.questions:
                print(f"[waiting] {question.tool} {question.arguments}: {question.reason}")
            answers = {question.id: "yes" for question in outcome.questions}
            outcome = manager.resume_sync(json.loads(stored), answers, deps=archive)
        show(outcome)
        print("left:", ", ".join(sorted(path.name for path in archive.iterdir())))


if __name__ == "__main__":
    main()
