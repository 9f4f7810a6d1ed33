"""What `shell` does with a command whose place is not a folder of this machine, such as a container.

What bounds a command is the place that it runs in: no sandbox of this machine reaches there, and nothing can be proved
about files that are not here. So every command is decided on as its text: rules recognise the programs, hosts and paths
in it, and where no rule allows it a person is asked. Variables and secrets travel by standard input, because every
process of that place can read a command line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from toolcrib.access import UNSEEN_CODE, Reach
from toolcrib.command.background import Processes
from toolcrib.command.explain import Reporter, result_text
from toolcrib.command.explain.scripts import digest_of, places_of_code, shown_code
from toolcrib.command.judge import Judgement, accesses_of, why
from toolcrib.command.launch import BoundedOutput
from toolcrib.command.launch.run_command import MAX_OUTPUT
from toolcrib.command.remote import RemoteCommand
from toolcrib.command.remote.code_files import look_at
from toolcrib.dataclass import replace
from toolcrib.errors import ToolError
from toolcrib.question import Doubt, Preview
from toolcrib.result import ToolResult
from toolcrib.secrets.references import REFERENCE
from toolcrib.tools.shell_background import started_result
from toolcrib.tools.shell_command import (
    Asked,
    CommandToRun,
    judged,
    problem_of_command,
    problem_of_variables,
)
from toolcrib.tools.shell_params import MAX_TIMEOUT, ShellParams, ShellResult
from toolcrib.visible import spelled_out

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.access import Access
    from toolcrib.command.launch import ShellKind
    from toolcrib.context import Context
    from toolcrib.effect import Effect
    from toolcrib.tools.backends import CommandRunner


READ_BY_BASH = re.compile(r"\$['\"]")
OTHER_QUOTES = (
    "it has quotes that other shells than bash read otherwise, and there may be no bash where it runs"
)


class RemoteShellWork:
    """The work of a `Shell` whose commands `place` runs; the other arguments are those of `Shell`."""

    def __init__(
        self, place: CommandRunner, *, env: Mapping[str, str], grace: float, kind: ShellKind, effect: Effect
    ) -> None:
        self.place = place
        self.env = env
        self.grace = grace
        self.kind: ShellKind = kind
        self.effect = effect

    def precheck(self, params: ShellParams) -> str | None:
        if problem := problem_of_command(params.command) or problem_of_variables(params.env):
            return problem
        judgement = self._judge(params).judgement
        if judgement.verdict == "deny":
            return f"The command was not run and never will be, whoever asks for it: {judgement.reason}."
        return None

    def effect_for(self, params: ShellParams) -> Effect:
        return self.effect

    def accesses(self, params: ShellParams) -> tuple[Access, ...]:
        command = self._judge(params)
        found = accesses_of(command.shown, command.judgement, command.folder, unasked=False)
        if not places_of_code(params.command, command.folder):
            return found
        # To look at the files takes a command there, and no event loop is to wait for that.
        return tuple(
            replace(one, code=UNSEEN_CODE) if one.reach is Reach.RUN and not one.hint else one
            for one in found
        )

    def doubt(self, params: ShellParams) -> Doubt | None:
        command = self._judge(params)
        secrets = (*command.secrets.values(), *command.secrets_of_variables)
        reason = spelled_out(why(command.judgement, secrets))
        return Doubt(reason) if reason else None

    def preview(self, params: ShellParams) -> Preview:
        lines = [f"where the files are, in {spelled_out(params.workdir)}:", spelled_out(params.command)]
        if params.run_in_background:
            lines.insert(0, "in the background, until it ends or the run is over")
        places = places_of_code(params.command, self.place.resource(params.workdir))
        try:
            code = look_at(self.place, places) if places else {}
        except (ToolError, ValueError):
            return Preview(
                "\n".join([*lines, "What stands in the files that it runs could not be looked at."])
            )
        return Preview("\n".join([*lines, *shown_code(code)]), digest_of(code))

    def _judge(self, params: ShellParams) -> CommandToRun:
        # Nothing is proved: the files are not on this machine, so where names lead cannot be looked up here.
        asked = Asked(params.command, tuple(params.env.items()), self.kind, params.terminal)
        top = self.place.folder_of_commands(".")
        root = posixpath.normpath(top) if top.startswith("/") else None
        command = judged(asked, root, self.place.resource(params.workdir), False, run_by_us=False)
        judgement = command.judgement
        if judgement.plan is None or judgement.verdict == "deny" or not READ_BY_BASH.search(command.text):
            return command
        unread = Judgement("ask", OTHER_QUOTES, programs=judgement.programs)
        return replace(command, judgement=unread)

    async def execute(self, params: ShellParams, ctx: Context[Any]) -> ToolResult:
        if problem := self.precheck(params):
            raise ToolError(problem)
        ctx.check_cancelled()
        if params.description:
            ctx.report(tip=params.description)
        judged_command = self._judge(params)
        processes = ctx.of_run(Processes) if params.run_in_background else None
        if processes is not None:
            processes.check_room()
        command = RemoteCommand(
            self.place.run_command,
            judged_command.text,
            folder=self.place.folder_of_commands(params.workdir),
            kind=self.kind,
            variables=self._variables(params, judged_command),
            timeout=params.seconds,
            grace=self.grace,
            terminal=params.terminal,
            takes_input=params.run_in_background,
        )
        if processes is not None:
            programs = judged_command.judgement.programs
            process = processes.start(
                command, command=params.command, description=params.description, programs=programs
            )
            return await started_result(process, ctx)
        reporter = Reporter(ctx)
        try:
            outcome = await command.run(BoundedOutput(MAX_OUTPUT), reporter.output)
        except FileNotFoundError:
            raise ToolError(f"There is no folder {params.workdir}.") from None
        except OSError as failed:
            raise ToolError(f"The command could not be run: {failed.strerror or failed}.") from failed
        reporter.end(outcome, None)
        text = result_text(outcome, params.seconds or 0, MAX_TIMEOUT, (), terminal=params.terminal)
        return ToolResult(text, structured=asdict(ShellResult.of(outcome)))

    def _variables(self, params: ShellParams, command: CommandToRun) -> dict[str, str]:
        names = (*command.secrets.values(), *command.secrets_of_variables)
        if missing := [name for name in names if name not in params._secrets]:
            raise ToolError(f"Nothing was run: the secret {missing[0]!r} has no value here.")
        given = {name: REFERENCE.sub(params.value_of, value) for name, value in params.env.items()}
        of_command = {variable: params._secrets[name] for variable, name in command.secrets.items()}
        return {**self.env, **({"TERM": "xterm"} if params.terminal else {}), **given, **of_command}
