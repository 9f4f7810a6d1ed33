"""`shell`: a command in the workspace, run to its end.

What a command starts ends with it: background processes that still hold its output or its session are
stopped and the model is told; a server that is to stay has to be detached with setsid. `secrets` is empty
on purpose: a command line is seen by every process of the machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.errors import ToolError
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
    what it leaves running in the background is stopped. To leave a server running, detach it:
    setsid CMD >server.log 2>&1 &
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        env: Mapping[str, str] | None = None,
        passthrough: Collection[str] = (),
        grace: float = 2.0,
    ) -> None:
        """`env` is set for commands, `passthrough` names further variables of ours that they get."""
        self.workspace = workspace
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
        if problem := self.precheck(params):
            raise ToolError(problem)
        ctx.check_cancelled()
        folder = self.workspace.open_folder(params.workdir)
        reporter = Reporter(ctx)
        try:
            outcome = await run(
                [_shell(), "-c", _not_an_option(params.command)],
                cwd=self._cwd(folder, params.workdir),
                env=self._environment(),
                timeout=params.timeout,
                keep=KEPT,
                grace=self.grace,
                on_output=reporter.output,
            )
        except OSError as refused:
            raise ToolError(f"The command could not be started: {refused.strerror}.") from None
        finally:
            os.close(folder)
        reporter.end(outcome)
        return _told(outcome, params.timeout)

    def _environment(self) -> dict[str, str]:
        passed = {
            name: os.environ[name] for name in (*SAFE_ENV_VARS, *self.passthrough) if name in os.environ
        }
        passed.setdefault("PATH", os.defpath)
        return {**passed, **SET_ENV_VARS, **self.env}

    def _cwd(self, folder: int, workdir: str) -> str:
        """The folder that was opened, whatever its name leads to by now, where the system can name it so."""
        pinned = f"/proc/self/fd/{folder}"
        if Path(pinned).exists():
            return pinned
        place = self.workspace.place(workdir)
        return str(Path(place.root.path, place.path))


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

    def end(self, outcome: Outcome) -> None:
        self.ctx.report(
            result={
                "output": outcome.output.ending(PREVIEW),
                "exit_code": outcome.code,
                "seconds": round(outcome.seconds, 3),
            }
        )


def _shell() -> str:
    return shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh"


def _not_an_option(command: str) -> str:
    return f" {command}" if command[0] in "-+" else command


def _told(outcome: Outcome, timeout: int) -> str:
    text = outcome.output.text().rstrip()
    if outcome.code is None:
        if len(text) > ON_TIMEOUT:
            text = "[...]" + text[-ON_TIMEOUT:]
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
    return body if not notes else f"{body}\n\n[{'; '.join(notes)}]"


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
