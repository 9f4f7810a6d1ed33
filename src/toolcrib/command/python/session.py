"""The process of a Python session: started, sent code, interrupted, ended."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from toolcrib.command.background.process_input import ProcessInput
from toolcrib.command.launch.output import BoundedOutput, plain
from toolcrib.command.launch.process import ProcessOutcome, run_process
from toolcrib.command.launch.sandboxed_host import prepare_launch
from toolcrib.command.sandbox import Launch, Level, Sandbox
from toolcrib.dataclass import dataclass
from toolcrib.visible import spelled_out

DRIVER = Path(__file__).with_name("driver.py")
KEEP = 1 << 20  # bytes of the output of one piece of code
MAX_REPLY = 26_000_000  # bytes: five figures in base64, a value and the name of an error
MAX_ERROR = 200  # characters of that name
TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
REPLY = re.compile(
    rb'\{"number": [0-9]{1,9}, "value": (?:null|%b), "error": (?:null|%b), "figures": \[(?:%b(?:, %b){0,4})?\]\}'
    % (TEXT, TEXT, TEXT, TEXT)
)
SESSION = "TOOLCRIB_PYTHON_SESSION"
SEND = 30.0  # seconds for the process to take a request


class SessionCrashed(Exception):
    """The process ended while code ran; `status` is its exit status, negative for a signal."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


class SessionInterrupted(Exception):
    """The time was up, and the code was interrupted. `lost`: it did not stop, so that the session was ended."""

    def __init__(self, *, lost: bool) -> None:
        super().__init__(lost)
        self.lost = lost


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a piece of code. `error` is the name of the exception; `figures` are pictures in base64."""

    value: str | None
    error: str | None
    figures: tuple[str, ...]
    seconds: float


class SessionOutput(BoundedOutput):
    """The stream of a session, from which replies are taken out; what was printed goes to `printed`.

    Code that finds the token can write a reply itself, and so can a module that it imports: its answer may be false,
    like all that code prints. A reply that the driver would not write is dropped; one that is too long is output.
    """

    __slots__ = (
        "_begun",
        "_body",
        "_head_pattern",
        "_longest_head",
        "_mark",
        "_needed",
        "_on_reply",
        "printed",
    )

    def __init__(self, token: str, on_reply: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(0)
        self._mark = b"\0" + token.encode() + b" "
        self._head_pattern = re.compile(re.escape(self._mark) + rb"([0-9]{1,9})\n")
        self._longest_head = len(self._mark) + 10
        self._on_reply = on_reply
        self._begun = b""  # what may be the beginning of a head
        self._body = bytearray()
        self._needed = 0
        self.printed = BoundedOutput(KEEP)

    def feed(self, data: bytes) -> None:
        while data:
            if self._needed:
                piece = data[: self._needed - len(self._body)]
                self._body += piece
                data = data[len(piece) :]
                if len(self._body) == self._needed:
                    self._needed = 0
                    self._take(bytes(self._body))
            else:
                data = self._print(self._begun + data)

    def _print(self, data: bytes) -> bytes:
        """Takes what was printed up to the next head, and returns what follows that."""
        self._begun = b""
        heads = self._head_pattern.finditer(data)
        head = next((head for head in heads if int(head[1]) <= MAX_REPLY), None)
        if head is not None:
            self.printed.feed(data[: head.start()])
            self._needed = int(head[1])
            self._body.clear()
            return data[head.end() :]
        begun = data.rfind(b"\0", max(0, len(data) - self._longest_head))
        if begun >= 0 and (self._mark.startswith(data[begun:]) or data[begun:].startswith(self._mark)):
            data, self._begun = data[:begun], data[begun:]
        self.printed.feed(data)
        return b""

    def _take(self, body: bytes) -> None:
        if REPLY.fullmatch(body) is None:
            return
        try:
            reply = json.loads(body)
        except ValueError:
            return
        self._on_reply(reply)


class PythonSession:
    """A running session. Code is run by one caller at a time."""

    def __init__(self, level: Level, grace: float) -> None:
        import asyncio

        self.level = level
        self.grace = grace
        self.launch: Launch | None = None
        self._token = secrets.token_hex(16)
        self._input = ProcessInput()
        self._replied: asyncio.Future[dict[str, Any]] | None = None
        self._output = SessionOutput(self._token, self._reply)
        self._number = 0
        self._live: Callable[[BoundedOutput], None] | None = None
        self._task: asyncio.Task[ProcessOutcome] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def printed(self) -> BoundedOutput:
        """What was printed since the last code was sent."""
        return self._output.printed

    async def start(self, sandbox: Sandbox, python: str, *, folder: str, env: dict[str, str]) -> None:
        """Starts the process. Raises SandboxError or OSError if it cannot be confined or started."""
        import asyncio

        given = {**env, SESSION: self._token, "MPLBACKEND": "Agg"}
        argv = [python, "-c", _source()]
        try:
            self.launch = await prepare_launch(partial(sandbox.launch, argv, cwd=folder, env=given))
        except BaseException:
            self._input.close()
            raise
        self._task = asyncio.create_task(self._run(self.launch, folder), name="toolcrib python session")

    async def _run(self, launch: Launch, folder: str) -> ProcessOutcome:
        def started() -> None:
            launch.started()
            self._input.close_reading_end()

        try:
            return await run_process(
                launch.argv,
                cwd=folder,
                env=launch.env,
                timeout=None,
                output=self._output,
                stdin=self._input.for_process,
                grace=self.grace,
                on_output=self._on_output,
                pass_fds=launch.pass_fds,
                on_start=started,
            )
        finally:
            self._input.close()
            launch.close()

    def _on_output(self, _: BoundedOutput) -> None:
        if self._live is not None:
            self._live(self.printed)

    def _reply(self, data: dict[str, Any]) -> None:
        if self._replied is not None and not self._replied.done() and data.get("number") == self._number:
            self._replied.set_result(data)

    async def run(self, code: str, timeout: float, live: Callable[[BoundedOutput], None]) -> Reply:
        """Runs code. Raises SessionInterrupted if the time was up, SessionCrashed if the process ended.

        If the caller is cancelled, the code is interrupted as after the timeout.
        """
        import asyncio

        self._number += 1
        self._output.printed = BoundedOutput(KEEP)
        self._replied = asyncio.get_running_loop().create_future()
        self._live, begun = live, time.monotonic()
        try:
            await self._send({"number": self._number, "code": code})
            if not await self._wait_for_reply(timeout):
                raise SessionInterrupted(lost=not await self._interrupt())
            data = self._replied.result()
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._interrupt()))
            raise
        finally:
            self._live = None
        value = data["value"] and plain(data["value"].encode("utf-8", "replace"))
        error = data["error"] and spelled_out(data["error"])[:MAX_ERROR]
        return Reply(value, error, tuple(data["figures"]), time.monotonic() - begun)

    async def _wait_for_reply(self, timeout: float) -> bool:
        """Waits for the reply; returns whether it came in time. Raises SessionCrashed if the process ends instead."""
        import asyncio

        assert self._replied is not None and self._task is not None
        waited: set[asyncio.Future[Any]] = {self._replied, self._task}
        await asyncio.wait(waited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if self._replied.done():
            return True
        if self._task.done():
            raise SessionCrashed(self._task.result().code)
        return False

    async def _interrupt(self) -> bool:
        """Interrupts the code. If that does not stop it, the session is ended, and False returned."""
        try:
            await self._send({"interrupt": self._number})
            if await self._wait_for_reply(self.grace):
                return True
        except SessionCrashed:
            return False
        await self.aclose()
        return False

    async def _send(self, request: dict[str, Any]) -> None:
        data = json.dumps(request).encode() + b"\n"
        try:
            taken = 0 if self._input.closed else await self._input.write(data, SEND)
        except BrokenPipeError:
            taken = 0
        if taken < len(data):
            if self.running:
                await self._wait_for_reply(self.grace)  # it is about to end
            await self.aclose()
            raise SessionCrashed(self._status())

    def _status(self) -> int | None:
        """The exit status of the process that ended; None if it was ended."""
        task = self._task
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result().code

    async def aclose(self) -> None:
        """Ends the process with everything that it started."""
        import asyncio

        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        elif self._task is None:
            self._input.close()


@cache
def _source() -> str:
    # Handed over as text, because a sandbox may not show the file.
    return DRIVER.read_text(encoding="utf-8")
