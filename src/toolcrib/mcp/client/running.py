"""One remote call while it runs: how long it may take, what the server reports, and how it is left."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Generator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from toolcrib.mcp.concealment import Conceal, concealed, concealing_values, unchanged
from toolcrib.mcp.config import credentials_in
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.context import Context
    from toolcrib.mcp.client.seams import RemoteConnection, RemoteServer

__all__ = ["RemoteFailure", "RunningCall", "TimedOut"]

STOP = 1.0  # seconds in which a cancelled request tells the server
MAX_TIP = 500  # characters of a report
MAX_NOTES = 10  # warnings of a server that are told in lines that stay
REPORT_EVERY = 0.05  # seconds between two reports of progress
MAX_REPORTS = 200  # reports of a call that are told as they come; with more, one in that time
SEVERE = ("error", "critical", "alert", "emergency")


class TimedOut(Exception):
    """A remote call gave no result in time. `seconds` is how long it was waited for."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class RemoteFailure(Exception):
    """A remote call came to nothing, or, where that is `unknown`, perhaps to something.

    `words` go on after the name of the server, for the model.
    """

    def __init__(self, words: str, *, unknown: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.unknown = unknown


class RunningCall:
    """A call of one tool of one server.

    Its time is the server's `timeout` from its start or from its last progress, and `max_timeout` at most. The time in
    which a person is asked does not count.
    """

    def __init__(self, ctx: Context[Any], remote: RemoteServer) -> None:
        self.ctx = ctx
        self.context = copy_context()  # the connection may belong to the call of somebody else
        self.server = remote.config.name
        self._remote = remote
        self._connection: RemoteConnection | None = None
        self._conceal_own: Conceal = unchanged
        self.loop = asyncio.get_running_loop()
        self.remarks: list[str] = []  # what the model is told beside the result
        self.questions = 0  # of the server to the person
        self.samples = 0  # requests to a model that the server made
        config = remote.config
        self._timeout = min(config.timeout, config.max_timeout)
        self._began = self.loop.time()
        self._quiet_until = self._began + self._timeout
        self._until = self._began + config.max_timeout
        self._pauses = 0
        self._paused_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._interrupted: asyncio.Future[BaseException] = self.loop.create_future()
        # Done when there is a result, or nobody waits for one any more.
        self.over: asyncio.Future[None] = self.loop.create_future()
        self._ended: asyncio.Future[None] = self.loop.create_future()
        self._progress = -math.inf
        self._reported = -math.inf
        self._notes = 0
        self._reports = 0

    async def reached(self) -> tuple[RemoteConnection, Mapping[str, str] | None]:
        """The connection over which the requests of this call go, and HTTP headers of its own.

        The server is started first if need be. Raises ServerUnavailable.
        """
        self._connection, headers = await self._remote.connected(), self._remote.headers
        if headers and self._conceal_own is unchanged:
            own = {value: f"(hidden: {name})" for name, value in credentials_in(headers.items())}
            self._conceal_own = concealing_values(own)
        return self._connection, headers

    def concealed(self, value: Any, *, words: bool = True) -> Any:
        """JSON data of the server without the credentials that it was sent or started with; `words` as in `Conceal`.

        A connection for many users remembers only the last credentials, so those of this call are taken out first.
        """
        if self._conceal_own is not unchanged:
            value = concealed(value, self._conceal_own, words=words)
        return value if self._connection is None else concealed(value, self._connection.conceal, words=words)

    def check_alive(self) -> None:
        """Look whether the server still answers. Nobody waits for that."""
        if self._connection is not None:
            self._connection.check_alive()

    async def outcome(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What the work gives. Raises what it raises, TimedOut, or Suspended where a question waits meanwhile.

        Work that is left is cancelled, which tells the server.
        """
        task = asyncio.ensure_future(work)
        self._arm()
        try:
            await asyncio.wait({task, self._interrupted}, return_when=asyncio.FIRST_COMPLETED)
            if self._interrupted.done():
                raise self._interrupted.result()
            return task.result()
        finally:
            self.over.set_result(None)
            if self._timer is not None:
                self._timer.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=STOP)
            if task.done() and not task.cancelled():
                task.exception()  # retrieved, so that asyncio does not report it
            if not self._ended.done():
                self._ended.set_result(None)

    def interrupt(self, reason: BaseException) -> None:
        """Leave the call: `outcome` raises the reason."""
        if not self._interrupted.done():
            self._interrupted.set_result(reason)

    async def ended(self) -> None:
        """Wait until the call has been left."""
        await asyncio.shield(self._ended)

    def saved(self) -> Any:
        """The saved state from which the call goes on, if its run waited for an answer; None for a call that begins."""
        host = self.ctx._host
        return None if host is None else host.saved_state(self.ctx)

    def save(self, state: dict[str, Any]) -> None:
        """Save the state from which the call goes on if its run waits for an answer."""
        if self.ctx._host is not None:
            self.ctx._host.save_state(self.ctx, state)

    @property
    def seconds(self) -> float:
        """How long the call has run, in seconds."""
        return self.loop.time() - self._began

    # -- time

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock, while a person is asked."""
        if not self._pauses:
            self._paused_at = self.loop.time()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                passed = self.loop.time() - self._paused_at
                self._quiet_until += passed
                self._until += passed
                if self._timer is not None:
                    self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(min(self._quiet_until, self._until), self._check)

    def _check(self) -> None:
        if self._pauses or self._ended.done():
            return
        if self.loop.time() < min(self._quiet_until, self._until):
            self._arm()
        else:
            self.interrupt(TimedOut(self.seconds))

    def extend(self) -> None:
        """The server showed that it is at work: the quiet time begins anew."""
        self._quiet_until = self.loop.time() + self._timeout

    # -- what the server reports

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Take in a progress notification. Only progress that grows extends the time."""
        known = isinstance(progress, int | float) and math.isfinite(progress)
        grows = known and progress > self._progress
        if grows:
            self._progress = progress
            self.extend()
        done = total is not None and known and progress >= total
        if not done and not message and self.loop.time() - self._reported < REPORT_EVERY:
            return
        share = min(max(progress / total, 0.0), 1.0) if total and known and math.isfinite(total) else None
        self.report(message or (f"{progress:g}" if known and share is None else ""), share)

    def report(self, words: str, progress: float | None = None) -> None:
        """Tell the person, in words of the server; those of a server that never stops only now and then."""
        now = self.loop.time()
        if self._reports >= MAX_REPORTS and now - self._reported < REPORT_EVERY:
            return
        self._reports += 1
        self._reported = now
        tip = on_one_line(self.concealed(words), MAX_TIP) if words else None
        self.context.copy().run(self.ctx.report, tip=tip, progress=progress)

    def log(self, level: str, data: Any) -> None:
        """A log message of the server: a status; an error is told in a line that stays."""
        words = data if isinstance(data, str) else str(data)
        if level in SEVERE and self._notes < MAX_NOTES:
            self._notes += 1
            note = f"MCP server {self.server!r}: {on_one_line(self.concealed(words), MAX_TIP)}"
            self.context.copy().run(self.ctx.note, note)
        else:
            self.report(words)
