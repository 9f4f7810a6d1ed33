"""Writes the lines of a log from a thread, in the order in which they were put.

Lines that are put while others are being written are written together, and wait for the disk once. A line that nobody
waits for is written at once too, and waits for the disk together with the next lines, or shortly afterwards. The thread
starts with the first line that is put and ends soon after the last, so that an idle log has no thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from toolcrib.audit.log_file import AuditError, LogFile
from toolcrib.dataclass import dataclass

if TYPE_CHECKING:
    import asyncio

__all__ = ["LogWriter"]

LINGER = 0.02  # seconds that the thread waits for more lines, before it waits for the disk for those before

Told = Callable[[AuditError | None], None]
"""Called from the thread when lines are on the disk, or with the reason why they are not."""


@dataclass(slots=True)
class _Lines:
    """Records to be written, and who is told. `waits`: somebody waits until they are on the disk."""

    records: tuple[dict[str, Any], ...]
    waits: bool
    when_written: Told | asyncio.Future[None]


class LogWriter:
    """The lines of one `LogFile` that are still to be written. May be used from any number of threads and loops."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._reset()

    def _reset(self) -> None:
        """Start afresh: threads and locks do not come along into a forked process."""
        self._process = os.getpid()
        self._more = threading.Condition(threading.Lock())
        self._waiting: list[_Lines] = []
        self._running = False

    def put(self, *records: dict[str, Any]) -> Future[None]:
        """Write records as lines; without records, only see whether lines could be written.

        The future ends when the lines are on the disk, or with an AuditError.
        """
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # the lines are written even if the caller stops waiting

        def told(problem: AuditError | None) -> None:
            if problem is None:
                future.set_result(None)
            else:
                future.set_exception(problem)

        self._add(_Lines(records, True, told))
        return future

    def put_later(self, record: dict[str, Any], told: Told) -> None:
        """Write a record for which nobody waits; `told` is called from the thread."""
        self._add(_Lines((record,), False, told))

    def put_awaited(self, record: dict[str, Any]) -> asyncio.Future[None]:
        """Write a record. The future, of the running loop, ends when it is on the disk, or with an AuditError."""
        import asyncio

        future = asyncio.get_running_loop().create_future()
        self._add(_Lines((record,), True, future))
        return future

    def flush(self) -> None:
        """Wait until every line so far is on the disk, or could not be written."""
        with self._more:
            running = self._running
        if running and os.getpid() == self._process:
            self.put().exception()

    def _add(self, lines: _Lines) -> None:
        if os.getpid() != self._process:
            self._reset()
        with self._more:
            first = not self._waiting  # the thread is told of the others as long as it has not taken this one
            self._waiting.append(lines)
            running, self._running = self._running, True
            if running and first:
                self._more.notify()
        if not running:
            try:
                # No daemon: a program that ends waits for its last lines.
                threading.Thread(
                    target=self._run, args=(LINGER,), name="toolcrib-audit", daemon=False
                ).start()
            except RuntimeError:  # the program is ending, and no thread can be started any more
                self._run(0.0)

    def _run(self, linger: float) -> None:
        """Write all that waits, together, until nothing has come for a while."""
        unsynced: list[_Lines] = []
        while True:
            with self._more:
                if not self._waiting and linger:
                    self._more.wait(linger)
                batch, self._waiting = self._waiting, []
                if not batch and not unsynced:
                    self._running = False
                    return
            sync = not batch or any(lines.waits for lines in batch)
            problem: AuditError | None = None
            try:
                self._file.append([record for lines in batch for record in lines.records], sync=sync)
            except AuditError as failed:
                problem = failed
            except Exception as bug:  # whatever happens, nobody may wait for ever
                problem = AuditError(f"the audit log {self._file.path.name} cannot be written: {bug}")
            if sync:
                _tell([*unsynced, *batch], problem)
                unsynced = []
            elif problem is not None:
                _tell(batch, problem)
            else:
                unsynced += batch


def _tell(written: list[_Lines], problem: AuditError | None) -> None:
    """Tell everybody who waits; those of one event loop together, because each message wakes it."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for lines in written:
        if callable(lines.when_written):
            try:
                lines.when_written(problem)
            except BaseException:  # of the program's own complaint or logging: the thread has to go on
                pass
        else:
            by_loop.setdefault(lines.when_written.get_loop(), []).append(lines.when_written)
    for loop, futures in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, futures, problem)
        except RuntimeError:  # the loop is closed, and nobody waits any more
            pass


def _settle(futures: list[asyncio.Future[None]], problem: AuditError | None) -> None:
    for future in futures:
        if future.done():  # cancelled
            continue
        if problem is None:
            future.set_result(None)
        else:
            future.set_exception(problem)
