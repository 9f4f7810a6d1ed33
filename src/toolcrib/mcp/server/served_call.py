"""One call of a client on its way through the toolbox.

The call runs in a task of its own, because the request that began it may end while the call waits for the client's
answer to a question (`asking.py`), or because it became a task of the tasks extension. Whoever waits for the call is
*attached*: its request receives the progress and the log messages of the call.
"""

from __future__ import annotations

import asyncio
import secrets
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, get_args

import anyio
import mcp_types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from toolcrib.call import CallKey
from toolcrib.dataclass import dataclass
from toolcrib.events import CallEvent, CallFinished, Event, Notice
from toolcrib.mcp.server.asking import Abilities, Port, Rounds

__all__ = ["CURRENT", "ServedCall", "Slots"]

LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)  # from debug up
MAX_NEWS = 200  # progress and log messages that wait for a slow client; older ones are dropped
A_BIT = 1e-6  # by which progress grows with a mere message
MAX_WORDS = 500  # characters of the message that a task's status repeats
STOPPING = 30.0  # seconds that a cancelled call is waited for

CURRENT: ContextVar[ServedCall | None] = ContextVar("toolcrib_mcp_served_call", default=None)
"""The client's call in which the current code runs, also on worker threads and in calls that a tool makes."""


class Slots:
    """How many calls of all clients run at one time, and how many may wait for that or for an answer."""

    def __init__(self, running: int, waiting: int, asking: int) -> None:
        self._free = asyncio.Semaphore(running)
        self._most = running + waiting
        self._inside = 0  # calls that run or wait
        self._most_asking = asking
        self.asking = 0  # calls that wait for an answer on their client's connection

    @property
    def full(self) -> bool:
        """Whether a further call would have to wait, and too many wait already."""
        return self._inside >= self._most

    @property
    def full_of_questions(self) -> bool:
        """Whether no further call may wait for an answer on its client's connection."""
        return self.asking >= self._most_asking

    def enter(self) -> None:
        """Count a call as one that waits for a slot, from now on. `take` may be awaited later."""
        self._inside += 1

    def leave(self) -> None:
        """Stop counting a call that waited for a slot and got none."""
        self._inside -= 1

    async def take(self) -> None:
        await self._free.acquire()

    def give_back(self) -> None:
        self._inside -= 1
        self._free.release()


class ServedCall:
    """A running call. `id` names it to the client that waits for it; nobody can guess it."""

    def __init__(self, face: object, key: CallKey, abilities: Abilities, port: Port, slots: Slots) -> None:
        self.face = face
        self.id = secrets.token_urlsafe(18)
        self.key = key
        self.abilities = abilities
        self.port = port
        self.attached = False
        self.end_stream: Callable[[], Awaitable[None]] | None = None
        self.lacking: MCPError | None = (
            None  # the error that names a capability which a tool asked for in vain
        )
        self.task: asyncio.Task[Any] | None = None
        self._slots = slots
        self._queued = False  # whether it waits for a slot
        self._holds = False  # whether it has one
        self._taking = asyncio.Lock()  # a call takes one slot, however many of its questions were answered
        self._asking = 0  # questions that wait at this moment
        self._loop = asyncio.get_running_loop()
        self._news: deque[_Progress | _Log] = deque()
        self._told = asyncio.Event()
        self._sent: float | None = None
        self.output_schema: Mapping[str, Any] | None = None  # of the tool that was called
        self.last_words = ""  # the last message about its progress
        self._ended = asyncio.Event()

    def start(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Begin the call in its own task."""

        async def run() -> Any:
            CURRENT.set(self)
            await self._take_slot()
            try:
                return await work()
            finally:
                if self._holds:
                    self._slots.give_back()

        self._enter()
        self.task = self._loop.create_task(run(), name=f"mcp call {self.key}")
        self.task.add_done_callback(self._has_ended)

    def _enter(self) -> None:
        self._slots.enter()
        self._queued = True

    async def _take_slot(self) -> None:
        try:
            await self._slots.take()
        except asyncio.CancelledError:
            self._leave()
            raise
        self._queued, self._holds = False, True

    def _leave(self) -> None:
        self._slots.leave()
        self._queued = False

    def _has_ended(self, task: asyncio.Task[Any]) -> None:
        if self._queued:
            self._leave()
        if not task.cancelled():
            task.exception()  # so that it is not reported as never retrieved
        self._ended.set()
        self._told.set()
        if isinstance(self.port, Rounds):
            self.port.news.set()

    @property
    def done(self) -> bool:
        return self._ended.is_set()

    # -- questions

    async def ask(self, requests: Mapping[str, types.InputRequest], *, anew: bool = True) -> dict[str, Any]:
        """Put requests to the client; those that it cannot answer are not sent. A waiting call holds no slot."""
        possible = {name: one for name, one in requests.items() if self.abilities.answers(one)}
        on_connection = not isinstance(
            self.port, Rounds
        )  # the others are counted where they leave their request
        if not possible or self.done or (on_connection and self._slots.full_of_questions):
            return {}
        self._asking += 1
        self._slots.asking += on_connection
        if self._holds:
            self._slots.give_back()
            self._holds = False
        try:
            answers = await self.port.ask(possible, anew=anew)
        finally:
            self._asking -= 1
            self._slots.asking -= on_connection
        async with self._taking:
            if not self._asking and not self._holds:
                self._enter()
                await self._take_slot()
        return answers

    async def outcome(self) -> dict[str, types.InputRequest]:
        """Wait until the call has ended, or has questions that only a further request can answer: these."""
        assert self.task is not None
        rounds = self.port if isinstance(self.port, Rounds) else None
        while not self.done:
            if rounds is None:
                await self._ended.wait()
                break
            rounds.news.clear()
            if rounds.questions:
                await asyncio.sleep(0)  # further questions of the same moment go out with the first
                if not self.done and (waiting := rounds.questions):
                    return waiting
                continue
            await rounds.news.wait()
        return {}

    async def stop(self) -> None:
        """Cancel the call, and wait until it has really ended."""
        if self.task is None or self.done:
            return
        self.task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self.task], timeout=STOPPING)

    # -- what the client is told meanwhile

    def take(self, event: Event) -> None:
        """Take an event that was emitted within this call, in any thread; one about another call is left out."""
        if isinstance(event, Notice):
            self._later(_Log("notice", event.message, event.tool or None))
            return
        if not isinstance(event, CallEvent) or isinstance(event, CallFinished) or event.key != self.key:
            return
        if event.progress is not None or event.tip:
            self._later(_Progress(event.progress, 1.0, event.tip or None))

    async def log(self, level: types.LoggingLevel, data: Any, logger: str | None) -> None:
        self._add(_Log(level, data, logger))

    async def progress(self, progress: float, total: float | None, message: str) -> None:
        self._add(_Progress(progress, total, message or None))

    def _later(self, news: _Log | _Progress) -> None:
        self._loop.call_soon_threadsafe(self._add, news)

    def _add(self, news: _Log | _Progress) -> None:
        if isinstance(news, _Progress) and news.message:
            self.last_words = news.message[:MAX_WORDS]
        self._news.append(news)
        while len(self._news) > MAX_NEWS:
            self._news.popleft()
        self._told.set()

    async def tell(self, session: ServerSession, request_id: Any, least: types.LoggingLevel) -> None:
        """Send news to the client while its request is attached, until the call has ended; logs from `least` up."""
        while True:
            while self._news:
                news = self._news.popleft()
                if isinstance(news, _Log):
                    if LEVELS.index(news.level) < LEVELS.index(least):
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", MCPDeprecationWarning)
                        await session.send_log_message(  # pyright: ignore[reportDeprecated]
                            news.level, news.data, news.logger, request_id
                        )
                else:
                    await session.report_progress(self._increased(news.progress), news.total, news.message)
            if self.done:
                return
            self._told.clear()
            await self._told.wait()

    def _increased(self, progress: float | None) -> float:
        """The progress that is sent: more than the last, as the protocol wants, also for a message without a number."""
        last = self._sent
        if last is None:
            self._sent = progress or 0.0
        else:
            self._sent = progress if progress is not None and progress > last else last + A_BIT
        return self._sent


@dataclass(frozen=True, slots=True)
class _Progress:
    progress: float | None
    total: float | None
    message: str | None


@dataclass(frozen=True, slots=True)
class _Log:
    level: types.LoggingLevel
    data: Any
    logger: str | None
