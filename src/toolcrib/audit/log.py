"""The log of a toolbox: one line before a call runs, saying who allowed it and why, and one after it.

Lines are written by a thread of the log's own, in the order in which they were given: what waits is written
together and costs one wait for the disk. A call waits for its first line; nothing waits for the others.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from toolcrib.audit.chain import Checked
from toolcrib.audit.log_file import CAREFUL, AuditError, LogFile
from toolcrib.call import CallKey
from toolcrib.fingerprint import fingerprint
from toolcrib.prepared import Ready, Refused
from toolcrib.result import ToolResult

KEY_BYTES = 32
SHOWN = 500  # characters of arguments in a line; the whole is in their hash
LOOKED_AT = 8 * SHOWN  # characters that are masked before: a secret that is cut is not recognised
RUNS = "the call is not run", "the call goes on unrecorded"

Mask = Callable[[str], str]


class AuditLog:
    """Lines appended to a file, each on the disk before its call may go on; any number may write to one file.

    `on_failure` says what happens when a line cannot be written (a full disk, say): "stop" refuses the call,
    "go_on" runs it and calls `complain` with the reason each time. `actor` is who the run works for. Arguments
    are noted as their fingerprint and a short text from which the toolbox's secrets, and what `mask` knows,
    are taken. `sync=False` trusts the system to write to the disk in its own time.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> log = AuditLog(f"{folder}/audit.jsonl", key=b"k" * 32)
    >>> log.note({"event": "hello"})
    >>> log.check().lines
    1
    """

    def __init__(
        self,
        path: str | Path,
        *,
        key: bytes,
        actor: str = "",
        on_failure: str = "stop",
        mask: Mask = lambda text: text,
        complain: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
        sync: bool = True,
    ) -> None:
        if len(key) < KEY_BYTES:
            raise ValueError(f"the key of a log has at least {KEY_BYTES} bytes, got {len(key)}")
        if on_failure not in ("stop", "go_on"):
            raise ValueError(f'on_failure must be "stop" or "go_on", got {on_failure!r}')
        self.path = Path(path)
        self.actor = actor
        self.on_failure = on_failure
        self._mask = mask
        self._complain = complain or _to_logging
        self._clock = clock
        self._known = ""  # why nothing can be written, once the run was told so
        self._file = LogFile(self.path, key, sync=sync)
        self._begin()

    def _begin(self) -> None:
        """A writer of our own: threads and locks do not come along into a forked process."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: list[tuple[dict[str, Any], Future[None]]] = []
        self._writing = False
        self._writer = ThreadPoolExecutor(1, "toolcrib-audit")  # its work is done before the program ends

    @property
    def head(self) -> Path:
        """The file beside the log that says how many lines there are and how the last is sealed."""
        return self._file.head

    async def decided(self, ready: Ready, definition: Any, mask: Mask | None = None) -> str:
        """Note that a call is going to run. What stands in its way when that cannot be written, or ""."""
        mark = ready.fingerprint or fingerprint(definition.identity, ready.arguments)
        record = {
            "event": "decided",
            "call": str(ready.key),
            "tool": ready.call.name,
            "version": definition.facts.version or definition.identity[:12],
            "effect": ready.effect.label,
            "why": self._short(ready.why, mask) or "its effect is allowed",
            "fingerprint": mark,
            "arguments": self._short(ready.arguments, mask),
        }
        return await self._first(record)

    async def step(self, key: CallKey, tool: str, action: str, why: str, *, allowed: bool) -> str:
        """Note what was said to a tool that asked in the middle of its work. What stands in its way, or ""."""
        record = {
            "event": "step",
            "call": str(key),
            "tool": tool,
            "outcome": "allowed" if allowed else "not allowed",
            "why": self._short(why, None),
            "arguments": self._short(action, None),
        }
        return await self._first(record)

    async def _first(self, record: dict[str, Any]) -> str:
        """Write it before what it is about goes on."""
        try:
            await asyncio.wrap_future(self._put(record))
        except AuditError as problem:
            stops = self.on_failure == "stop"
            self._say_of(problem, RUNS[not stops])
            return "the log of what is done cannot be written" if stops else ""
        return ""

    def ended(self, ready: Ready, result: ToolResult, seconds: float) -> None:
        """Note how a call ended."""
        code = result.code.value if result.code is not None else ""
        self._later(
            {
                "event": "ended",
                "call": str(ready.key),
                "tool": ready.call.name,
                "outcome": code or ("error" if result.is_error else "ok"),
                "seconds": round(seconds, 3),
                "result": hashlib.sha256(result.text.encode("utf-8", "surrogatepass")).hexdigest(),
            },
            "how a call ended is not recorded",
        )

    def refused(self, refused: Refused, mask: Mask | None = None) -> None:
        """Note that a call was not run, and why."""
        result = refused.result
        self._later(
            {
                "event": "refused",
                "call": str(refused.key),
                "tool": self._short(refused.call.name, mask),
                "outcome": result.code.value if result.code is not None else "error",
                "why": self._short(result.text, mask),
                "arguments": self._short(refused.call.arguments, mask),
            },
            "that a call was refused is not recorded",
        )

    def ready(self) -> None:
        """See now whether lines can be written, before a run rests on it: the file is made, its chain followed.

        Raises AuditError where it cannot; with "go_on" it is said once that nothing will be recorded.
        """
        try:
            self._writer.submit(self._file.ready).result()
        except AuditError as problem:
            if self.on_failure == "stop":
                raise
            self._known = str(problem)
            self._complain(f"{problem}; the run goes on, and what it does is NOT RECORDED")

    def note(self, record: dict[str, Any]) -> None:
        """Append a record and wait for the disk. Raises AuditError where that fails."""
        self._put(record).result()

    def flush(self) -> None:
        """Wait until all lines so far were written, or could not be."""
        with self._lock:
            waiting = [future for _, future in self._waiting]
        for future in waiting:
            future.exception()
        self._writer.submit(int).result()

    def check(self) -> Checked:
        """Follow the chain from its beginning to the head: a `Checked`. Raises OSError for a missing file."""
        self.flush()
        return self._file.check()

    def _later(self, record: dict[str, Any], lost: str) -> None:
        def done(future: Future[None]) -> None:
            if (problem := future.exception()) is not None:
                self._say_of(problem, lost)

        self._put(record).add_done_callback(done)

    def _say_of(self, problem: BaseException, what: str) -> None:
        """Each time, but for what was said when the run began."""
        if str(problem) != self._known:
            self._complain(f"{problem}; {what}")

    def _put(self, record: dict[str, Any]) -> Future[None]:
        if os.getpid() != self._process:
            self._begin()
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # it is written, whoever stops waiting for it
        with self._lock:
            self._waiting.append(({"at": round(self._clock(), 3), "by": self.actor, **record}, future))
            if self._writing:
                return future
            self._writing = True
        try:
            self._writer.submit(self._write)
        except RuntimeError:  # the program is ending
            self._write()
        return future

    def _write(self) -> None:
        """What waits, together, until nothing does."""
        while True:
            with self._lock:
                taken, self._waiting = self._waiting, []
                if not taken:
                    self._writing = False
                    return
            problem: AuditError | None = None
            try:
                self._file.append([record for record, _ in taken])
            except AuditError as failed:
                problem = failed
            except Exception as bug:  # nobody may wait for ever
                problem = AuditError(f"the audit log {self.path.name} cannot be written: {bug}")
            for _, future in taken:
                if problem is None:
                    future.set_result(None)
                else:
                    future.set_exception(problem)

    def _short(self, value: Any, mask: Mask | None) -> str:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        text = text[:LOOKED_AT]
        masked = self._mask(text if mask is None else mask(text))
        return masked if len(masked) <= SHOWN else masked[:SHOWN] + "…"


def read_key(path: str | Path) -> bytes:
    """The key of a log from a file that is its owner's alone; made if there is none. Raises AuditError."""
    place = Path(path)
    try:
        fd = os.open(place, os.O_RDONLY | CAREFUL)
    except FileNotFoundError:
        _make_key(place)
        fd = os.open(place, os.O_RDONLY | CAREFUL)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise AuditError(f"{place} is no ordinary file")
        if status.st_uid != os.geteuid():
            raise AuditError(f"{place} belongs to another user")
        if status.st_mode & 0o077:
            raise AuditError(f"{place} can be read by others; make it yours alone: chmod 600 {place}")
        try:
            key = bytes.fromhex(file.read(1000).decode().strip())
        except ValueError:
            key = b""
    if len(key) < KEY_BYTES:
        raise AuditError(f"{place} holds no key of {KEY_BYTES} bytes in hexadecimal")
    return key


def _make_key(place: Path) -> None:
    """Written whole before it has its name: of several who make one at once, all use the same."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unnamed = place.with_name(f".{place.name}.{os.urandom(8).hex()}")
    fd = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CAREFUL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(os.urandom(KEY_BYTES).hex().encode())
            file.flush()
            os.fsync(file.fileno())
        os.link(unnamed, place)
    except FileExistsError:
        pass
    finally:
        unnamed.unlink()


def _to_logging(words: str) -> None:
    import logging

    logging.getLogger("toolcrib").warning("%s", words)
