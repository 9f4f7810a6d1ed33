"""How the tool `python` decides on code and runs it.

The code is the model's, and nothing of it is proved. So every call is decided on like an unrecognised command, and the
session's process is confined like one. The run owns the session and ends it. Where rules or the level of the workspace
allow a call less than the running session may do, the session is started anew.
"""

from __future__ import annotations

import base64
import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.access import Access, Confinement
from toolcrib.command.explain import Reporter, sandbox_sentences
from toolcrib.command.explain.result_text import signal_name
from toolcrib.command.judge import Judgement, accesses_of, judge
from toolcrib.command.judge.python_code import NO_COMMANDS, commands_in_code
from toolcrib.command.launch import BoundedOutput, DeniedPathsInSandbox, command_environment
from toolcrib.command.launch.contained import check_contained, contained_accesses, keep_history
from toolcrib.command.launch.possible_hosts import possible_hosts
from toolcrib.command.launch.process import code_and_signal
from toolcrib.command.python import (
    PythonSession,
    Reply,
    SessionCrashed,
    SessionInterrupted,
)
from toolcrib.command.sandbox import NoSandbox, Sandbox, SandboxError, SandboxInForce
from toolcrib.content import Image, Text
from toolcrib.dataclass import replace
from toolcrib.errors import ToolError
from toolcrib.event_loops import in_loop
from toolcrib.question import Doubt, Preview
from toolcrib.result import ToolResult
from toolcrib.tools.python_params import MAX_TIMEOUT, PythonParams, PythonResult
from toolcrib.visible import counted, spelled_out

if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.events import Event
    from toolcrib.tools.workspace import Workspace

MAX_LIVE = 8_000  # characters of a result that a person is shown
MAX_IN_ERROR = 20_000  # characters of output in the message of a call that failed
JUDGEMENT = Judgement("ask", "it runs Python code", programs=("python",))
NO_SANDBOX = "no sandbox works here, so nothing would limit it"
ENVIRONMENTS = (".venv", "venv")
PNG = b"\x89PNG\r\n\x1a\n"
LOST = "The next call begins a new session: variables and imports of this one are lost."


class PythonWork:
    """The work of one tool `python`, whose options these are."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        interpreter: str,
        env: Mapping[str, str],
        passthrough: Collection[str],
        grace: float,
        sandbox: Sandbox | None,
    ) -> None:
        self.workspace = workspace
        self.interpreter = interpreter
        self.env = env
        self.passthrough = passthrough
        self.grace = grace
        root = workspace.root.path
        self._in_force = SandboxInForce(root, sandbox)
        self._denied_paths = DeniedPathsInSandbox(root)

    def _interpreter(self) -> str:
        if self.interpreter:
            return self.interpreter
        root = self.workspace.root.path
        found = (Path(root, name, "bin", "python") for name in ENVIRONMENTS)
        return next((str(path) for path in found if path.exists()), sys.executable)

    # Who decides on it.

    def precheck(self, params: PythonParams) -> str | None:
        if not params.code.strip():
            return "code is empty."
        if "\0" in params.code:
            return "code contains a NUL character."
        try:
            params.code.encode()
        except UnicodeEncodeError:
            return "code holds half of a surrogate pair, which cannot be passed on."
        judgement = judge(shlex.join(["python", "-c", params.code]))
        if judgement.verdict == "deny":
            return f"The code was not run and never will be, whoever asks for it: {judgement.reason}."
        try:
            self._sandbox_now()
        except SandboxError as refused:
            return f"No code can be run now: {refused}."
        return None

    def accesses(self, params: PythonParams) -> tuple[Access, ...]:
        try:
            sandbox = self._sandbox_now()
        except SandboxError:  # no code will run
            sandbox = None
        found = (*_reached_by(params.code), *possible_hosts(JUDGEMENT, sandbox))
        to_decide = self._denied_paths.accesses_to_decide(found, JUDGEMENT, sandbox)
        decided = tuple(self.workspace.with_targets(to_decide))
        keeper = self._in_force.keeper(self.workspace.level)
        if not keeper:
            return decided
        return contained_accesses(decided, JUDGEMENT, Confinement(self.workspace.root.path, keeper), sandbox)

    def doubt(self, params: PythonParams) -> Doubt:
        if not self._in_force.confines(self.workspace.level):
            return Doubt(NO_SANDBOX, must_ask=True)
        return Doubt(JUDGEMENT.reason)

    def preview(self, params: PythonParams) -> Preview:
        return Preview("\n".join(spelled_out(line) for line in params.code.split("\n")))

    def _sandbox_now(self) -> Sandbox:
        """The sandbox at the level of the workspace. Raises SandboxError if it cannot keep to that."""
        return self._in_force.at(self.workspace.level)

    # Running it.

    async def execute(self, params: PythonParams, ctx: Context[Any]) -> ToolResult:
        import asyncio

        if problem := self.precheck(params):
            raise ToolError(problem)
        ctx.check_cancelled()
        if params.description:
            ctx.report(tip=params.description)
        sandbox = self._sandbox_now()
        if ctx.must_be_confined:
            check_contained(sandbox)
        if isinstance(sandbox, NoSandbox) and not sandbox.wanted and not ctx.approved:
            await ctx.ask("run Python code that no sandbox confines", [params.code])
        sandbox = await self._denied_paths.hide(ctx, sandbox, params.code, JUDGEMENT)
        if ctx.must_be_confined:
            sandbox = await asyncio.to_thread(keep_history, sandbox, self.workspace.root.path)
        holder = ctx.of_run(SessionOfRun)
        return await in_loop(holder.loop_now(), self._in_turn(params, ctx, holder, sandbox))

    async def _in_turn(
        self, params: PythonParams, ctx: Context[Any], holder: SessionOfRun, sandbox: Sandbox
    ) -> ToolResult:
        async with holder.turns:
            session, restarted = await self._session(holder, sandbox)
            return await self._run(params, ctx, session, sandbox, restarted)

    async def _session(self, holder: SessionOfRun, sandbox: Sandbox) -> tuple[PythonSession, bool]:
        """The session of the run, and whether one was lost for it. Raises ToolError if none can be started."""
        running = holder.session
        if running is not None and running.running and sandbox.level.covers(running.level):
            return running, False
        if running is not None:
            await running.aclose()
        session = holder.session = PythonSession(sandbox.level, self.grace)
        env = command_environment(
            confined=not isinstance(sandbox, NoSandbox), passed=self.passthrough, added=self.env
        )
        try:
            await session.start(sandbox, self._interpreter(), folder=self.workspace.root.path, env=env)
        except SandboxError as refused:
            raise ToolError(f"No session was started, because it could not be confined: {refused}.") from None
        except OSError as refused:
            raise ToolError(f"No session could be started: {refused.strerror}.") from None
        return session, running is not None

    async def _run(
        self,
        params: PythonParams,
        ctx: Context[Any],
        session: PythonSession,
        sandbox: Sandbox,
        restarted: bool,
    ) -> ToolResult:
        reporter = Reporter(ctx, self.workspace.root.path)
        try:
            reply = await session.run(params.code, params.timeout, reporter.output)
        except SessionInterrupted as stopped:
            kept = "It did not stop, so the session was ended." if stopped.lost else "The session goes on."
            after = LOST if stopped.lost else "Its variables are kept, as far as they were set."
            raise ToolError(
                f"The code was interrupted because it ran longer than {counted(params.timeout, 'second')}. "
                f"{kept} {after} Give it a longer timeout (at most {MAX_TIMEOUT}) if it needs one. "
                f"{_printed(session.printed)}"
            ) from None
        except SessionCrashed as crashed:
            raise ToolError(
                f"The session's process ended while the code ran: {_status(crashed.status)}. {LOST} "
                f"{_printed(session.printed)}"
            ) from None
        text = self._text(session, sandbox, reply, restarted)
        ctx.report(result={"output": text[-MAX_LIVE:], "error": reply.error})
        pictures = [made for figure in reply.figures if (made := _picture(figure)) is not None]
        data = PythonResult(reply.error, len(pictures), round(reply.seconds, 3), restarted)
        return ToolResult((Text(text), *pictures), structured=asdict(data))

    def _text(self, session: PythonSession, sandbox: Sandbox, reply: Reply, restarted: bool) -> str:
        printed = session.printed.text().rstrip("\n")
        parts = [part for part in (printed, reply.value) if part]
        body = "\n".join(parts) or ("(a figure)" if reply.figures else "(no output)")
        notes: list[str] = []
        if reply.error is not None:
            notes.append(f"raised {reply.error}; the session goes on")
        if restarted:
            notes.append("this is a new session; variables of the one before are lost")
        text = body if not notes else f"{body}\n\n[{'; '.join(notes)}]"
        if reply.error is not None and session.launch is not None:
            denial = sandbox.explain(1, session.printed.ending(20_000), session.launch)
            if denial is not None:
                said = " ".join(sandbox_sentences(denial, (), self.workspace.root.path))
                text += f"\n[sandbox: {said} This was not your code's fault; do not try to get around it.]"
        return text


class SessionOfRun:
    """Holds the Python session of one run, if there is one, and ends it with the run."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        import asyncio

        self.session: PythonSession | None = None
        self.turns = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    def loop_now(self) -> asyncio.AbstractEventLoop:
        """The event loop of the session; the running loop, if that one is closed, and so the session is over."""
        import asyncio

        if self._loop.is_closed():
            self._loop, self.turns = asyncio.get_running_loop(), asyncio.Lock()
        return self._loop

    @property
    def at_work(self) -> bool:
        """Whether there is a session: threads and processes of its code may go on between the calls."""
        return self.session is not None and self.session.running

    def news(self) -> list[str]:
        return []

    async def aclose(self) -> None:
        if self.session is not None:
            await in_loop(self._loop, self.session.aclose())


def _printed(output: BoundedOutput) -> str:
    text = output.text().strip()
    if len(text) > MAX_IN_ERROR:
        text = "[...]" + text[-MAX_IN_ERROR:]
    return f"What it printed:\n{text or '(nothing)'}"


def _status(status: int | None) -> str:
    code, number = code_and_signal(status)
    if number is not None:
        return f"signal {number} ({signal_name(number)})"
    return f"exit code {code}" if code is not None else "it was ended"


def _picture(figure: str) -> Image | None:
    """A figure as a picture; None if it is none, which happens if the code wrote the reply itself."""
    try:
        data = base64.b64decode(figure, validate=True)
    except ValueError:
        return None
    return Image(figure, media_type="image/png") if data.startswith(PNG) else None


def _reached_by(code: str) -> tuple[Access, ...]:
    """The accesses of code. A command counts as run where the code surely runs it, and code that cannot be read may run
    any."""
    read = commands_in_code(code)
    commands = read or NO_COMMANDS
    run = [one for one in accesses_of(commands.run, JUDGEMENT, ".", unasked=False) if one.hint]
    said = [
        replace(one, perhaps=True) if one.hint else replace(one, hinted=read is not None)
        for text in (code, commands.perhaps)
        for one in accesses_of(text, JUDGEMENT, ".", unasked=False)
        if one.hint or text is code
    ]
    return tuple(dict.fromkeys([*said, *run]))
