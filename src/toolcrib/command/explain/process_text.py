"""What a background process printed and how it is, in words for the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from toolcrib.command.background.process import BackgroundProcess
from toolcrib.command.background.processes import end_in_words
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError
from toolcrib.visible import counted
from toolcrib.word_cuts import LONGEST, begun_word

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.command.sandbox import Denial
    from toolcrib.context import Context

MAX_READ = 30_000  # bytes of output in one reading


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """Output that was read: its text, and the offsets `start` and `end`, of `total` bytes so far.

    `lost` is how many bytes before `start` were asked for and are no longer kept. Where a program draws on its
    terminal, the text is the screen, and `cursor` the line and column of its cursor.
    """

    text: str
    start: int
    end: int
    total: int
    lost: int = 0
    cursor: tuple[int, int] | None = None


def read_process(process: BackgroundProcess, offset: int | None = None) -> ProcessReading:
    """Reads output from an offset on, or where the last reading ended; the next one goes on behind it."""
    wanted = process.cursor if offset is None else offset - _begun_word(process, offset)
    if offset is None and (screen := process.screen_since(wanted)) is not None:
        end = process.cursor = process.output.total
        process.end_is_known = process.end_is_known or not process.running
        text = screen.text() if process.running else screen.scrolled()
        return ProcessReading(text, wanted, end, end, cursor=screen.place())
    start, end, text = process.text(wanted, MAX_READ)
    process.cursor = end
    if not process.running and end == process.output.total:
        process.end_is_known = True
    return ProcessReading(text, start, end, process.output.total, max(0, start - wanted))


def _begun_word(process: BackgroundProcess, offset: int) -> int:
    """How many bytes before an offset belong to a word that goes on there."""
    first = max(0, offset - LONGEST - 1)
    start, data = process.output.read(first, offset - first + 1)
    if start != first or len(data) <= offset - first or data[-1:].isspace():
        return 0
    return begun_word(data[:-1].decode("latin-1"))


def process_text(process: BackgroundProcess, reading: ProcessReading) -> str:
    """A reading as the model is shown it, with the state of the process."""
    notes: list[str] = []
    if reading.lost:
        notes.append(
            f"{counted(reading.lost, 'byte')} before it {'is' if reading.lost == 1 else 'are'} no longer kept"
        )
    if reading.cursor is not None:
        line, column = reading.cursor
        notes.append(f"this is the screen of its terminal; the cursor is in line {line}, column {column}")
    elif reading.end < reading.total:
        notes.append(
            f"bytes {reading.start} to {reading.end} of {reading.total}; the next call goes on at {reading.end}, "
            f"offset={max(0, reading.total - MAX_READ)} shows the end"
        )
    elif reading.end > reading.start:
        notes.append(f"bytes {reading.start} to {reading.end}")
    body = reading.text.rstrip("\n") or "(no new output)"
    said = [f"{body}\n\n[{'; '.join([_state(process), *notes])}]"]
    if not process.running and process.refused is not None and (sentences := process.refused.sentences()):
        said.append(f"[sandbox: {' '.join(sentences)}]")
    return "\n".join(said)


class RefusedInBackground:
    """What the sandbox refused to a background process, which a person is asked about once, when its end is read.

    `explained` gives the denial and the sentences about it; `run_again` asks, and starts the command again.
    """

    def __init__(
        self,
        explained: Callable[[], tuple[Denial | None, list[str]]],
        run_again: Callable[[Context[Any], Denial], Awaitable[BackgroundProcess | None]],
    ) -> None:
        self._explained = explained
        self._run_again = run_again
        self._asked = False
        self._answer: list[str] = []

    def sentences(self) -> list[str]:
        return [*self._explained()[1], *self._answer]

    async def run_again(self, ctx: Context[Any]) -> BackgroundProcess | None:
        denial, _ = self._explained()
        if denial is None or self._asked:
            return None
        self._asked = True
        try:
            again = await self._run_again(ctx, denial)
        except ToolError as refused:
            self._answer = [refused.message]
            return None
        if again is not None:
            self._answer = [
                f"The user allowed it: the command runs again from its start, as process {again.id}."
            ]
        return again


def _state(process: BackgroundProcess) -> str:
    if process.running:
        return f"process {process.id} is running"
    left = process.outcome.left if process.outcome is not None else 0
    what_it_left = f"; stopped what it left running ({left})" if left else ""
    return f"process {process.id} ended: {end_in_words(process)} after {process.seconds:.1f} s{what_it_left}"
