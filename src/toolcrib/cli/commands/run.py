"""`toolcrib run`: a model works on a task in a folder."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from toolcrib.agent import Agent, Budget, TranscriptFile
from toolcrib.cli.console import Problem, debugging, person_can_be_asked, say, stdout_reserved
from toolcrib.cli.dependencies import Factory, dependencies, load_factory, require_dependencies
from toolcrib.cli.json_answers import JsonAnswers
from toolcrib.cli.loaded_tools import load_assembly
from toolcrib.cli.mcp_servers import ServersWanted, programs_of_servers
from toolcrib.cli.named_model import named_model
from toolcrib.cli.options import ModelName, ToolsToUse
from toolcrib.cli.policy_options import PolicyOptions
from toolcrib.cli.run_display import Display, JsonLines, show_run
from toolcrib.cli.sandbox_options import SandboxOptions, sandbox_warnings
from toolcrib.cli.settings_in_effect import DEFAULT_OF_RUNS, NO_CHECKPOINTS, settings_in_effect
from toolcrib.cli.tool_settings import ToolsWanted, settings_in_workspace
from toolcrib.cli.undo_text import undo_hint
from toolcrib.cli.user_files import approval_store, checkpoints_of, stored_secrets, writable_audit_log
from toolcrib.command.sandbox import why_not_contained
from toolcrib.command.sandbox.lease import ScratchFolder
from toolcrib.command.sandbox.process.kernel import hide_own_process
from toolcrib.dataclass import dataclass
from toolcrib.events import Notice
from toolcrib.mending import notes_on_one_line
from toolcrib.messages import Message
from toolcrib.settings.catalogue import DELEGATION
from toolcrib.toolset import is_toolset

if TYPE_CHECKING:
    from toolcrib.agent import ModelReviewer
    from toolcrib.agent.delegation import Delegate
    from toolcrib.assembly import Assembly
    from toolcrib.checkpoints import Checkpoints
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.models import Model
    from toolcrib.secrets import SecretFile
    from toolcrib.toolbox import Toolbox

OPTION_FOR_ARGUMENT = "a task in quotes"
IN_A_WORKSPACE = "You work in a folder, the workspace, through tools. Paths are relative to it."
INSTRUCTIONS = f"""\
{IN_A_WORKSPACE}
Look before you change anything, and make the smallest change that does the job. After a change, check that it \
works, for example by running the tests. Some calls are put to the user first; if they say no, respect it.
When the task is done, or cannot be done, say plainly what you did, what you found and what is left open."""

SECRETS = """
Secrets may stand in shell commands as <secret_ref:NAME>; the values are put in where the command runs, and you never \
see them. There are: {}."""


@dataclass(frozen=True, slots=True)
class RunCommandOptions:
    """What to do, with which model, and how far."""

    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do; - reads it from stdin.")] = ""
    model: ModelName = None
    max_turns: Annotated[
        int, typer.Option(min=1, metavar="N", help="Stop after this many answers of the model.")
    ] = 50
    budget_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after this many tokens.")
    ] = None
    budget_seconds: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop after this many seconds.")
    ] = None
    answer_timeout: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="Refuse a call if nobody answers its question for so long."
        ),
    ] = None
    reviewer: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A model that looks first at calls that would ask you, and may say yes. What a rule asks stays yours.",
        ),
    ] = None
    early_start: Annotated[
        bool,
        typer.Option("--early-start", help="Start calls that only read while the model is still writing."),
    ] = False
    audit: Annotated[
        bool, typer.Option("--audit", help="Record every decision and call in your audit log.")
    ] = False
    transcript: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the transcript to this file during the run.")
    ] = None
    continue_: Annotated[
        Path | None,
        typer.Option("--continue", metavar="FILE", help="Continue the run whose transcript is in this file."),
    ] = None
    json: Annotated[
        bool, typer.Option("--json", help="Print events as JSON lines on stdout, and nothing else.")
    ] = False
    checkpoints: Annotated[
        bool,
        typer.Option(
            "--checkpoints/--no-checkpoints",
            help="Store the files before each turn, for toolcrib undo.",
        ),
    ] = True
    answers: Annotated[
        bool, typer.Option("--answers", help="With --json: read the answers to questions from stdin.")
    ] = False

    @property
    def transcripts(self) -> list[Path]:
        """The transcripts of this run: a later run reads in them what the user said and what came from outside."""
        return [path for path in (self.transcript, self.continue_) if path is not None]


def command(run: RunCommandOptions, tools: ToolsToUse, policy: PolicyOptions, sandbox: SandboxOptions) -> int:
    """You are asked before a call changes something. y runs it; n does not; "n use pip instead" tells the model why;
    a allows exactly this call for the rest of the run; p allows commands that begin alike. "a project" and "a user"
    last longer than the run (see toolcrib approvals). No answer is a no. Ctrl-C ends the run cleanly.

    Commands run in the best sandbox that works here. If the sandbox refuses something, you are asked whether the
    command may run again with exactly that permission.

    With --json every event is a JSON object on a line. Nobody is asked, and calls that need approval are refused,
    unless --answers is given: then a line on stdin answers each question_asked event, such as
    {"fingerprint": "…", "verdict": "yes"}. The verdict is yes, no or always; "message" tells the model why.

    Exit code: 0 finished, 1 not finished (a limit, a pause, the model failed), 2 wrong usage, 130 after Ctrl-C.
    """
    hide_own_process()  # the keys of providers stand in our environment
    task = _task(run)
    if run.answers and not run.json:
        raise Problem("--answers needs --json; without it, questions are asked on the terminal")
    model = named_model(run.model)
    reviewer = None if run.reviewer is None else _reviewer(run.reviewer)
    factory = load_factory(tools.deps)
    messages = _earlier_messages(run)
    path = run.transcript or run.continue_
    scratch = ScratchFolder()  # removed with this process, however it ends
    # A transcript names the files of long outputs, so with a transcript they outlive the run.
    overflow = Path(scratch.path() if path is None else tempfile.mkdtemp(prefix="toolcrib-outputs-"))
    try:
        secrets = stored_secrets()
        chosen, assembly = _load_tools(run, tools, policy, sandbox, overflow, model, secrets)
        if factory is None:
            require_dependencies(tool for tool in assembly.named if not is_toolset(tool))
        checkpoints = _checkpoints(run, tools.workspace)
        settings = settings_in_effect(
            policy,
            tools.workspace,
            assembly.toolbox(autonomy="full"),
            [*run.transcripts, *programs_of_servers(tools.workspace, tools.mcp_files)],
            default=DEFAULT_OF_RUNS,
            why_not_sandboxed=lambda: why_not_contained(chosen) or ("" if checkpoints else NO_CHECKPOINTS),
        )
        say(settings.line(chosen, tools.workspace))
        notices = sandbox_warnings(chosen)
        with (
            closing(TranscriptFile(path)) if path is not None else nullcontext() as transcript,
            stdout_reserved() if run.json else nullcontext(sys.stdout) as stdout,
        ):
            display, approver = _display(run, stdout)
            box = assembly.toolbox(
                policy=settings.policy,
                limits=settings.limits or None,
                approver=approver,
                reviewer=reviewer,
                answer_timeout=run.answer_timeout,
                overflow=overflow,
                approvals=approval_store(),
                project=tools.workspace.resolve(),
                audit=writable_audit_log() if run.audit else None,
                secrets=secrets,
            )
            agent = Agent(
                model,
                toolbox=box,
                checkpoints=checkpoints,
                instructions=_instructions(INSTRUCTIONS, secrets),
                max_turns=run.max_turns,
                budget=Budget(tokens=run.budget_tokens, seconds=run.budget_seconds),
                early_start=run.early_start,
            )
            if not debugging():  # a notice among the events says the same
                warnings.filterwarnings("ignore", message="tool .* was set aside")
            undo = _undo_hint(checkpoints, tools.workspace)
            return asyncio.run(_work(agent, box, display, task, messages, transcript, notices, factory, undo))
    except OSError as problem:
        if path is None or isinstance(problem, BrokenPipeError):
            raise
        raise Problem(f"transcript {path} cannot be written: {problem.strerror or problem}") from problem
    finally:
        scratch.close()
        _remove_if_empty(overflow)


async def _work(
    agent: Agent,
    box: Toolbox,
    display: Display,
    task: str,
    messages: list[Message],
    transcript: TranscriptFile | None,
    notices: Sequence[str],
    factory: Factory | None,
    undo: Callable[[str], str],
) -> int:
    """Run the agent to its end in front of the person or program; the exit code."""
    async with dependencies(factory) as deps:
        run = agent.start(task, messages=messages, transcript=transcript, deps=deps)
        if isinstance(display, JsonLines):
            for line in notices:  # the first events of the run
                box.emit(run.id, Notice(line))
        else:
            for line in notices:
                say(line)
        async with box:
            ended = await show_run(run, display)
        if not ended.reader_gone:
            display.finish(ended)
        if hint := undo(run.id):
            say(hint)
        return ended.exit_code


def _load_tools(
    run: RunCommandOptions,
    tools: ToolsToUse,
    policy: PolicyOptions,
    sandbox: SandboxOptions,
    overflow: Path,
    model: Model,
    secrets: SecretFile | None,
) -> tuple[Sandbox, Assembly]:
    """The sandbox that commands run in, and the tools."""
    from toolcrib.tools import Workspace  # loads every built-in tool, which `--help` can do without

    if not tools.workspace.is_dir():
        raise Problem(f"workspace: expected a folder that exists, got {tools.workspace}")
    protected = [*run.transcripts, *([] if policy.policy is None else [policy.policy])]
    protected += programs_of_servers(tools.workspace, tools.mcp_files)
    chosen = sandbox.choose(tools.workspace, protected)
    workspace = Workspace(tools.workspace, readable=[overflow])
    asks = run.answers or (not run.json and person_can_be_asked())
    name = run.model or os.environ.get("TOOLCRIB_MODEL", "")

    agents: dict[str, Delegate] = {}
    servers = ServersWanted(tools.mcp_files, start=True, asks=asks)
    wanted = ToolsWanted(name, asks, agents)
    joined = settings_in_workspace(tools.workspace)
    assembly = load_assembly(tools.references, workspace, chosen, wanted, mcp=servers, joined=joined)
    if DELEGATION & assembly.sources.keys():
        from toolcrib.cli.named_agents import OuterRun, agents_of_run

        for_all = (_instructions(INSTRUCTIONS, secrets), _instructions(IN_A_WORKSPACE, secrets))
        agents |= agents_of_run(OuterRun(tools.workspace, assembly, model, name, *for_all), joined)
    return chosen, assembly


def _display(run: RunCommandOptions, stdout: TextIO) -> tuple[Display, Any]:
    """Where the run is shown, and who answers its questions."""
    if run.json:
        return JsonLines(stdout), JsonAnswers() if run.answers else None
    from toolcrib.cli.terminal_display import Asker, TerminalDisplay  # loads rich

    asker = Asker() if person_can_be_asked() else None
    return TerminalDisplay(stdout, asker, transcript=run.transcript or run.continue_), asker


def _checkpoints(run: RunCommandOptions, workspace: Path) -> Checkpoints | None:
    """The checkpoints of the workspace; none where the user wants none, or the folder cannot have some."""
    if not run.checkpoints:
        return None
    try:
        return checkpoints_of(workspace)
    except Problem as problem:
        say(f"note: without checkpoints, so that this run cannot be undone: {problem}")
        return None


def _undo_hint(checkpoints: Checkpoints | None, workspace: Path) -> Callable[[str], str]:
    """Gives the line that says what can be undone of a run that has ended."""

    def hint(run: str) -> str:
        from toolcrib.checkpoints import CheckpointError

        here = workspace.resolve() == Path.cwd()
        command = "toolcrib undo" if here else f"toolcrib undo --workspace {shlex.quote(str(workspace))}"
        try:
            return "" if checkpoints is None else undo_hint(checkpoints, run, command)
        except CheckpointError as problem:
            return f"note: what can be undone is not known: {problem}"

    return hint


def _task(run: RunCommandOptions) -> str:
    task = sys.stdin.read() if run.task == "-" else run.task
    if task.strip():
        return task
    if run.continue_ is not None and not run.task:
        return "Continue."
    raise Problem('the task is missing: toolcrib run "make the tests pass"')


def _instructions(text: str, secrets: SecretFile | None) -> str:
    return text + (SECRETS.format(", ".join(sorted(secrets.names()))) if secrets else "")


def _earlier_messages(run: RunCommandOptions) -> list[Message]:
    """The messages of the transcript that the run continues."""
    path, earlier = run.transcript, run.continue_
    if path is not None and path.is_dir():
        raise Problem(f"--transcript {path}: expected a file, got a folder")
    if path is not None and path != earlier and path.exists() and path.stat().st_size:
        raise Problem(
            f"{path} already holds a transcript; continue it with --continue {path}, or name another file"
        )
    if earlier is None:
        return []
    from toolcrib.agent import scan_transcript

    try:
        reading = scan_transcript(earlier)
    except OSError as problem:
        raise Problem(f"--continue {earlier}: cannot be read: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise Problem(f"--continue: {problem}") from problem
    if reading.problems:
        say(f"{earlier}: {notes_on_one_line(reading.problems)}")
    return reading.mended


def _reviewer(name: str) -> ModelReviewer:
    from toolcrib.agent import ModelReviewer

    return ModelReviewer(named_model(name))


def _remove_if_empty(overflow: Path) -> None:
    if not overflow.is_dir():
        return
    if any(overflow.iterdir()):
        say(f"long outputs are kept in {overflow}")
    else:
        overflow.rmdir()
