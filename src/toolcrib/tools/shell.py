"""`shell`: runs a command in the workspace to its end, in a sandbox.

A command takes three steps, in the order of this file. It is *judged* before anything runs: a command that was proved
plain runs without asking where a sandbox holds, one that would destroy the host never runs, and the policy decides
on all others. It is *launched*: a proved one as its plan, without a shell, any other one by bash. Everything that it
started ends with it; only where a caller passed `NoSandbox` does a process that detached itself stay. If it fails, that
is *explained*: where the sandbox refused something, a person may allow it, and the command runs again.

Every process of the machine can read a command line, so a reference to a secret becomes a variable of the environment.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, PrivateAttr

from toolcrib.access import Access, Confinement, Reach
from toolcrib.command.explain import (
    MAX_PERMISSIONS,
    PermissionEscalation,
    Reporter,
    explain_failure,
    preview_text,
    result_text,
    sandbox_sentences,
)
from toolcrib.command.explain.scripts import digest_of, files_of_code, shown_code
from toolcrib.command.judge import Judgement, accesses_of, judge, paths, why
from toolcrib.command.judge.links import Links
from toolcrib.command.judge.repository_history import REMOVES_HISTORY, removes_history
from toolcrib.command.launch import (
    CommandLine,
    DeniedPathsInSandbox,
    Finished,
    OpenFolder,
    command_environment,
    run_command,
)
from toolcrib.command.launch.contained import (
    MET,
    check_contained,
    contained_accesses,
    history_denial,
    keep_history,
)
from toolcrib.command.sandbox import Denial, NoSandbox, Sandbox, SandboxError, SandboxInForce
from toolcrib.effect import Effect
from toolcrib.errors import ToolError, as_tuple
from toolcrib.facts import MaxOutput
from toolcrib.question import Doubt, Preview
from toolcrib.secrets.references import REFERENCE
from toolcrib.secrets.variables import PREFIX, as_variables
from toolcrib.tool import Tool
from toolcrib.tools.workspace_paths import WORDS
from toolcrib.visible import spelled_out

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.tools.workspace import Workspace

DEFAULT_TIMEOUT = 120
MAX_TIMEOUT = 600
MAX_COMMAND = 120_000  # bytes; the system's own limit is a little above
NO_SANDBOX = "no sandbox works here, so nothing would limit it"


class ShellParams(BaseModel):
    command: str = Field(description="The command line, for bash.")
    timeout: int = Field(
        DEFAULT_TIMEOUT, ge=1, le=MAX_TIMEOUT, description="Seconds after which it is stopped."
    )
    workdir: str = Field(".", description="Folder to run it in, relative to the workspace.")
    _secrets: dict[str, str] = PrivateAttr(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandToRun:
    """A command line as it is run (`text`), and what was found out about it.

    `secrets` are {variable: name of the secret}. `folder` is where it runs, from the workspace's root; `inside` says
    whether that folder belongs to the workspace itself.
    """

    text: str
    secrets: Mapping[str, str]
    folder: str
    judgement: Judgement
    inside: bool


class Shell(
    Tool[ShellParams, str],
    name="shell",
    effect=Effect.DESTRUCTIVE,
    secrets=("command",),
    title="Shell",
    category="shell",
    timeout=MAX_TIMEOUT + 30.0,
    approval_ignores=("timeout",),
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
        """`env` is set for commands, `passthrough` names further variables of this process that they get.

        Without a `sandbox`, the best one that works here is chosen at the first command
        (`toolcrib.command.sandbox.choose`: commands may write to the workspace, and there is no network). To go without
        a sandbox, pass `NoSandbox()`. A level that is set on the workspace counts in either case.
        """
        self.workspace = workspace
        self.sandbox = sandbox
        self.env = dict(env or {})
        self.passthrough = as_tuple("passthrough", passthrough)
        self.grace = grace
        root = workspace.root.path
        self._in_force = SandboxInForce(root, sandbox)
        self._denied_paths = DeniedPathsInSandbox(root)
        self._escalation = PermissionEscalation(root)

    def with_secrets(self, params: ShellParams, values: Mapping[str, str]) -> ShellParams:
        """The same params with the values of secrets, which only become a part of the command's environment."""
        made = params.model_copy()
        made._secrets = dict(values)
        return made

    # Judge: what the command would do, and who decides on it.

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
        if isinstance(problem := as_variables(params.command), str):
            return f"command: {problem}."
        judgement = self._judge(params).judgement
        if judgement.verdict == "deny":
            return f"The command was not run and never will be, whoever asks for it: {judgement.reason}."
        try:
            self._sandbox_now()
        except SandboxError as refused:
            return f"No command can be run now: {refused}."
        return None

    def effect_for(self, params: ShellParams) -> Effect:
        judgement = self._judge(params).judgement
        if judgement.verdict != "plain" or not self._is_confined():
            return self.facts.effect
        # What is proved and not a read runs the project's own checks, which may write there.
        return Effect.READ if judgement.effect == "read" else Effect.WRITE

    def accesses(self, params: ShellParams) -> tuple[Access, ...]:
        command = self._judge(params)
        judgement = command.judgement
        try:
            sandbox = self._sandbox_now()
        except SandboxError:  # no command will run
            sandbox = None
        # Code of the project runs without asking only where something confines it.
        confined = self._is_confined() and (judgement.effect == "read" or not isinstance(sandbox, NoSandbox))
        unasked = judgement.verdict != "plain" or confined
        found = accesses_of(command.text, judgement, command.folder, unasked=unasked)
        to_decide = self._denied_paths.accesses_to_decide(found, judgement, sandbox)
        leads = (_through_link(target) for target in judgement.leads)
        decided = (*self.workspace.with_targets(to_decide), *leads)
        keeper = self._in_force.keeper(self.workspace.level)
        if not keeper or not command.inside or command.secrets:
            return decided
        return contained_accesses(decided, judgement, Confinement(self.workspace.root.path, keeper))

    def doubt(self, params: ShellParams) -> Doubt | None:
        command = self._judge(params)
        secrets = tuple(command.secrets.values())
        judgement = command.judgement
        if secrets:
            # Judged as if a word stood for each secret: the reason is what the command does with it.
            in_words = {"command": REFERENCE.sub("secret", params.command)}
            judgement = self._judge(params.model_copy(update=in_words)).judgement
        reason = spelled_out(why(judgement, secrets))
        if not self._is_confined():
            return Doubt(f"{NO_SANDBOX}; {reason}" if reason else NO_SANDBOX, must_ask=True)
        if removes_history(command.judgement, params.command):
            return Doubt(REMOVES_HISTORY, must_ask=True)
        return Doubt(reason) if reason else None

    def preview(self, params: ShellParams) -> Preview:
        """What exactly would run, bound to the very folder that it would run in and to the code that it runs."""
        command = self._judge(params)
        folder = self.workspace.stat(params.workdir)
        digest = folder.identity if folder is not None else "no such folder"
        text = preview_text(params.command, command.judgement, command.folder, self._sandbox_now())
        code = files_of_code(params.command, str(Path(self.workspace.root.path, command.folder)))
        if code:
            text, digest = "\n".join([text, *shown_code(code)]), f"{digest}:{digest_of(code)}"
        return Preview(text, digest)

    def _judge(self, params: ShellParams) -> CommandToRun:
        try:
            place = self.workspace.place(params.workdir)
        except ToolError:  # no such folder: the command will not run
            return _judged(params.command, self.workspace.root.path, params.workdir, False)
        if place.root is not self.workspace.root:
            return _judged(params.command, self.workspace.root.path, place.shown, False)
        inside = paths.objection(place.path) is None
        root = self.workspace.root.path
        command = _judged(params.command, root, place.path, inside)
        if command.judgement.verdict != "plain":
            return command
        folder = str(Path(root, place.path))
        # Where names lead is looked up each time, and again by the plan just before a program starts.
        judgement = judge(command.text, workspace=folder, links=Links(root, folder))
        return replace(command, judgement=judgement)

    def _sandbox_now(self) -> Sandbox:
        """The sandbox at the level of the workspace. Raises SandboxError if it cannot keep to that."""
        return self._in_force.at(self.workspace.level)

    def _is_confined(self) -> bool:
        return self._in_force.confines(self.workspace.level)

    def unavailable(self) -> str | None:
        return "commands are not run on Windows" if sys.platform == "win32" else None

    # Launch: in a folder that stays open, in the sandbox, without what deny rules take away.

    async def execute(self, params: ShellParams, ctx: Context[Any]) -> str:
        import asyncio

        if problem := await asyncio.to_thread(self.precheck, params):
            raise ToolError(problem)
        ctx.check_cancelled()
        place = self.workspace.place(params.workdir)
        handle = self.workspace.open_folder(params.workdir)
        assert isinstance(handle, int)  # else the tool is unavailable
        folder = OpenFolder(handle, str(Path(place.root.path, place.path)))
        try:
            self._refuse_link(folder, params)
            sandbox = self._sandbox_now()
            if ctx.must_be_confined:
                check_contained(sandbox)
            if isinstance(sandbox, NoSandbox) and not sandbox.wanted and not ctx.approved:
                await ctx.ask("run a command that no sandbox confines", [params.command])
            return await self._run(params, ctx, sandbox, folder)
        finally:
            os.close(folder.descriptor)

    def _refuse_link(self, folder: OpenFolder, params: ShellParams) -> None:
        """Rules decided on the folder's name, so it must not lead to another folder. Raises ToolError."""
        try:
            real = Path(os.readlink(f"/proc/self/fd/{folder.descriptor}"))  # noqa: PTH115 - of a descriptor
        except OSError:  # a system without /proc
            return
        if real != Path(folder.path):
            root = self.workspace.place(params.workdir).root.path
            where = f" Give {real.relative_to(root)} as workdir." if real.is_relative_to(root) else ""
            raise ToolError(f"{params.workdir} is a link to another folder.{where}")

    async def _run(self, params: ShellParams, ctx: Context[Any], sandbox: Sandbox, folder: OpenFolder) -> str:
        """Runs the command, and again after each permission that a person gives it."""
        root = self.workspace.root.path
        reporter = Reporter(ctx, root)
        reverted: dict[str, None] = {}
        allowed: list[str] = []
        level = sandbox.level  # permissions are remembered beside this one
        sandbox = await self._escalation.remembered(ctx, sandbox)
        while True:
            finished, denial = await self._launch(params, sandbox, folder, reporter)
            outcome = finished.outcome
            reverted.update(dict.fromkeys(finished.reverted))
            reporter.end(outcome, denial, finished.reverted)
            wider: Sandbox | None = None
            if ctx.must_be_confined and outcome.code:
                denial = history_denial(outcome.output.ending(MET)) or denial
            sentences = sandbox_sentences(denial, tuple(reverted), root, self._why_denied(ctx, denial))
            if denial is not None and outcome.code is not None and len(allowed) < MAX_PERMISSIONS:
                try:
                    wider = await self._escalation.offer(ctx, sandbox, level, denial, params.command, outcome)
                except ToolError as refused:
                    sentences.append(refused.message)
            if denial is None or wider is None:
                return result_text(outcome, params.timeout, MAX_TIMEOUT, sentences, allowed)
            allowed.append(
                f"{denial.message} The user allowed it, and the command was run again from its start."
            )
            sandbox = wider
            ctx.report(tip="allowed; run again from its start")
            ctx.check_cancelled()

    def _why_denied(self, ctx: Context[Any], denial: Denial | None) -> str:
        """The reason of the deny rule that the sandbox kept, if one was met and gives a reason."""
        if denial is None or denial.kind not in ("read", "write"):
            return ""
        path = denial.target.removeprefix(f"{self.workspace.root.path}/")
        return ctx.why_denied(Access(Reach(denial.kind), path))

    async def _launch(
        self, params: ShellParams, sandbox: Sandbox, folder: OpenFolder, reporter: Reporter
    ) -> tuple[Finished, Denial | None]:
        """One run of the command to its end, and what the sandbox refused it."""
        command = self._judge(params)
        for target in command.judgement.leads:
            if not reporter.ctx.permits(_through_link(target)):
                raise ToolError(WORDS[errno.ESTALE].format(path=target))
        sandbox = await self._denied_paths.hide(reporter.ctx, sandbox, params.command, command.judgement)
        if reporter.ctx.must_be_confined:
            sandbox = keep_history(sandbox, self.workspace.root.path)
        if missing := [name for name in command.secrets.values() if name not in params._secrets]:
            raise ToolError(f"Nothing was run: the secret {missing[0]!r} has no value here.")
        confined = not isinstance(sandbox, NoSandbox)
        line = CommandLine(
            command.text,
            command.judgement,
            self.workspace.root.path,
            timeout=params.timeout,
            env=command_environment(confined=confined, passed=self.passthrough, added=self.env),
            secrets={variable: params._secrets[name] for variable, name in command.secrets.items()},
            grace=self.grace,
        )
        try:
            finished = await run_command(line, sandbox, folder, reporter.output)
        except SandboxError as refused:
            raise ToolError(
                f"The command was not started, for it could not be confined: {refused}."
            ) from None
        except OSError as refused:
            raise ToolError(f"The command could not be started: {refused.strerror}.") from None
        return finished, explain_failure(finished, sandbox, command.judgement, params.command)


def _through_link(target: str) -> Access:
    """The access to what a link among the operands of a command leads to: a person decides on it by its own name."""
    return Access(Reach.READ, target, real=True, secret=True)


@lru_cache(64)
def _judged(command: str, root: str, folder: str, inside: bool) -> CommandToRun:
    """Judges a command in a folder. `inside` says whether the folder belongs to the workspace itself."""
    spelled = as_variables(command)
    text, secrets = (command, {}) if isinstance(spelled, str) else spelled  # precheck refuses the former
    judgement = judge(text, cwd_is_workspace=inside, workspace=str(Path(root, folder)))
    if PREFIX in text and judgement.verdict == "plain":
        judgement = Judgement("ask", "it uses a secret", programs=judgement.programs)
    return CommandToRun(text, secrets, folder, judgement, inside)
