"""Writes the lines of a log from a thread, in the order in which they were put.

The thread starts with the first line that is put and ends when no line is left, so that an idle log has no thread.
Lines that are put while others are being written are written together, and wait for the disk once.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from typing import Any

from toolcrib.audit.log_file import AuditError, LogFile

__all__ = ["LogWriter"]


class LogWriter:
    """The lines of one `LogFile` that are still to be written. May be used from any number of threads."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._reset()

    def _reset(self) -> None:
        """Start afresh: threads and locks do not come along into a forked process."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: list[tuple[tuple[dict[str, Any], ...], Future[None]]] = []
        self._unfinished: list[
            Future[None]
        ] = []  # of all that waits or is being written; empty: no thread runs

    def put(self, *records: dict[str, Any]) -> Future[None]:
        """Write records as lines; without records, only see whether lines could be written.

        The future ends when the lines are on the disk, or with an AuditError.
        """
        if os.getpid() != self._process:
            self._reset()
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # the lines are written even if the caller stops waiting
        with self._lock:
            idle = not self._unfinished
            self._waiting.append((records, future))
            self._unfinished.append(future)
        if idle:
            try:
                # No daemon: a program that ends waits for its last lines.
                threading.Thread(target=self._write, name="toolcrib-audit", daemon=False).start()
            except RuntimeError:  # the program is ending, and no thread can be started any more
                self._write()
        return future

    def flush(self) -> None:
        """Wait until every line so far was written, or could not be."""
        with self._lock:
            unfinished = list(self._unfinished)
        for future in unfinished:
            future.exception()

    def _write(self) -> None:
        """Write all that waits, together, until nothing waits."""
        while True:
            with self._lock:
                batch, self._waiting = self._waiting, []
                self._unfinished = [future for _, future in batch]
                if not batch:
                    return
            problem: AuditError | None = None
            try:
                self._file.append([record for records, _ in batch for record in records])
            except AuditError as failed:
                problem = failed
            except Exception as bug:  # whatever happens, nobody may wait for ever
                problem = AuditError(f"the audit log {self._file.path.name} cannot be written: {bug}")
            for _, future in batch:
                if problem is None:
                    future.set_result(None)
                else:
                    future.set_exception(problem)
