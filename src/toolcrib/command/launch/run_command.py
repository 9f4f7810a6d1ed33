"""Runs one judged command line, as the plan that was proved or as a script of bash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from toolcrib.access import Permits
from toolcrib.command.judge import Judgement, Plan
from toolcrib.command.launch.environment import search_path
from toolcrib.command.launch.output import BoundedOutput
from toolcrib.command.launch.process import ProcessOutcome, run_process
from toolcrib.command.launch.sandboxed_host import SandboxedHost, path_of, prepare_launch, run_as_plan
from toolcrib.command.launch.shell_words import shell_words
from toolcrib.command.launch.terminal import in_terminal
from toolcrib.command.sandbox import Launch, Sandbox, SandboxError
from toolcrib.dataclass import dataclass, field

MAX_NAMED = 5  # files that were not shown
MAX_OUTPUT = 1 << 20  # bytes of output that are kept: half from its beginning, half from its end


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What to run. `secrets` are {variable: value} for the references to secrets that `text` uses as variables.

    `workspace` is the absolute path of the workspace, from which a command that only reads runs no programs. `shell`
    are the words before a script, and `terminal` says whether the script is run in a terminal. A script reads from the
    descriptor `stdin`, and `on_start` is called when it has it; a plan has no input.
    `withheld` are files that the sandbox hides from this command because they may hold secrets. `permits` is asked
    about paths that are only known when a plan runs.
    """

    text: str
    judgement: Judgement
    workspace: str
    timeout: float | None
    env: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict)
    grace: float = 2.0
    shell: tuple[str, ...] = ()
    terminal: bool = False
    stdin: int | None = None
    on_start: Callable[[], None] | None = None
    withheld: tuple[str, ...] = ()
    permits: Permits | None = None


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """The folder in which a command runs: its descriptor, and its absolute path."""

    descriptor: int
    path: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that was run. `launch` is None if nothing had to be launched.

    `reverted` are sentences about what the sandbox reverted after it.
    """

    outcome: ProcessOutcome
    launch: Launch | None
    reverted: list[str]


async def run_command(
    command: CommandLine,
    sandbox: Sandbox,
    folder: OpenFolder,
    on_output: Callable[[BoundedOutput], None],
    output: BoundedOutput | None = None,
) -> Finished:
    """Runs a command line to its end, or until its timeout. What it prints goes to `output`, if that is given.

    Raises SandboxError if it cannot be confined, and OSError if it cannot be started.
    """
    judgement = command.judgement
    output = output or BoundedOutput(MAX_OUTPUT)
    if judgement.verdict == "plain" and judgement.plan is not None:
        return await _run_plan(command, judgement.plan, sandbox, folder, on_output, output)
    return await _run_script(command, sandbox, folder, on_output, output)


async def _run_plan(
    command: CommandLine,
    plan: Plan,
    sandbox: Sandbox,
    folder: OpenFolder,
    on_output: Callable[[BoundedOutput], None],
    output: BoundedOutput,
) -> Finished:
    level, env = None, command.env
    if command.judgement.only_reads:
        level = sandbox.level.only_reading()
        # Programs were proved by their names, so none of the project's own may have such a name.
        env = {**env, "PATH": search_path(without=command.workspace)}
    host = SandboxedHost(folder.path, folder.descriptor, sandbox, level=level, grace=command.grace)
    outcome = await run_as_plan(
        plan,
        host,
        env=env,
        timeout=command.timeout,
        output=output,
        on_output=on_output,
        workspace=command.workspace,
        permits=command.permits,
    )
    if host.refused:
        raise SandboxError(host.refused)
    return Finished(outcome, host.launch, [*host.reverted, *_withheld(command)])


def _withheld(command: CommandLine) -> Iterator[str]:
    """The sentence that says which files a search left out, and how to see one."""
    if command.withheld:
        names = ", ".join(command.withheld[:MAX_NAMED])
        more = f" and {len(command.withheld) - MAX_NAMED} more" if len(command.withheld) > MAX_NAMED else ""
        stored = ""
        if any(part.name == "git grep" for part in command.judgement.parts):
            stored = " Of what git has stored (a revision, --cached) nothing was left out."
        yield (
            f"Files that may hold secrets were not shown: {names}{more}.{stored} "
            "To see one, name it: a person decides."
        )


async def _run_script(
    command: CommandLine,
    sandbox: Sandbox,
    folder: OpenFolder,
    on_output: Callable[[BoundedOutput], None],
    output: BoundedOutput,
) -> Finished:
    # A leading blank keeps bash from reading the command as an option.
    script = f" {command.text}" if command.text[0] in "-+" else command.text
    argv = [*(command.shell or shell_words("bash")), script]
    if command.terminal:
        argv = in_terminal(argv)
    env = {**command.env, **command.secrets}
    launch = await prepare_launch(partial(sandbox.launch, argv, cwd=folder.path, env=env))
    try:
        outcome = await run_process(
            launch.argv,
            cwd=path_of(folder.descriptor, folder.path),
            env=launch.env,
            timeout=command.timeout,
            output=output,
            stdin=command.stdin,
            grace=command.grace,
            on_output=on_output,
            pass_fds=launch.pass_fds,
            on_start=partial(_started, launch, command),
        )
    finally:
        launch.close()
    return Finished(outcome, launch, launch.reverted())


def _started(launch: Launch, command: CommandLine) -> None:
    launch.started()
    if command.on_start is not None:
        command.on_start()
