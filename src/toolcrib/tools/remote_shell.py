"""`shell` where the files are: commands of a backend that is no folder of this machine, such as a container.

What bounds a command is the place that it runs in: no sandbox of this machine reaches there, and nothing can be proved
about files that are not here. So every command is decided on as its text: rules recognise the programs, hosts and paths
in it, and where no rule allows it a person is asked. Variables and secrets travel by standard input, because every
process of that place can read a command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, PrivateAttr

from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.facts import MaxOutput
from toolcrib.result import ToolResult
from toolcrib.secrets.references import REFERENCE
from toolcrib.tool import Tool
from toolcrib.tools.shell_params import DEFAULT_TIMEOUT, MAX_TIMEOUT

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.access import Access
    from toolcrib.context import Context
    from toolcrib.question import Doubt, Preview
    from toolcrib.tools.backends import Backend, CommandRunner
    from toolcrib.tools.shell_command import CommandToRun

MAX_OUTPUT = 4_000_000  # bytes that are kept of what a command prints; the middle is left out
# Reads the variables, then closes the input: a command that waits for input would wait for ever.
WITH_VARIABLES = 'eval "$(cat)"\nexec </dev/null 2>&1\n{}'


class RemoteShellParams(BaseModel):
    command: str = Field(description="The command line, for sh.")
    timeout: int = Field(
        DEFAULT_TIMEOUT, ge=1, le=MAX_TIMEOUT, description="Seconds after which it is stopped."
    )
    workdir: str = Field(".", description="Folder to run it in, relative to the workspace.")
    description: str = Field("", description="What it is for, in a few words, for the person who watches.")
    env: dict[str, str] = Field(default_factory=dict, description="Variables that are set for it.")
    _secrets: dict[str, str] = PrivateAttr(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RemoteShellResult:
    """How a command ended, as data. `signal` is the number of the signal that ended it."""

    exit_code: int
    signal: int | None
    seconds: float


class RemoteShell(
    Tool[RemoteShellParams, ToolResult],
    name="shell",
    effect=Effect.DESTRUCTIVE,
    secrets=("command", "env"),
    title="Shell",
    category="shell",
    timeout=MAX_TIMEOUT + 30.0,
    approval_ignores=("timeout", "description"),
    max_output=MaxOutput(),
    output_schema=RemoteShellResult,
):
    """Run a command and give back what it prints, errors included, and its exit code if that is not 0.

    Each command runs in a shell of its own: cd and variables do not carry over, and there is no input. It
    takes at most 10 minutes. To read, search or change files use the tools for files.
    """

    def __init__(self, files: Backend, *, env: Mapping[str, str] | None = None) -> None:
        """`env` is set for every command. Raises TypeError for a backend where no commands run."""
        runner = files.command_runner()
        if runner is None:
            raise TypeError(
                f"no commands run where the files of {files!r} are; hand in a CommandBackend, or use Shell(workspace)"
                " for a folder of this machine"
            )
        self.files = files
        self.env = dict(env or {})
        self._runner: CommandRunner = runner

    def with_secrets(self, params: RemoteShellParams, values: Mapping[str, str]) -> RemoteShellParams:
        """The same params with the values of secrets, which only become variables of the command."""
        made = params.model_copy()
        made._secrets = dict(values)
        return made

    def precheck(self, params: RemoteShellParams) -> str | None:
        from toolcrib.tools.shell_command import problem_of_command, problem_of_variables

        if problem := problem_of_command(params.command) or problem_of_variables(params.env):
            return problem
        judgement = self._judge(params).judgement
        if judgement.verdict == "deny":
            return f"The command was not run and never will be, whoever asks for it: {judgement.reason}."
        return None

    def accesses(self, params: RemoteShellParams) -> tuple[Access, ...]:
        from toolcrib.command.judge import accesses_of

        command = self._judge(params)
        return accesses_of(command.shown, command.judgement, command.folder, unasked=False)

    def doubt(self, params: RemoteShellParams) -> Doubt | None:
        from toolcrib.command.judge import why
        from toolcrib.question import Doubt
        from toolcrib.visible import spelled_out

        command = self._judge(params)
        secrets = (*command.secrets.values(), *command.secrets_of_variables)
        reason = spelled_out(why(command.judgement, secrets))
        return Doubt(reason) if reason else None

    def preview(self, params: RemoteShellParams) -> Preview:
        from toolcrib.question import Preview
        from toolcrib.visible import spelled_out

        return Preview(f"where the files are, in {params.workdir}:\n{spelled_out(params.command)}")

    def _judge(self, params: RemoteShellParams) -> CommandToRun:
        from toolcrib.tools.shell_command import Asked, judged

        # Nothing is proved: the files are not on this machine, so where names lead cannot be looked up here.
        asked = Asked(params.command, tuple(params.env.items()), "sh", False)
        return judged(asked, "/", self.files.resource(params.workdir), False)

    async def execute(self, params: RemoteShellParams, ctx: Context[Any]) -> ToolResult:
        import asyncio
        import time

        from toolcrib.command.explain import result_text
        from toolcrib.command.launch import BoundedOutput, ProcessOutcome

        if problem := self.precheck(params):
            raise ToolError(problem)
        ctx.check_cancelled()
        if params.description:
            ctx.report(tip=params.description)
        command = self._judge(params)
        variables = self._variables(params, command)
        exports = "".join(f"export {name}={quote(value)}\n" for name, value in variables.items())
        started = time.monotonic()
        output = BoundedOutput(MAX_OUTPUT)
        try:
            async with asyncio.timeout(params.timeout):
                ended = await self._runner.run_command(
                    WITH_VARIABLES.format(command.text), exports.encode(), folder=params.workdir
                )
        except TimeoutError:
            raise ToolError(
                f"The command was stopped because it ran longer than {params.timeout} seconds. Give it a longer"
                f" timeout (at most {MAX_TIMEOUT}) if it needs one."
            ) from None
        except OSError as failed:
            raise ToolError(f"Commands cannot be run now: {failed.strerror or failed}.") from failed
        output.feed(ended.stdout)
        output.feed(ended.stderr)  # of the shell itself, before the command began
        seconds = round(time.monotonic() - started, 3)
        text = result_text(ProcessOutcome(ended.code, output, seconds), params.timeout, MAX_TIMEOUT, ())
        signal = ended.code - 128 if 128 < ended.code < 160 else -ended.code if ended.code < 0 else None
        return ToolResult(text, structured={"exit_code": ended.code, "signal": signal, "seconds": seconds})

    def _variables(self, params: RemoteShellParams, command: CommandToRun) -> dict[str, str]:
        names = (*command.secrets.values(), *command.secrets_of_variables)
        if missing := [name for name in names if name not in params._secrets]:
            raise ToolError(f"Nothing was run: the secret {missing[0]!r} has no value here.")
        given = {
            name: REFERENCE.sub(lambda reference: params._secrets[reference[1]], value)
            for name, value in params.env.items()
        }
        of_command = {variable: params._secrets[name] for variable, name in command.secrets.items()}
        return {**self.env, **given, **of_command}
