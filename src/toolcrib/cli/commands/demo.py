"""`toolcrib demo`: the real loop, tools and approvals on a small broken project, with a scripted model."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.agent import Agent
from toolcrib.call import ToolCall
from toolcrib.cli.console import DONE, NOT_DONE, Problem, quiet_logging, say, someone_is_there
from toolcrib.cli.demo_model import demo_model
from toolcrib.cli.demo_project import build
from toolcrib.cli.live_view import LiveView
from toolcrib.cli.run_display import EndedRun, show_run
from toolcrib.cli.run_summary import summary_lines
from toolcrib.cli.sandbox_options import SandboxOptions, sandbox_warnings
from toolcrib.cli.terminal_display import Asker, TerminalDisplay
from toolcrib.command.sandbox.process.kernel import hide_own_process
from toolcrib.prepared import Pending
from toolcrib.question import Answer, Question, Verdict
from toolcrib.toolbox import Toolbox
from toolcrib.tools import Shell, Workspace, workspace_tools

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.command.sandbox import Sandbox
    from toolcrib.toolset import ToolLike

TASK = "The tests of this project fail. Find out why, mend it, and show that they pass."
INTRODUCTION = """\
toolcrib demo
The model is scripted: no key, no network, nobody thinks. Everything else is real: the loop, the tools, the \
questions, the tests, and the project, a small Python package with a fault, in {folder}
"""
ASKED = "You are asked before a file is changed{more} y lets it, n does not."
TESTS_ASK = " or a command is run."
TESTS_RUN = "; the project's own tests run unasked, as the sandbox holds them."
UNASKED = "{why}, so the demo answers its own questions: yes."
CHECK_SECONDS = 60


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Answer the demo's questions with yes.")]
Keep = Annotated[bool, typer.Option("--keep", help="Leave the sample project where it is.")]


def command(sandbox: SandboxOptions, yes: Yes = False, keep: Keep = False) -> int:
    """It needs no key and no network. The model is scripted, and says so; the loop, the tools, the approvals and the
    project are real. The exit code says whether the project's tests pass at the end.
    """
    quiet_logging()
    hide_own_process()
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-demo-")).resolve()
    try:
        build(folder)
        chosen = sandbox.choose(folder)
        for line in sandbox_warnings(chosen):
            say(line)
        asks = not yes and someone_is_there()
        return asyncio.run(_demo(folder, chosen, asks=asks, yes=yes, keep=keep))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


async def _demo(folder: Path, sandbox: Sandbox, *, asks: bool, yes: bool, keep: bool) -> int:
    asker = Asker() if asks else None
    display = TerminalDisplay(sys.stdout, asker)
    view = display.view
    view.line(INTRODUCTION.format(folder=folder))
    box = Toolbox(builtin=_tools(folder, sandbox), approver=asker or _yes)
    if asks:
        tests = await box.prepare(ToolCall("shell", {"command": _test_command()}))
        view.line(ASKED.format(more=TESTS_ASK if isinstance(tests, Pending) else TESTS_RUN))
    else:
        view.line(UNASKED.format(why="--yes is given" if yes else "Nobody sits at a terminal"))
    view.line(f"Task: {TASK}\n", "bold")
    async with box:
        agent = Agent(demo_model(_test_command()), toolbox=box)
        done = await show_run(agent.start(TASK), display)
    passes = await asyncio.to_thread(_tests_pass, folder)
    _closing(view, done, folder, passes=passes, keep=keep)
    if done.signals:
        return done.exit_code
    return DONE if passes else NOT_DONE


def _closing(view: LiveView, done: EndedRun, folder: Path, *, passes: bool, keep: bool) -> None:
    view.line()
    for style, line in summary_lines(done, view):
        view.line(line, style)
    verdict = "they pass" if passes else "they fail"
    view.line(f"The demo ran the project's tests once more itself: {verdict}.", "green" if passes else "red")
    view.line(
        f"The project stays in {folder}" if keep else "The project's folder is removed (--keep keeps it)."
    )
    view.line(
        "That was a scripted model with real tools. With a model of your own: set TOOLCRIB_MODEL, then "
        'toolcrib run "make the tests pass"'
    )


def _tools(folder: Path, sandbox: Sandbox) -> list[ToolLike]:
    """The built-in tools; `shell` finds the Python that runs the demo, and leaves no bytecode behind."""
    workspace = Workspace(folder, level=sandbox.level)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    shell = Shell(workspace, env={"PATH": path, **_QUIET}, sandbox=sandbox)
    others: list[Any] = [tool for tool in workspace_tools(workspace) if tool.facts.name != "shell"]
    return [*others, shell]


def _test_command() -> str:
    name = Path(sys.executable).name
    if not name:
        raise Problem(
            "the demo runs a project's tests with this Python, and Python does not know its own path"
        )
    return f"{name} -m unittest"


def _tests_pass(folder: Path) -> bool:
    """The judgement that the exit code gives, whatever the model says."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "unittest"],
            cwd=folder,
            env={**os.environ, **_QUIET},
            capture_output=True,
            timeout=CHECK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


async def _yes(question: Question) -> Answer:
    return Answer(Verdict.YES, by="the demo itself")


# Bytecode is told apart by seconds and size: an edit within one second could go unnoticed.
_QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}
