"""`shell`: a command in the workspace, run to its end, in a sandbox.

A command that was proved plain runs as what was proved, without a shell and, where a sandbox holds, without
asking; one that would destroy the host never runs; all others are the policy's to decide on.
What a command starts ends with it, whatever it did to get away. Only where a caller passed `NoSandbox` itself
does a process that detached itself stay. Where no sandbox works, each command is asked about. A command line is
seen by every process of the machine, so a reference to a secret becomes a variable of the environment.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, PrivateAttr

from toolcrib.access import Access
from toolcrib.command.launch.plan_host import PlanHost, launched, pinned, run_as_plan
from toolcrib.command.launch.process import Outcome, run
from toolcrib.command.sandbox import (
    Denial,
    Files,
    Launch,
    Level,
    NoSandbox,
    Sandbox,
    SandboxError,
    choose,
    environment,
)
from toolcrib.effect import Effect
from toolcrib.errors import ToolError, as_tuple
from toolcrib.facts import MaxOutput
from toolcrib.question import Doubt, Preview
from toolcrib.secrets.references import REFERENCE
from toolcrib.secrets.variables import PREFIX, as_variables
from toolcrib.shell import Judgement, judge, paths
from toolcrib.tool import Tool
from toolcrib.tools.shell_accesses import accesses_of
from toolcrib.tools.shell_hints import ends_history, quiet
from toolcrib.tools.shell_reasons import why
from toolcrib.tools.shell_rules import Withholding, reading
from toolcrib.tools.shell_wider import MOST, Wider
from toolcrib.tools.shell_words import Reporter, refusals, shown, told, visible

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.workspace import Workspace

DEFAULT_TIMEOUT = 120
MAX_TIMEOUT = 600
KEPT = 1 << 20  # bytes of output kept: half from its beginning, half from its end
MAX_COMMAND = 120_000  # bytes; the system's own limit is a little above
EXPLAINED = 20_000  # bytes from the end of the output that are looked through for a refusal
NO_SANDBOX = "no sandbox works here, so nothing would limit it"

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
    _secrets: dict[str, str] = PrivateAttr(default_factory=dict)


class Shell(
    Tool[ShellParams, str],
    name="shell",
    effect=Effect.DESTRUCTIVE,
    secrets=("command",),
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

        Without a `sandbox` it is the best that works here (`toolcrib.command.sandbox.choose`: the workspace may be
        written to, no network), found at the first command. To go without one, pass `NoSandbox()`. A level that
        is set on the workspace counts for either.
        """
        self.workspace = workspace
        self.sandbox = sandbox
        self.env = dict(env or {})
        self.passthrough = as_tuple("passthrough", passthrough)
        self.grace = grace
        self._wider = Wider(workspace.root.path)
        self._choosing = threading.Lock()
        self._current: tuple[Sandbox | None, Level | None, Sandbox] | None = None
        self._confined: tuple[Sandbox, bool] | None = None
        self._rules = Withholding(workspace.root.path)

    def with_secrets(self, params: ShellParams, values: Mapping[str, str]) -> ShellParams:
        """The same command, with the values beside it: they become part of its environment alone."""
        made = params.model_copy()
        made._secrets = dict(values)
        return made

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
        if isinstance(spelled := as_variables(params.command), str):
            return f"command: {spelled}."
        judgement = self._judged(params)
        if judgement.verdict == "deny":
            return f"The command was not run and never will be, whoever asks for it: {judgement.reason}."
        try:
            self._chosen()
        except SandboxError as refused:
            return f"No command can be run now: {refused}."
        return None

    def effect_for(self, params: ShellParams) -> Effect:
        judgement = self._judged(params)
        if judgement.verdict != "plain" or not self._confines():
            return self.facts.effect
        # A project's own checks may write there.
        return Effect.READ if judgement.effect == "read" else Effect.WRITE

    def accesses(self, params: ShellParams) -> tuple[Access, ...]:
        judgement = self._judged(params)
        unasked = judgement.verdict != "plain" or self._holds(judgement)
        found = accesses_of(_spelled(params.command)[0], judgement, self._folder(params)[0], unasked=unasked)
        return tuple(self.workspace.with_targets(self._rules.met(found, judgement, self._chosen)))

    def doubt(self, params: ShellParams) -> Doubt | None:
        judgement, secrets = self._judged(params), tuple(_spelled(params.command)[1].values())
        # As if a word stood for each secret: what is asked about is what is done with it.
        in_words = {"command": REFERENCE.sub("secret", params.command)}
        known = self._judged(params.model_copy(update=in_words)) if secrets else judgement
        reason = visible(why(known, secrets))
        if not self._confines():
            return Doubt(f"{NO_SANDBOX}; {reason}" if reason else NO_SANDBOX, must_ask=True)
        return ends_history(judgement, params.command) or (Doubt(reason) if reason else None)

    def preview(self, params: ShellParams) -> Preview:
        """What exactly would run, bound to the very folder that it would run in."""
        folder = self.workspace.stat(params.workdir)
        digest = f"{folder.st_dev}:{folder.st_ino}" if folder is not None else "no such folder"
        text = shown(params.command, self._judged(params), self._folder(params)[0], self._chosen())
        return Preview(text, digest)

    def _folder(self, params: ShellParams) -> tuple[str, bool]:
        """Where it would run, from the workspace's root, and whether what lies there is the workspace's own."""
        try:
            place = self.workspace.place(params.workdir)
        except ToolError:  # it will not run at all
            return params.workdir, False
        if place.root is not self.workspace.root:
            return place.shown, False
        return place.path, paths.trouble(place.path) is None

    def _judged(self, params: ShellParams) -> Judgement:
        return _judged(_spelled(params.command)[0], self.workspace.root.path, *self._folder(params))

    async def execute(self, params: ShellParams, ctx: Context[Any]) -> str:
        import asyncio

        if problem := await asyncio.to_thread(self.precheck, params):
            raise ToolError(problem)
        ctx.check_cancelled()
        folder = self.workspace.open_folder(params.workdir)
        try:
            self._is_named_so(folder, params)
            sandbox = self._chosen()
            if isinstance(sandbox, NoSandbox) and not sandbox.wanted and not ctx.approved:
                await ctx.ask("run a command that no sandbox confines", [params.command])
            return await self._run(params, ctx, sandbox, folder)
        finally:
            os.close(folder)

    async def _run(self, params: ShellParams, ctx: Context[Any], sandbox: Sandbox, folder: int) -> str:
        place = self.workspace.place(params.workdir)
        named = str(Path(place.root.path, place.path))
        reporter = Reporter(ctx, self.workspace.root.path)
        restored: dict[str, None] = {}
        notes: list[str] = []
        level = sandbox.level  # what was allowed once was allowed beside just this
        sandbox = await self._wider.held(ctx, sandbox)
        while True:
            outcome, denial, back = await self._once(params, sandbox, folder, named, reporter)
            restored.update(dict.fromkeys(back))
            reporter.end(outcome, denial, back)
            if denial is None or outcome.code is None or len(notes) == MOST:
                break
            try:
                wider = await self._wider.offered(ctx, sandbox, level, denial, params.command, outcome)
            except ToolError as refused:
                said = refusals(denial, tuple(restored), self.workspace.root.path)
                return told(outcome, params.timeout, MAX_TIMEOUT, [*said, refused.message], notes)
            if wider is None:
                break
            notes.append(
                f"{denial.message} The user allowed it, and the command was run again from its start."
            )
            sandbox = wider
            ctx.report(tip="allowed; run again from its start")
            ctx.check_cancelled()
        said = refusals(denial, tuple(restored), self.workspace.root.path)
        return told(outcome, params.timeout, MAX_TIMEOUT, said, notes)

    async def _once(
        self, params: ShellParams, sandbox: Sandbox, folder: int, named: str, reporter: Reporter
    ) -> tuple[Outcome, Denial | None, list[str]]:
        """One run to its end, whether the sandbox refused it something, and what was put back after it."""
        judgement = self._judged(params)
        sandbox = await self._rules.kept_to(reporter.ctx, sandbox, params.command, judgement)
        try:
            if judgement.verdict == "plain" and judgement.plan is not None:
                ran = self._as_plan(params, judgement, sandbox, folder, named, reporter)
            else:
                ran = self._by_shell(params, sandbox, folder, named, reporter)
            outcome, launch, restored = await ran
        except SandboxError as refused:
            raise ToolError(
                f"The command was not started, for it could not be confined: {refused}."
            ) from None
        except OSError as refused:
            raise ToolError(f"The command could not be started: {refused.strerror}.") from None
        denial = launch and sandbox.explain(outcome.code, outcome.output.ending(EXPLAINED), launch)
        return outcome, denial or quiet(judgement, params.command, outcome, sandbox, launch), restored

    async def _as_plan(
        self,
        params: ShellParams,
        judgement: Judgement,
        sandbox: Sandbox,
        folder: int,
        named: str,
        reporter: Reporter,
    ) -> tuple[Outcome, Launch | None, list[str]]:
        assert judgement.plan is not None
        level = reading(sandbox.level) if judgement.effect == "read" else None
        host = PlanHost(named, folder, sandbox, level=level, grace=self.grace)
        outcome = await run_as_plan(
            judgement.plan,
            host,
            env=self._environment(confined=not isinstance(sandbox, NoSandbox)) | self._found_in(judgement),
            timeout=params.timeout,
            keep=KEPT,
            on_output=reporter.output,
        )
        if host.refused:
            raise SandboxError(host.refused)
        return outcome, host.launch, host.restored

    async def _by_shell(
        self, params: ShellParams, sandbox: Sandbox, folder: int, named: str, reporter: Reporter
    ) -> tuple[Outcome, Launch, list[str]]:
        command, secrets = _spelled(params.command)
        if missing := [name for name in secrets.values() if name not in params._secrets]:
            raise ToolError(f"Nothing was run: the secret {missing[0]!r} has no value here.")
        argv = [_shell(), "-c", _not_an_option(command)]
        env = self._environment(confined=not isinstance(sandbox, NoSandbox))
        env |= {variable: params._secrets[name] for variable, name in secrets.items()}
        launch = await launched(partial(sandbox.launch, argv, cwd=named, env=env))
        try:
            outcome = await run(
                launch.argv,
                cwd=pinned(folder, named),
                env=launch.env,
                timeout=params.timeout,
                keep=KEPT,
                grace=self.grace,
                on_output=reporter.output,
                pass_fds=launch.pass_fds,
                on_start=launch.started,
            )
        finally:
            launch.close()
        return outcome, launch, launch.reverted()

    def _is_named_so(self, folder: int, params: ShellParams) -> None:
        """Rules looked at the folder's name, so it must not be another folder's that a link leads to."""
        place = self.workspace.place(params.workdir)
        try:
            real = Path(os.readlink(f"/proc/self/fd/{folder}"))  # noqa: PTH115 - of a descriptor
        except OSError:  # no system to ask
            return
        if real != Path(place.root.path, place.path):
            known = real.is_relative_to(place.root.path)
            where = f" Give {real.relative_to(place.root.path)} as workdir." if known else ""
            raise ToolError(f"{params.workdir} is a link to another folder.{where}")

    def _chosen(self) -> Sandbox:
        """The sandbox at the level that is in force now. Raises SandboxError where it cannot keep that."""
        given, level = self.sandbox, self.workspace.level
        kept = self._current
        if kept is None or kept[0] is not given or kept[1] != level:
            with self._choosing:
                kept = self._current = (given, level, _at(given, level, self.workspace.root.path))
        return kept[2]

    def _confines(self) -> bool:
        """Whether commands are kept from anything, or the operator said in so many words that they need not be."""
        try:
            sandbox = self._chosen()
        except SandboxError:  # it will not run at all
            return False
        if self._confined is None or self._confined[0] is not sandbox:
            holds = sandbox.wanted if isinstance(sandbox, NoSandbox) else sandbox.report().confines
            self._confined = (sandbox, holds)
        return self._confined[1]

    def _holds(self, judgement: Judgement) -> bool:
        """Whether a command that was proved may run unasked: code of the project's only where something holds it."""
        return self._confines() and (judgement.effect == "read" or not isinstance(self._chosen(), NoSandbox))

    def _found_in(self, judgement: Judgement) -> dict[str, str]:
        """The PATH of a command that was proved by its programs' names: none of the project's own has such a name."""
        return {"PATH": _path(without=self.workspace.root.path)} if judgement.effect == "read" else {}

    def _environment(self, *, confined: bool) -> dict[str, str]:
        if confined:
            return environment(
                os.environ, passed=self.passthrough, added={"PATH": _path(), **SET_ENV_VARS, **self.env}
            )
        passed = {
            name: os.environ[name] for name in (*SAFE_ENV_VARS, *self.passthrough) if name in os.environ
        }
        return {**passed, "PATH": _path(), **SET_ENV_VARS, **self.env}


def _at(given: Sandbox | None, level: Level | None, root: str) -> Sandbox:
    """A sandbox for a level: the one that was given, or the best that works here."""
    if given is None:
        return choose(root, level)
    if level is None or given.level == level:
        return given
    if level.files is Files.OFF:
        return NoSandbox()
    return choose(root, level) if isinstance(given, NoSandbox) else given.at(level)


@lru_cache(64)
def _judged(command: str, root: str, folder: str, inside: bool) -> Judgement:
    judgement = judge(command, cwd_is_workspace=inside, workspace=str(Path(root, folder)))
    if PREFIX in command and judgement.verdict == "plain":
        return Judgement("ask", "it uses a secret", programs=judgement.programs)
    return judgement


def _spelled(command: str) -> tuple[str, dict[str, str]]:
    """The command as it is run, and {variable: secret's name}; as it stands where its precheck refuses it."""
    made = as_variables(command)
    return (command, {}) if isinstance(made, str) else made


def _path(without: str = "") -> str:
    """Where programs are looked for: never in a folder that is named from where we stand, or lies in `without`."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    known = [folder for folder in folders if Path(folder).is_absolute()]
    known = [folder for folder in known if not without or not Path(folder).resolve().is_relative_to(without)]
    return os.pathsep.join(known) or os.defpath


def _shell() -> str:
    return shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh"


def _not_an_option(command: str) -> str:
    return f" {command}" if command[0] in "-+" else command
