"""The tasks that go on in the background of a run. They end with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib.agent.delegated_run import DelegatedRun
from toolcrib.agent.unreachable import Unreachable
from toolcrib.errors import ErrorCode, ToolError
from toolcrib.event_loops import in_loop
from toolcrib.events import Event
from toolcrib.result import ToolResult
from toolcrib.toolbox.operator_log import log_failure
from toolcrib.toolbox.provenance import of_messages
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.context import Context
    from toolcrib.toolbox.nested import NestedRun

__all__ = ["BackgroundTask", "BackgroundTasks", "CallThatEnds"]

T = TypeVar("T")

MAX_RUNNING = 8
MAX_KNOWN = 64  # with those that have ended; a result that was not read yet is always kept
LAST_WAIT = 600.0  # seconds that a run waits for its tasks when its model has answered
STOPPED = "The task was not finished: it was stopped."
FAILED = "The agent failed with an internal error. Its operator can see what it was."


class CallThatEnds:
    """Takes the place of a call's context for a run that outlives the call: it belongs to the call's run."""

    def __init__(self, ctx: Context[Any]) -> None:
        self.deps = ctx.deps
        self._ctx = ctx

    def nested_run(self, box: Any) -> NestedRun:
        """The place of the run. It is asked for while the call lasts."""
        place: NestedRun = self._ctx._connected().nested_run(self._ctx, box, outlives=True)
        return place


class Messages:
    """Messages to a run in the background, which its model is told before its next request."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self.unread: list[str] = []

    def news(self) -> list[str]:
        words, self.unread = self.unread, []
        return [f"[A message from whoever gave you the task:]\n{text}" for text in words]

    async def settle(self) -> None:
        """Called when the run would end: it reads what has come meanwhile, and waits for nothing."""

    async def aclose(self) -> None:
        """A message that came too late stays unread."""


class BackgroundTask:
    """A task that another agent works on in the background."""

    def __init__(self, id: str, work: DelegatedRun) -> None:
        self.id = id
        self.end_is_known = False  # whether the model knows that it has ended
        self.read = False  # whether its result was given to the model
        self.text, self.failed = STOPPED, True  # its result, when it has one
        self.seconds = 0.0
        self.loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        self._work = Unreachable(work)
        self._messages = work.run.box.of_run(work.run.id, Messages)
        self._task = self.loop.create_task(self._done(work), name=f"toolcrib task {id}")

    async def _done(self, work: DelegatedRun) -> None:
        try:
            self.text, self.failed = await work.text(), False
        except ToolError as unfinished:
            self.text = unfinished.message
        except Exception:
            log_failure(f"the agent of task {self.id} failed", work.mask)
            self.text = FAILED
        finally:
            self.seconds = time.monotonic() - self._started
        if late := self._messages.unread:
            self.text += f"\n[It ended before it read {counted(len(late), 'message')} of yours.]"

    @property
    def running(self) -> bool:
        return not self._task.done()

    def as_result(self, text: str, *, code: ErrorCode | None = None) -> ToolResult:
        """A result with a text of its agent, marked as from outside if the agent took in content from outside."""
        result, outcome = ToolResult.of(text, code=code), self._work.value.run.outcome
        result.outside = outcome is not None and bool(of_messages(outcome.messages).taint)
        return result

    @property
    def progress(self) -> str:
        """How far a running task is."""
        run = self._work.value.run
        return (
            f"{time.monotonic() - self._started:.0f} s, {counted(run.turns, 'request')} to its model so far"
        )

    def send(self, message: str) -> None:
        """Tell the agent something before its next request. Raises ToolError if its run has ended."""
        if not self.running or self._work.value.run.outcome is not None:
            raise ToolError(f"Task {self.id} has ended. task_check(task_id={self.id!r}) gives its result.")
        self._messages.unread.append(message)

    async def ended(self, timeout: float | None) -> bool:
        """Wait for its end, `timeout` seconds at most; returns whether it has ended."""
        await asyncio.wait([self._task], timeout=timeout)
        return not self.running

    async def settled(self) -> None:
        """Wait for its end, from any loop, as long as a run waits that would end."""
        await self.in_its_loop(self.ended(LAST_WAIT))

    async def cancel(self) -> None:
        """Stop it, and wait until it has stopped."""
        if self.running:
            self._work.value.run.cancel()
            await self.ended(None)

    async def in_its_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work in the loop that it runs in."""
        return await in_loop(self.loop, work)


class BackgroundTasks:
    """The tasks of a run, by their ids."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._known: dict[str, BackgroundTask] = {}
        self._count = 0

    def check_room(self) -> None:
        """Raises ToolError if no further task may be started."""
        running = [task.id for task in self._known.values() if task.running]
        if len(running) >= MAX_RUNNING:
            raise ToolError(
                f"{MAX_RUNNING} tasks run in the background, and no more are allowed at one time: "
                f"{', '.join(running)}. Wait for one with task_check, or end it with task_cancel."
            )

    def start(self, agent: str, work: DelegatedRun) -> str:
        """Start a run in the background; returns its id."""
        self._count += 1
        id = f"{agent}-{self._count}"
        self._known[id] = BackgroundTask(id, work)
        read = [task.id for task in self._known.values() if task.read]
        for old in read[: max(0, len(self._known) - MAX_KNOWN)]:
            del self._known[old]
        return id

    def get(self, id: str) -> BackgroundTask:
        """The task of an id. Raises ToolError if there is none."""
        if (found := self._known.get(id)) is not None:
            return found
        have = f"There are: {', '.join(self._known)}." if self._known else "None was started in it."
        raise ToolError(f"This run has no task {id!r} in the background. {have} Tasks end with their run.")

    @property
    def at_work(self) -> bool:
        """Whether a task is running."""
        return any(task.running for task in self._known.values())

    def news(self) -> list[str]:
        """A sentence about each task that ended and that the model was not told of."""
        ended = [task for task in self._known.values() if not task.running and not task.end_is_known]
        for task in ended:
            task.end_is_known = True
        return [
            f"[Task {task.id} has ended{' without being finished' if task.failed else ''}: "
            f"task_check(task_id={task.id!r}) gives its result.]"
            for task in ended
        ]

    async def settle(self) -> None:
        """Wait for the running tasks, because the run would end them."""
        await asyncio.gather(*(task.settled() for task in self._known.values() if task.running))

    async def aclose(self) -> None:
        """Cancel the running tasks, and wait until they have stopped."""
        await asyncio.gather(*(task.in_its_loop(task.cancel()) for task in self._known.values()))
