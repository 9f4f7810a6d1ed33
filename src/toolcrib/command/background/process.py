"""One background process: a command that goes on while the model works on something else."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from toolcrib.command.background.process_output import ProcessOutput, whole_characters
from toolcrib.command.background.typed_line import TypedLine
from toolcrib.command.launch.output import BoundedOutput, plain
from toolcrib.command.launch.process import ProcessOutcome, code_and_signal
from toolcrib.command.launch.terminal_screen import MAX_DRAWN, TerminalScreen, draws
from toolcrib.event_loops import in_loop

if TYPE_CHECKING:
    import asyncio

    from toolcrib.context import Context

T = TypeVar("T")
TELL_EVERY = 1.0  # seconds between what a person is shown of the output


class CommandInput(Protocol):
    """The input of a command."""

    @property
    def closed(self) -> bool: ...

    async def write(self, data: bytes, timeout: float) -> int:
        """Writes until all of it is taken or `timeout` seconds have passed; returns how many bytes were taken.

        Raises BrokenPipeError if the command reads no more.
        """
        ...

    async def end(self) -> None:
        """Ends the input."""
        ...


class BackgroundCommand(Protocol):
    """A command that a background process runs, wherever that is: a `LocalCommand`, a `RemoteCommand`."""

    @property
    def timeout(self) -> float | None: ...
    @property
    def terminal(self) -> bool: ...
    @property
    def input(self) -> CommandInput | None: ...

    async def run(self, output: BoundedOutput, on_output: Callable[[BoundedOutput], None]) -> ProcessOutcome:
        """Runs it to its end, and when cancelled, ends it with everything that it started.

        Raises OSError, with words for a model, if it cannot be started.
        """
        ...


class RefusedToProcess(Protocol):
    """What a sandbox refused to a background process, and how a person may allow it."""

    def sentences(self) -> list[str]:
        """What was refused, for the model."""
        ...

    async def run_again(self, ctx: Context[Any]) -> BackgroundProcess | None:
        """Asks a person to allow it, and runs the command again; None where nothing can be allowed.

        Raises ToolError, in words for the model, if the person refuses.
        """
        ...


class BackgroundProcess:
    """A command that runs in the background, and what is known of it after its end.

    `cursor` is the offset up to which its output was read, `searched` the offset up to which a search for a line came.
    `typed` is the input that a shell has not run yet. `refused`, for a command in a sandbox, gives after its end what
    the sandbox refused. `when_printed` is called now and then while it prints.
    """

    def __init__(
        self,
        id: str,
        command: str,
        description: str,
        runs: BackgroundCommand,
        refused: RefusedToProcess | None = None,
        when_printed: Callable[[BackgroundProcess], None] | None = None,
    ) -> None:
        import asyncio

        self.id = id
        self.command = command
        self.description = description
        self.runs = runs
        self.refused = refused
        self._started = time.monotonic()
        self._ended: float | None = None
        self.output = ProcessOutput()
        self.cursor = 0
        self.searched = 0
        self.typed = TypedLine()
        self.outcome: ProcessOutcome | None = None
        self.problem = ""
        self.stopped = False
        self.end_is_known = False  # whether the model knows that it has ended
        self.loop = asyncio.get_running_loop()
        self.turns = asyncio.Lock()  # calls that read or stop it take turns
        self._changed = asyncio.Event()
        self._when_printed = when_printed
        self._telling: asyncio.TimerHandle | None = None
        self._screen: TerminalScreen | None = None
        self._drawn = 0  # offset up to which output is drawn on the screen
        self._task = self.loop.create_task(self._run(), name=f"toolcrib process {id}")

    @property
    def running(self) -> bool:
        return not self._task.done()

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return (time.monotonic() if self._ended is None else self._ended) - self._started

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs, and if it was ended by a signal."""
        return code_and_signal(self._status)[0]

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended it, or the program that it ran."""
        return code_and_signal(self._status)[1]

    @property
    def _status(self) -> int | None:
        return self.outcome.code if self.outcome is not None else None

    @property
    def timed_out(self) -> bool:
        return self.outcome is not None and self.outcome.code is None

    async def _run(self) -> None:
        try:
            self.outcome = await self.runs.run(self.output, self._on_output)
        except OSError as refused:
            self.problem = refused.strerror or str(refused)
        finally:
            # its loop may have ended
            self.stopped = self.stopped or (self.outcome is None and not self.problem)
            self._ended = time.monotonic()
            if self._telling is not None:
                self._telling.cancel()
                self._tell()
            self._changed.set()

    def _on_output(self, _: BoundedOutput) -> None:
        self._changed.set()
        if self._when_printed is not None and self._telling is None:
            self._telling = self.loop.call_later(TELL_EVERY, self._tell)

    def _tell(self) -> None:
        self._telling = None
        if self._when_printed is not None:
            self._when_printed(self)

    def when_ended(self, tell: Callable[[BackgroundProcess], None]) -> None:
        """Calls `tell` once it has ended."""
        self._task.add_done_callback(lambda _: tell(self))

    async def wait_until(self, happened: Callable[[], Awaitable[bool]], timeout: float) -> None:
        """Waits until `happened` gives True, which is asked when output arrives; at most to its end or `timeout`."""
        import asyncio

        deadline = self.loop.time() + timeout
        while True:
            self._changed.clear()
            if await happened() or not self.running or (left := deadline - self.loop.time()) <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                continue  # `happened` is asked once more

    async def in_its_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits a coroutine in the event loop in which the process runs, and returns its value."""
        return await in_loop(self.loop, work)

    async def ended(self) -> None:
        """Waits for the end."""
        import asyncio

        await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Ends it with everything that it started."""
        if self.running:
            self.stopped = True
            self._task.cancel()
            await self.ended()

    def screen_since(self, start: int) -> TerminalScreen | None:
        """The screen of its terminal, if a program drew on it since `start` or fills all of it now; else None."""
        if not self.runs.terminal:
            return None
        offset, data = self.output.read(max(self._drawn, self.output.total - MAX_DRAWN), MAX_DRAWN)
        if self.running:
            data = whole_characters(data)
        new = draws(data[max(0, start - offset) :])
        if self._screen is None or offset > self._drawn:
            if not draws(data):
                return None
            self._screen = TerminalScreen()
        self._screen.feed(data)
        self._drawn = offset + len(data)
        return self._screen if new or self._screen.second else None

    def wants_application_keys(self) -> bool:
        """Whether its program has switched the terminal's arrow keys to their other codes (DECCKM), and not back."""
        begins = max(0, self.output.total - MAX_DRAWN)
        data = self.output.read(begins, MAX_DRAWN)[1]
        return data.rfind(b"\x1b[?1h") > data.rfind(b"\x1b[?1l")

    def text(self, start: int, limit: int) -> tuple[int, int, str]:
        """Output as plain text from an offset on: where it really begins, where it ends, and the text.

        It does not end within a character, unless nothing follows.
        """
        begins, data = self.output.read(start, limit)
        if begins + len(data) < self.output.total:  # at best to the end of a line
            data = data[: data.rfind(b"\n", len(data) // 2) + 1] or whole_characters(data) or data
        elif self.running:
            data = whole_characters(data)
        return begins, begins + len(data), plain(data)
