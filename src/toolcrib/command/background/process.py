"""One background process: a command that goes on while the model works on something else."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib.command.background.process_input import ProcessInput
from toolcrib.command.background.process_output import ProcessOutput, whole_characters
from toolcrib.command.launch import CommandLine, Finished, OpenFolder, run_command
from toolcrib.command.launch.output import BoundedOutput, plain
from toolcrib.command.launch.process import code_and_signal
from toolcrib.command.sandbox import Sandbox, SandboxError
from toolcrib.event_loops import in_loop

if TYPE_CHECKING:
    pass

T = TypeVar("T")


class BackgroundProcess:
    """A command that runs in the background, and what is known of it after its end.

    `cursor` is the offset up to which its output was read, `searched` the one from which a line is waited for. `input`
    is None for a plan, which reads nothing. `typed` is the text of the line that is being typed into it; None if that
    is not known, since keys changed it.
    """

    def __init__(
        self, id: str, command: str, description: str, line: CommandLine, sandbox: Sandbox, folder: OpenFolder
    ) -> None:
        import asyncio

        self.id = id
        self.command = command
        self.description = description
        self.line = line
        self.sandbox = sandbox
        self._started = time.monotonic()
        self._ended: float | None = None
        self.output = ProcessOutput()
        self.cursor = 0
        self.searched = 0
        self.typed: str | None = ""
        self.finished: Finished | None = None
        self.problem = ""
        self.stopped = False
        self.told = False
        self.loop = asyncio.get_running_loop()
        self.turns = asyncio.Lock()  # calls that read or stop it take turns
        self._changed = asyncio.Event()
        plan = line.judgement.verdict == "plain" and line.judgement.plan is not None
        self.input = None if plan else ProcessInput()
        self._folder = OpenFolder(os.dup(folder.descriptor), folder.path)
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
        return self.finished.outcome.code if self.finished is not None else None

    @property
    def timed_out(self) -> bool:
        return self.finished is not None and self.finished.outcome.code is None

    async def _run(self) -> None:
        stdin = self.input.for_process if self.input is not None else None
        given = self.input.given if self.input is not None else None
        line = replace(self.line, stdin=stdin, on_start=given)
        try:
            self.finished = await run_command(line, self.sandbox, self._folder, self._arrived, self.output)
        except SandboxError as refused:
            self.problem = f"it could not be confined: {refused}"
        except OSError as refused:
            self.problem = f"it could not be started: {refused.strerror}"
        finally:
            self.stopped = self.stopped or (
                self.finished is None and not self.problem
            )  # its loop may have ended
            self._ended = time.monotonic()
            os.close(self._folder.descriptor)
            if self.input is not None:
                self.input.close()
            self._changed.set()

    def _arrived(self, _: BoundedOutput) -> None:
        self._changed.set()

    def when_ended(self, tell: Callable[[BackgroundProcess], None]) -> None:
        """Calls `tell` once it has ended."""
        self._task.add_done_callback(lambda _: tell(self))

    async def wait_until(self, happened: Callable[[], Awaitable[bool]], timeout: float) -> None:
        """Waits until something has happened, looked for when output arrives; at most to its end or `timeout`."""
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
                continue  # to look once more

    async def in_its_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Does work in the loop that it runs in."""
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
