"""`process_list`: the background processes of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.tool import Tool
from toolcrib.tools.command_place import commands_of

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.access import Access
    from toolcrib.command.background import BackgroundProcess
    from toolcrib.context import Context
    from toolcrib.tools.backends import Backend

MAX_COMMAND = 200  # characters of a command that are shown


@dataclass(frozen=True, slots=True)
class ProcessListParams:
    """No arguments."""


@dataclass(frozen=True, slots=True)
class ListedProcess:
    """A background process: `state` is "running" or how it ended, `unread` the bytes of output that were not read."""

    process_id: str
    command: str
    description: str
    state: str
    seconds: float
    unread: int


class ProcessList(
    Tool[ProcessListParams, list[ListedProcess]],
    name="process_list",
    effect=Effect.READ,
    secrets=(),
    title="Background processes",
    category="shell",
):
    """List the commands that run in the background of this run, and those that have ended."""

    def __init__(self, files: Backend) -> None:
        """`files` is the backend of the `Shell` that starts the processes. Raises TypeError where no command runs."""
        commands_of(files)

    def accesses(self, params: ProcessListParams) -> tuple[Access, ...]:
        return ()

    async def execute(self, params: ProcessListParams, ctx: Context[Any]) -> list[ListedProcess]:
        from toolcrib.command.background import Processes

        return [_listed(process) for process in ctx.of_run(Processes).all()]


def _listed(process: BackgroundProcess) -> ListedProcess:
    from toolcrib.command.background.processes import end_in_words

    command = process.command
    return ListedProcess(
        process.id,
        command if len(command) <= MAX_COMMAND else f"{command[:MAX_COMMAND]}…",
        process.description,
        "running" if process.running else end_in_words(process),
        round(process.seconds, 1),
        process.output.total - process.cursor,
    )
