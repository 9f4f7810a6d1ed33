"""How `shell` judges, launches and explains a command. Loaded at the first command: lists of tools need none of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.access import Access, Confinement, Reach
from toolcrib.command.background import BackgroundProcess, LocalCommand, Processes
from toolcrib.command.explain import (
    MAX_PERMISSIONS,
    PermissionEscalation,
    RefusedInBackground,
    Reporter,
    explain_failure,
    preview_text,
    result_text,
    sandbox_sentences,
)
from toolcrib.command.explain.scripts import digest_of, files_of_code, shown_code, with_code
from toolcrib.command.judge import accesses_of, judge, paths, why
from toolcrib.command.judge.links import Links
from toolcrib.command.judge.repository_history import REMOVES_HISTORY, removes_history
from toolcrib.command.launch import (
    CommandLine,
    DeniedPathsInSandbox,
    Finished,
    OpenFolder,
    command_environment,
    run_command,
    shell_words,
)
from toolcrib.command.launch.contained import (
    MET,
    check_contained,
    contained_accesses,
    history_denial,
    keep_history,
)
from toolcrib.command.launch.possible_hosts import possible_hosts
from toolcrib.command.sandbox import Denial, Level, NoSandbox, Sandbox, SandboxError, SandboxInForce
from toolcrib.dataclass import replace
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.question import Doubt, Preview
from toolcrib.result import ToolResult
from toolcrib.secrets.references import REFERENCE
from toolcrib.tools.shell_background import started_result
from toolcrib.tools.shell_command import (
    CommandToRun,
    as_asked,
    judged,
    problem_of_command,
    problem_of_variables,
    without_references,
)
from toolcrib.tools.shell_params import MAX_TIMEOUT, ShellParams, ShellResult
from toolcrib.tools.workspace_paths import WORDS
from toolcrib.visible import spelled_out

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from toolcrib.command.launch import ShellKind
    from toolcrib.context import Context
    from toolcrib.tools.workspace import Workspace

NO_SANDBOX = "no sandbox works here, so nothing would limit it"


class ShellWork:
    """What a `Shell` does with a command; the arguments are those of `Shell`, and its declared effect."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        sandbox: Sandbox | None,
        env: Mapping[str, str],
        passthrough: Collection[str],
        grace: float,
        kind: ShellKind,
        effect: Effect,
    ) -> None:
        self.workspace = workspace
        self.env = env
        self.passthrough = passthrough
        self.grace = grace
        self.kind: ShellKind = kind
        self.effect = effect
        root = workspace.root.path
        self._in_force = SandboxInForce(root, sandbox)
        self._denied_paths = DeniedPathsInSandbox(root)
        self._escalation = PermissionEscalation(root)

    # Judge: what the command would do, and who decides on it.

    def precheck(self, params: ShellParams) -> str | None:
        if wrong := problem_of_command(params.command) or problem_of_variables(params.env):
            return wrong
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
            return self.effect
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
        confined = self._is_confined() if judgement.effect == "read" else self._confines_code()
        unasked = judgement.verdict != "plain" or confined
        found = accesses_of(command.shown, judgement, command.folder, unasked=unasked)
        found = (*found, *possible_hosts(judgement, sandbox))
        to_decide: Iterable[Access] = self._denied_paths.accesses_to_decide(found, judgement, sandbox)
        leads = (_through_link(target) for target in judgement.leads)
        folder = str(Path(self.workspace.root.path, command.folder))
        if judgement.verdict == "ask":
            to_decide = with_code(to_decide, files_of_code(params.command, folder))
        secret = self._denied_paths.secrets_to_decide(judgement, sandbox, folder)
        decided = (*self.workspace.with_targets(to_decide), *leads, *secret)
        keeper = self._in_force.keeper(self.workspace.level)
        if not keeper or not command.inside or command.secrets or command.secrets_of_variables:
            return decided
        return contained_accesses(decided, judgement, Confinement(self.workspace.root.path, keeper), sandbox)

    def doubt(self, params: ShellParams) -> Doubt | None:
        command = self._judge(params)
        secrets = (*command.secrets.values(), *command.secrets_of_variables)
        judgement = command.judgement
        if secrets:
            # Judged as if a word stood for each secret: the reason is what the command does with it.
            judgement = self._judge(params.model_copy(update=without_references(params))).judgement
        reason = spelled_out(why(judgement, secrets))
        if not self._is_confined():
            return Doubt(f"{NO_SANDBOX}; {reason}" if reason else NO_SANDBOX, must_ask=True)
        if removes_history(command.judgement, command.shown):
            return Doubt(REMOVES_HISTORY, must_ask=True)
        return Doubt(reason) if reason else None

    def preview(self, params: ShellParams) -> Preview:
        """The exact command. An answer holds only for this folder, and for the present code that the command runs."""
        command = self._judge(params)
        folder = self.workspace.stat(params.workdir)
        digest = folder.identity if folder is not None else "no such folder"
        text = preview_text(params.command, command.judgement, command.folder, self._sandbox_now())
        if params.run_in_background:
            text = f"in the background, until it ends or the run is over\n{text}"
        code = files_of_code(params.command, str(Path(self.workspace.root.path, command.folder)))
        if code:
            text, digest = "\n".join([text, *shown_code(code)]), f"{digest}:{digest_of(code)}"
        return Preview(text, digest)

    def _judge(self, params: ShellParams) -> CommandToRun:
        root, asked = self.workspace.root.path, as_asked(params, self.kind)
        try:
            place = self.workspace.place(params.workdir)
        except ToolError:  # no such folder: the command will not run
            return judged(asked, root, params.workdir, False)
        if place.root is not self.workspace.root:
            return judged(asked, root, place.shown, False)
        command = judged(asked, root, place.path, paths.objection(place.path) is None)
        if command.judgement.verdict != "plain":
            return command
        folder = str(Path(root, place.path))
        # Where names lead is looked up each time, and again by the plan just before a program starts.
        judgement = judge(command.text, workspace=folder, links=Links(root, folder, self._confines_code()))
        return replace(command, judgement=judgement)

    def _sandbox_now(self) -> Sandbox:
        """The sandbox at the level of the workspace. Raises SandboxError if it cannot keep to that."""
        return self._in_force.at(self.workspace.level)

    def _is_confined(self) -> bool:
        return self._in_force.confines(self.workspace.level)

    def _confines_code(self) -> bool:
        return self._is_confined() and not isinstance(self._sandbox_now(), NoSandbox)

    # Launch: in a folder that stays open, in the sandbox, without what deny rules take away.

    async def execute(self, params: ShellParams, ctx: Context[Any]) -> ToolResult:
        import asyncio

        if problem := await asyncio.to_thread(self.precheck, params):
            raise ToolError(problem)
        ctx.check_cancelled()
        if params.description:
            ctx.report(tip=params.description)
        with self._opened(params) as folder:
            sandbox = self._sandbox_now()
            if ctx.must_be_confined:
                check_contained(sandbox)
            if isinstance(sandbox, NoSandbox) and not sandbox.wanted and not ctx.approved:
                await ctx.ask("run a command that no sandbox confines", [params.command])
            if params.run_in_background:
                return await self._start(params, ctx, sandbox, folder)
            return await self._run(params, ctx, sandbox, folder)

    @contextmanager
    def _opened(self, params: ShellParams) -> Generator[OpenFolder]:
        """Opens the folder of a command. Raises ToolError if there is no such folder, or a link leads to it."""
        place = self.workspace.place(params.workdir)
        handle = self.workspace.open_folder(params.workdir)
        assert isinstance(handle, int)  # else the tool is unavailable
        folder = OpenFolder(handle, str(Path(place.root.path, place.path)))
        try:
            self._refuse_link(folder, params)
            yield folder
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

    async def _start(
        self, params: ShellParams, ctx: Context[Any], sandbox: Sandbox, folder: OpenFolder
    ) -> ToolResult:
        """Starts the command in the background, where the run of this call owns it."""
        processes = ctx.of_run(Processes)
        processes.check_room()
        level = sandbox.level  # permissions are remembered beside this one
        sandbox = await self._escalation.remembered(ctx, sandbox)
        line, sandbox = await self._line(params, ctx, sandbox)
        process = self._started(params, ctx, line, sandbox, level, folder)
        return await started_result(process, ctx)

    def _started(
        self,
        params: ShellParams,
        ctx: Context[Any],
        line: CommandLine,
        sandbox: Sandbox,
        level: Level,
        folder: OpenFolder,
        allowed: int = 0,
    ) -> BackgroundProcess:
        runs = LocalCommand(line, sandbox, folder)
        root = self.workspace.root.path

        def explained() -> tuple[Denial | None, list[str]]:
            if (finished := runs.finished) is None:
                return None, []
            denial = explain_failure(finished, sandbox, line.judgement, params.command)
            why = self._why_denied(ctx, denial)
            return denial, sandbox_sentences(denial, tuple(finished.reverted), root, why)

        async def run_again(asking: Context[Any], denial: Denial) -> BackgroundProcess | None:
            finished = runs.finished
            if finished is None or finished.outcome.code is None or allowed >= MAX_PERMISSIONS:
                return None
            wider = await self._escalation.offer(
                asking, sandbox, level, denial, params.command, finished.outcome
            )
            if wider is None:
                return None
            # What was decided on is run again: the same line, without what deny rules took from its sandbox.
            with self._opened(params) as again:
                return self._started(params, asking, line, wider, level, again, allowed + 1)

        return ctx.of_run(Processes).start(
            runs,
            command=params.command,
            description=params.description,
            programs=line.judgement.programs,
            refused=RefusedInBackground(explained, run_again),
        )

    async def _run(
        self, params: ShellParams, ctx: Context[Any], sandbox: Sandbox, folder: OpenFolder
    ) -> ToolResult:
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
                text = result_text(
                    outcome,
                    params.seconds or 0,
                    MAX_TIMEOUT,
                    sentences,
                    allowed,
                    terminal=params.terminal,
                )
                return ToolResult(text, structured=asdict(ShellResult.of(outcome)))
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
        line, sandbox = await self._line(params, reporter.ctx, sandbox)
        try:
            finished = await run_command(line, sandbox, folder, reporter.output)
        except SandboxError as refused:
            raise ToolError(
                f"The command was not started, because it could not be confined: {refused}."
            ) from None
        except OSError as refused:
            raise ToolError(f"The command could not be started: {refused.strerror}.") from None
        return finished, explain_failure(finished, sandbox, line.judgement, params.command)

    async def _line(
        self, params: ShellParams, ctx: Context[Any], sandbox: Sandbox
    ) -> tuple[CommandLine, Sandbox]:
        """What is launched, and the sandbox without what deny rules take away. Raises ToolError."""
        import asyncio

        command = self._judge(params)
        for target in command.judgement.leads:
            if not ctx.permits(_through_link(target)):
                raise ToolError(WORDS[errno.ESTALE].format(path=target))
        about = command.shown, command.judgement
        sandbox = await self._denied_paths.hide(ctx, sandbox, *about)
        where = str(Path(self.workspace.root.path, command.folder))
        sandbox, withheld = await self._denied_paths.without_secrets(ctx, sandbox, *about, where)
        if ctx.must_be_confined:
            sandbox = await asyncio.to_thread(keep_history, sandbox, self.workspace.root.path)
        names = (*command.secrets.values(), *command.secrets_of_variables)
        if missing := [name for name in names if name not in params._secrets]:
            raise ToolError(f"Nothing was run: the secret {missing[0]!r} has no value here.")
        added = {**self.env, **({"TERM": "xterm"} if params.terminal else {})}
        line = CommandLine(
            command.text,
            command.judgement,
            self.workspace.root.path,
            timeout=params.seconds,
            env=command_environment(
                confined=not isinstance(sandbox, NoSandbox), passed=self.passthrough, added=added
            ),
            secrets={
                **{name: REFERENCE.sub(params.value_of, value) for name, value in params.env.items()},
                **{variable: params._secrets[name] for variable, name in command.secrets.items()},
            },
            grace=self.grace,
            shell=shell_words(self.kind),
            terminal=params.terminal,
            withheld=withheld,
            permits=None if ctx.denied_paths is None else ctx.permits,
        )
        return line, sandbox


def _through_link(target: str) -> Access:
    """The access to what a link among the operands of a command leads to: a person decides on it by its own name."""
    return Access(Reach.READ, target, real=True, secret=True)
