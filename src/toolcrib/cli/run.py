"""`toolcrib run`: a model works on a task in a folder."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import warnings
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from toolcrib.agent import Agent, Budget, TranscriptFile, read_transcript
from toolcrib.call import CallKey
from toolcrib.cli.ask import LineAnswers, someone_is_there
from toolcrib.cli.audit import log_of_run
from toolcrib.cli.confine import Confinement, sandbox_lines
from toolcrib.cli.console import Problem, debugging, say, stdout_reserved
from toolcrib.cli.force import Force, approval_store, in_force
from toolcrib.cli.secrets import stored_secrets
from toolcrib.cli.session import Asker, JsonLines, Terminal, console_for, show_run, summary_lines
from toolcrib.cli.tools import assembled
from toolcrib.command.sandbox.lease import ScratchFolder
from toolcrib.command.sandbox.process.kernel import hide_own_process
from toolcrib.events import Notice
from toolcrib.messages import Message, ResultPart
from toolcrib.sink import EventLog

if TYPE_CHECKING:
    from toolcrib.agent import Run
    from toolcrib.assembly import Assembly
    from toolcrib.cli.view import View
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.models import Model
    from toolcrib.toolbox import Toolbox

INSTRUCTIONS = """\
You work in a folder, the workspace, through tools. Paths are relative to it.
Look before you change anything, and make the smallest change that does the job. After a change, check that it \
works, for example by running the tests. Some calls are put to the user first; if they say no, respect it.
When the task is done, or cannot be done, say plainly what you did, what you found and what is left open."""

SECRETS = """
Secrets may stand in shell commands as <secret_ref:NAME>; the values are put in where the command runs, and you never \
see them. There are: {}."""

NO_MODEL = """\
no model is configured. Name one with --model or the variable TOOLCRIB_MODEL:
  openai:NAME            with OPENAI_API_KEY set, and toolcrib[openai] installed
  anthropic:NAME         with ANTHROPIC_API_KEY set, and toolcrib[anthropic] installed
  ollama:NAME            a local Ollama; needs toolcrib[http]
  http://HOST/v1#NAME    any server that speaks OpenAI's API (vLLM, llama.cpp, LM Studio)
`toolcrib models` lists all providers, and which of them are configured.
To watch a run without a key or a network first, try: toolcrib demo"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person asked for on the command line."""

    task: str
    model: str | None
    workspace: Path
    autonomy: str | None = None
    policy: Path | None = None
    confinement: Confinement = Confinement()  # noqa: RUF009 - frozen
    named: tuple[str, ...] = ()
    max_turns: int = 50
    budget_tokens: int | None = None
    budget_seconds: float | None = None
    answer_timeout: float | None = None
    early_start: bool = False
    audit: bool = False
    transcript: Path | None = None
    continued: Path | None = None
    json: bool = False
    answers: bool = False

    @property
    def records(self) -> list[Path]:
        """The transcripts of this run, which tell a later one what its user said and what came from outside."""
        return [path for path in (self.transcript, self.continued) if path is not None]


def run_task(settings: Settings) -> int:
    """Run a task and give the exit code. Raises Problem for what cannot be begun."""
    hide_own_process()  # keys of providers lie in our environment
    task = _task(settings)
    if settings.answers and not settings.json:
        raise Problem("--answers is for --json; on a terminal, questions are asked there")
    model = _model(settings.model)
    messages, path = _continued(settings)
    scratch = ScratchFolder()  # gone with us, however we end
    # A transcript names the long outputs, so they outlive the run with it.
    overflow = Path(scratch.path() if path is None else tempfile.mkdtemp(prefix="toolcrib-outputs-"))
    try:
        assembly, sandbox = _assembly(settings, overflow)
        force = in_force(
            settings.policy,
            settings.autonomy,
            settings.workspace,
            assembly.toolbox(autonomy="full"),
            kept=settings.records,
        )
        say(force.line(sandbox, settings.workspace))
        said = sandbox_lines(sandbox)
        with closing(TranscriptFile(path)) if path is not None else nullcontext() as transcript:
            if transcript is not None and path != settings.continued:
                _copy(messages, transcript)
            with stdout_reserved() if settings.json else nullcontext(sys.stdout) as stdout:
                work = _run(
                    settings, task, model, assembly, force, overflow, messages, transcript, stdout, said
                )
                return asyncio.run(work)
    except OSError as problem:
        if path is None or isinstance(problem, BrokenPipeError):
            raise
        raise Problem(f"transcript {path} cannot be written: {problem.strerror or problem}") from problem
    finally:
        scratch.close()
        _tidy(overflow)


async def _run(
    settings: Settings,
    task: str,
    model: Model,
    assembly: Assembly,
    force: Force,
    overflow: Path,
    messages: list[Message],
    transcript: TranscriptFile | None,
    stdout: TextIO,
    said: list[str],
) -> int:
    view: View | None = None
    face: Any = JsonLines(stdout)
    approver: Any = LineAnswers() if settings.answers else None
    if not settings.json:
        from toolcrib.cli.view import View

        approver = Asker() if someone_is_there() else None
        view = View(console_for(stdout), asks=approver is not None)
        face = Terminal(view, approver)
    if not debugging():
        warnings.filterwarnings(
            "ignore", message="tool .* was set aside"
        )  # a notice among the events says so
    secrets = stored_secrets()
    box = assembly.toolbox(
        policy=force.policy,
        limits=force.limits or None,
        approver=approver,
        answer_timeout=settings.answer_timeout,
        overflow=overflow,
        approvals=approval_store(),
        project=settings.workspace.resolve(),
        audit=log_of_run() if settings.audit else None,
        secrets=secrets,
    )
    agent = Agent(
        model,
        toolbox=box,
        instructions=INSTRUCTIONS + (SECRETS.format(", ".join(sorted(secrets.names()))) if secrets else ""),
        max_turns=settings.max_turns,
        budget=Budget(tokens=settings.budget_tokens, seconds=settings.budget_seconds),
        early_start=settings.early_start,
    )
    run = agent.start(task, messages=messages, transcript=transcript)
    _told_first(said, box, run, face if settings.json else None)
    async with box:
        done = await show_run(run, face)
    if view is not None and not done.unheard:
        view.line()
        for style, line in summary_lines(done, view):
            view.line(line, style)
        if settings.transcript or settings.continued:
            view.line(f"transcript: {settings.transcript or settings.continued}", "dim")
    return done.exit_code


def _told_first(said: list[str], box: Toolbox, run: Run, face: Any) -> None:
    """What the person should know before anything runs: on stderr, or, with a face, as the first events of the run."""
    if face is None:
        for line in said:
            say(line)
        return
    noted = EventLog()
    box.subscribe(noted)
    for line in said:
        box.emit(run.id, Notice(line))
    box.unsubscribe(noted)
    for event in noted.events:
        face.take(event)


def _task(settings: Settings) -> str:
    task = sys.stdin.read() if settings.task == "-" else settings.task
    if task.strip():
        return task
    if settings.continued is not None and not settings.task:
        return "Continue."
    raise Problem('say what is to be done: toolcrib run "make the tests pass"')


def _model(name: str | None) -> Model:
    from toolcrib.models import resolve_model

    if not name and not os.environ.get("TOOLCRIB_MODEL"):
        raise Problem(NO_MODEL)
    try:
        return resolve_model(name)
    except OSError as problem:
        raise Problem(f"model {name}: {problem.filename}: {problem.strerror}") from problem
    except (ValueError, ImportError) as problem:
        raise Problem(f"model: {problem}") from problem


def _assembly(settings: Settings, overflow: Path) -> tuple[Assembly, Sandbox]:
    """The tools, and the sandbox that commands run in."""
    from toolcrib.tools import Workspace

    if not settings.workspace.is_dir():
        raise Problem(f"workspace: expected a folder that exists, got {settings.workspace}")
    kept = [*settings.records, *([] if settings.policy is None else [settings.policy])]
    sandbox = settings.confinement.sandbox(settings.workspace, kept)
    assembly = assembled(settings.named, Workspace(settings.workspace, readable=[overflow]), sandbox)
    return assembly, sandbox


def _continued(settings: Settings) -> tuple[list[Message], Path | None]:
    """The messages to go on from, and the file that the transcript is written to."""
    path, earlier = settings.transcript, settings.continued
    if path is not None and path != earlier and path.exists() and path.stat().st_size:
        raise Problem(
            f"{path} holds a transcript already; go on with it by --continue {path}, or name another file"
        )
    if earlier is None:
        return [], path
    try:
        messages = read_transcript(earlier)
    except (OSError, ValueError, KeyError) as problem:
        raise Problem(f"--continue {earlier}: not a transcript that can be read: {problem}") from problem
    return messages, path or earlier


def _copy(messages: list[Message], transcript: TranscriptFile) -> None:
    for number, message in enumerate(messages):
        transcript.message(message)
        for index, part in enumerate(message.parts if message.role == "tool" else ()):
            if isinstance(part, ResultPart):
                transcript.result(CallKey("", number, index), part.result)


def _tidy(overflow: Path) -> None:
    if overflow.is_dir():
        if any(overflow.iterdir()):
            say(f"long outputs are kept in {overflow}")
        else:
            overflow.rmdir()
