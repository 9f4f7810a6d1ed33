"""The background processes of one run. They end with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

from toolcrib.command.background.process import BackgroundCommand, BackgroundProcess, RefusedToProcess
from toolcrib.errors import ToolError
from toolcrib.events import Event, ProcessEnded, ProcessPrinted, ProcessStarted

MAX_RUNNING = 16
MAX_SHOWN = 2_000  # bytes of output that a person is shown while a process runs
MAX_KNOWN = 64  # with those that have ended
NAME = re.compile(r"[a-z][a-z0-9_]{0,15}")


class Processes:
    """The processes of a run, by their ids. `emit` tells listeners of the run when one starts and ends."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._known: dict[str, BackgroundProcess] = {}
        self._count = 0

    def all(self) -> list[BackgroundProcess]:
        """The processes in the order in which they were started."""
        return list(self._known.values())

    def get(self, id: str) -> BackgroundProcess:
        """The process of an id. Raises ToolError, in words for the model, if there is none."""
        found = self._known.get(id)
        if found is not None:
            return found
        known = ", ".join(self._known)
        have = f"There are: {known}." if known else "None was started in it."
        raise ToolError(
            f"This run has no background process {id!r}. {have} Background processes end with their run."
        )

    def check_room(self) -> None:
        """Raises ToolError if no further process may be started."""
        if sum(process.running for process in self._known.values()) >= MAX_RUNNING:
            raise ToolError(
                f"{MAX_RUNNING} background processes are running, and no more are allowed at one time. "
                "Stop one first: process(process_id=..., stop=true); process_list names them."
            )

    def start(
        self,
        runs: BackgroundCommand,
        *,
        command: str,
        description: str,
        programs: Sequence[str],
        refused: RefusedToProcess | None = None,
    ) -> BackgroundProcess:
        """Starts a command; the id is named after its first program. Raises ToolError if too many are running."""
        self.check_room()
        self._count += 1
        id = f"{_name_of((*programs, *command.split()))}-{self._count}"
        process = self._known[id] = BackgroundProcess(id, command, description, runs, refused, self._printed)
        self._emit(ProcessStarted(id, command, description))
        process.when_ended(self._ended)
        self._forget_oldest()
        return process

    def _printed(self, process: BackgroundProcess) -> None:
        text = process.output.ending(MAX_SHOWN)
        self._emit(ProcessPrinted(process.id, text, process.output.total))

    def _ended(self, process: BackgroundProcess) -> None:
        ended = ProcessEnded(
            process.id,
            exit_code=process.exit_code,
            signal=process.signal,
            stopped=process.stopped,
            seconds=round(process.seconds, 3),
            problem=process.problem,
        )
        self._emit(ended)

    def _forget_oldest(self) -> None:
        ended = [process for process in self._known.values() if not process.running]
        for process in ended[: max(0, len(self._known) - MAX_KNOWN)]:
            process.output.close()
            del self._known[process.id]

    @property
    def at_work(self) -> bool:
        """Whether a process is running."""
        return any(process.running for process in self._known.values())

    def news(self) -> list[str]:
        """A sentence about each process that ended and that the model was not told of."""
        ended = [
            process for process in self._known.values() if not process.running and not process.end_is_known
        ]
        for process in ended:
            process.end_is_known = True
        return [
            f"[The background process {process.id} has ended: {end_in_words(process)}. "
            f"process(process_id={process.id!r}) reads what it printed.]"
            for process in ended
        ]

    async def aclose(self) -> None:
        """Ends all processes with everything that they started."""
        import asyncio

        await asyncio.gather(*(process.in_its_loop(process.stop()) for process in self._known.values()))
        for process in self._known.values():
            process.output.close()


def end_in_words(process: BackgroundProcess) -> str:
    """How a process ended, for the model."""
    if process.problem:
        return process.problem
    if process.stopped:
        return "stopped"
    if process.timed_out:
        return f"stopped after its timeout of {process.runs.timeout:g} s"
    if process.signal is not None:
        return f"signal {process.signal}"
    return f"exit code {process.exit_code}"


def _name_of(words: Iterable[str]) -> str:
    """The first of the words that can be the name of a program, for an id."""
    for program in words:
        if (found := NAME.match(PurePath(program).name)) is not None:
            return found[0]
    return "command"
