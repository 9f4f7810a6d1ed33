"""`shell`: a command in the workspace, run to its end, in a sandbox.

What a command starts ends with it, whatever it did to get away. Only where a caller passed `NoSandbox` itself
does a process that detached itself stay. Where no sandbox works, each command is asked about. `secrets` is
empty on purpose: a command line is seen by every process of the machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.errors import ToolError
from toolcrib.sandbox import Denial, Launch, NoSandbox, Sandbox, SandboxError, choose, environment
from toolcrib.tool import Effect, MaxOutput, Tool
from toolcrib.tools.process import HeadTail, Outcome, run

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.workspace import Workspace

DEFAULT_TIMEOUT = 120
MAX_TIMEOUT = 600
KEPT = 1 << 20  # bytes of output kept: half from its beginning, half from its end
PREVIEW = 8_000  # bytes of it in a live report
REPORT_EVERY = 0.2  # seconds
ON_TIMEOUT = 20_000  # characters of output shown when the time is up
MAX_COMMAND = 120_000  # bytes; the system's own limit is a little above
EXPLAINED = 20_000  # bytes from the end of the output that are looked through for a refusal
WORTH_TELLING = 10.0  # seconds of a successful run

SAFE_ENV_VARS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ",
)  # fmt: skip
# No colours, no pagers, no questions: nobody sits there.
SET_ENV_VARS = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}


class ShellParams(BaseModel):
    command: str = Field(description="The command line, for bash.")
    timeout: int = Field(
        DEFAULT_TIMEOUT, ge=1, le=MAX_TIMEOUT, description="Seconds after which it is stopped."
    )
    workdir: str = Field(".", description="Folder to run it in, relative to the workspace.")


class Shell(
    Tool[ShellParams, str],
    name="shell",
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Shell",
    category="shell",
    timeout=MAX_TIMEOUT + 30.0,
    max_output=MaxOutput(),
):
    """Run a command and give back what it prints, errors included, and its exit code if that is not 0.

    Each command runs in a shell of its own: cd and variables do not carry over, there is no input, and
    what it leaves running in the background is stopped. Start a server and use it in the same command.
    Commands may be confined by a sandbox, which is said when it refuses something.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        env: Mapping[str, str] | None = None,
        passthrough: Collection[str] = (),
        grace: float = 2.0,
        sandbox: Sandbox | None = None,
    ) -> None:
        """`env` is set for commands, `passthrough` names further variables of ours that they get.

        Without a `sandbox` it is the best that works here (`toolcrib.sandbox.choose`: the workspace may be
        written to, no network), found at the first command. To go without one, pass `NoSandbox()`.
        """
        self.workspace = workspace
        self.sandbox = sandbox
        self.env = dict(env or {})
        self.passthrough = tuple(passthrough)
        self.grace = grace

    def precheck(self, params: ShellParams) -> str | None:
        if not params.command.strip():
            return "command is empty."
        if "\0" in params.command:
            return "command contains a NUL character."
        try:
            size = len(params.command.encode())
        except UnicodeEncodeError:
            return "command holds half of a surrogate pair, which cannot be passed on."
        if size > MAX_COMMAND:
            return (
                f"command is {size:,} bytes long; at most {MAX_COMMAND:,} are possible. Write it to a file."
            )
        return None

    async def execute(self, params: ShellParams, ctx: Context[Any]) -> str:
        import asyncio

        if problem := self.precheck(params):
            raise ToolError(problem)
        ctx.check_cancelled()
        folder = self.workspace.open_folder(params.workdir)
        try:
            sandbox = await asyncio.to_thread(self._chosen)
            if isinstance(sandbox, NoSandbox) and not sandbox.wanted:
                await ctx.ask("run a command that no sandbox confines", [params.command])
            return await self._run(params, ctx, sandbox, folder)
        finally:
            os.close(folder)

    async def _run(self, params: ShellParams, ctx: Context[Any], sandbox: Sandbox, folder: int) -> str:

        argv = [_shell(), "-c", _not_an_option(params.command)]
        place = self.workspace.place(params.workdir)
        named = str(Path(place.root.path, place.path))
        env = self._environment(confined=not isinstance(sandbox, NoSandbox))
        try:
            launch = await _launched(partial(sandbox.launch, argv, cwd=named, env=env))
        except SandboxError as refused:
            raise ToolError(
                f"The command was not started, for it could not be confined: {refused}."
            ) from None
        reporter = Reporter(ctx)
        try:
            outcome = await run(
                launch.argv,
                cwd=self._cwd(folder, named),
                env=launch.env,
                timeout=params.timeout,
                keep=KEPT,
                grace=self.grace,
                on_output=reporter.output,
                pass_fds=launch.pass_fds,
                on_start=launch.started,
            )
        except OSError as refused:
            raise ToolError(f"The command could not be started: {refused.strerror}.") from None
        finally:
            launch.close()
        denial = sandbox.explain(outcome.code, outcome.output.ending(EXPLAINED), launch)
        reporter.end(outcome, denial)
        return _told(outcome, params.timeout, _refusals(denial, launch, self.workspace.root.path))

    def _chosen(self) -> Sandbox:
        if self.sandbox is None:
            self.sandbox = choose(self.workspace.root.path)
        return self.sandbox

    def _environment(self, *, confined: bool) -> dict[str, str]:
        if confined:
            return environment(
                os.environ, passed=self.passthrough, added={"PATH": _path(), **SET_ENV_VARS, **self.env}
            )
        passed = {
            name: os.environ[name] for name in (*SAFE_ENV_VARS, *self.passthrough) if name in os.environ
        }
        return {**passed, "PATH": _path(), **SET_ENV_VARS, **self.env}

    def _cwd(self, folder: int, named: str) -> str:
        """The folder that was opened, whatever its name leads to by now, where the system can name it so."""
        pinned = f"/proc/self/fd/{folder}"
        return pinned if Path(pinned).exists() else named


async def _launched(prepare: Callable[[], Launch]) -> Launch:
    """Prepare a launch in a thread, for it looks through folders; if nobody waits for it any more, close it."""
    import asyncio

    preparing = asyncio.ensure_future(asyncio.to_thread(prepare))
    try:
        return await asyncio.shield(preparing)
    except asyncio.CancelledError:
        preparing.add_done_callback(
            lambda done: None if done.cancelled() or done.exception() else done.result().close()
        )
        raise


class Reporter:
    """Tells the person what comes, not more often than one can look."""

    def __init__(self, ctx: Context[Any]) -> None:
        self.ctx = ctx
        self.last = 0.0

    def output(self, kept: HeadTail) -> None:
        now = time.monotonic()
        if now - self.last >= REPORT_EVERY:
            self.last = now
            self.ctx.report(result={"output": kept.ending(PREVIEW)})

    def end(self, outcome: Outcome, denial: Denial | None) -> None:
        """What came of it; after a refusal by the sandbox also what would allow it, which is the person's to give."""
        result: dict[str, Any] = {
            "output": outcome.output.ending(PREVIEW),
            "exit_code": outcome.code,
            "seconds": round(outcome.seconds, 3),
        }
        if denial is None:
            self.ctx.report(result=result)
            return
        result["refused"] = {"kind": denial.kind, "target": denial.target, "wider": denial.wider}
        self.ctx.report(
            tip=denial.words + (f" To {denial.wider}, widen it." if denial.wider else ""), result=result
        )


def _refusals(denial: Denial | None, launch: Launch, root: str) -> list[str]:
    """What the sandbox did, for the model: paths as it knows them."""
    said = [denial.words] if denial else []
    if launch.restored:
        said.append(f"Put back as they were, for commands may not change them: {', '.join(launch.restored)}.")
    return [words.replace(f"{root}/", "") for words in said]


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


def _shell() -> str:
    return shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh"


def _not_an_option(command: str) -> str:
    return f" {command}" if command[0] in "-+" else command


def _told(outcome: Outcome, timeout: int, refusals: list[str]) -> str:
    text = outcome.output.text().rstrip()
    if outcome.code is None:
        if len(text) > ON_TIMEOUT:
            text = "[...]" + text[-ON_TIMEOUT:]
        if refusals:
            text = f"{text}\n[sandbox: {' '.join(refusals)}]".lstrip()
        raise ToolError(
            f"The command was stopped because it ran longer than {timeout} seconds. Give it a longer timeout "
            f"(at most {MAX_TIMEOUT}) if it needs one. What it printed:\n{text or '(nothing)'}"
        )
    notes: list[str] = []
    if outcome.code < 0:
        notes.append(f"ended by signal {-outcome.code} ({_signal_name(-outcome.code)})")
    elif outcome.code:
        notes.append(f"exit code {outcome.code}")
    if outcome.code or outcome.seconds >= WORTH_TELLING:
        notes.append(f"{outcome.seconds:.1f} s")
    if outcome.left:
        notes.append(f"stopped what it left running in the background ({_processes(outcome.left)})")
    body = text or "(no output)"
    if refusals:
        body += f"\n\n[sandbox: {' '.join(refusals)} This was not your command's fault; do not try to get around it.]"
    return body if not notes else f"{body}\n\n[{'; '.join(notes)}]"


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
