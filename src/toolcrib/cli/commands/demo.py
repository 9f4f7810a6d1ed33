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
from toolcrib.cli.console import DONE, NOT_DONE, Problem, person_can_be_asked, quiet_logging, say
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
The model is a script: it needs no key and no network. Everything else is real: the loop, the tools, the questions, \
the tests, and the project, a small Python package with a fault, in {folder}
"""
ASKED = "You are asked before a file is changed{more} y allows it, n does not."
TESTS_ASK = " or a command is run."
TESTS_RUN = "; the project's own tests run unasked, because the sandbox confines them."
UNASKED = "{why}, so the demo answers its own questions: yes."
CHECK_SECONDS = 60


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Answer all questions of the demo with yes.")]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the sample project.")]


def command(sandbox: SandboxOptions, yes: Yes = False, keep: Keep = False) -> int:
    """It needs no key and no network. The model is a script; the loop, the tools, the approvals and the project are
    real. The exit code is 0 if the project's tests pass at the end.
    """
    quiet_logging()
    if sys.platform == "win32":
        raise Problem("the demo runs commands, and commands are not run on Windows", code=NOT_DONE)
    hide_own_process()
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-demo-")).resolve()
    try:
        build(folder)
        chosen = sandbox.choose(folder)
        for line in sandbox_warnings(chosen):
            say(line)
        asks = not yes and person_can_be_asked()
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
        view.line(UNASKED.format(why="--yes is given" if yes else "There is no terminal to ask on"))
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
    view.line(f"The demo ran the project's tests again by itself: {verdict}.", "green" if passes else "red")
    view.line(
        f"The project stays in {folder}" if keep else "The project's folder is removed (--keep keeps it)."
    )
    view.line(
        "That was a scripted model with real tools. With a model of your own: set TOOLCRIB_MODEL, then "
        'toolcrib run "make the tests pass"'
    )


def _tools(folder: Path, sandbox: Sandbox) -> list[ToolLike]:
    """The built-in tools; `shell` finds the Python that runs the demo, and writes no bytecode."""
    workspace = Workspace(folder, level=sandbox.level)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    shell = Shell(workspace, env={"PATH": path, **_QUIET}, sandbox=sandbox)
    others: list[Any] = [tool for tool in workspace_tools(workspace) if tool.facts.name != "shell"]
    return [*others, shell]


def _test_command() -> str:
    name = Path(sys.executable).name
    if not name:
        raise Problem(
            "the demo runs the project's tests with this Python, and Python does not know its own path"
        )
    return f"{name} -m unittest"


def _tests_pass(folder: Path) -> bool:
    """Whether the project's tests pass, whatever the model says; this decides the exit code."""
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


# Python compares the time in seconds and the size of a source with its bytecode, and would miss a quick edit.
_QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}
