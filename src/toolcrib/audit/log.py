"""The audit log of a toolbox: one line before a call runs, saying who allowed it and why, and one after it.

A call waits until its first line is on the disk. Nothing waits for the other lines: they are written at once, and are
on the disk a moment later.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolcrib.audit.chain import LogCheck
from toolcrib.audit.key import KEY_BYTES
from toolcrib.audit.log_file import AuditError, LogFile
from toolcrib.audit.writer import LogWriter
from toolcrib.call import CallKey
from toolcrib.fingerprint import fingerprint
from toolcrib.json_text.encoder import json_encoder
from toolcrib.prepared import Ready, Refused
from toolcrib.result import ToolResult

__all__ = ["AuditLog"]

MAX_TEXT = 500  # characters of arguments in a line; the line's fingerprint stands for all of them
AS_TEXT = json_encoder(ascii_only=False, sort_keys=False, separators=(", ", ": "))
MAX_MASKED = 32_000  # characters that are masked
LONGEST_SECRET = (
    24_000  # characters at their end that are not shown: a secret that was cut there is not recognised
)

Mask = Callable[[str], str]


class AuditLog:
    """Appends lines to a file. Several logs, threads and processes may write to the same file.

    `on_failure` says what happens when a line cannot be written (for example because the disk is full): "stop"
    refuses the call, "go_on" runs the call and passes the reason to `complain` each time. `actor` is the person for
    whom the run works. A line holds the fingerprint of the arguments and the beginning of their text, in which the
    toolbox's secrets are masked, and then whatever `mask` masks. With `sync=False` the operating system decides when
    the lines reach the disk.

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
        self._known_failure = ""  # why no line can be written, once `ready` has said so
        self._file = LogFile(self.path, key, sync=sync)
        self._writer = LogWriter(self._file)

    @property
    def head(self) -> Path:
        """The file beside the log that holds the number of its lines and the seal of the last one."""
        return self._file.head

    async def decided(self, ready: Ready, definition: Any, mask: Mask | None = None) -> str:
        """Record that a call is going to run. Returns why it must not run; "" if it may."""
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
        return await self._written_before(record)

    async def step(self, key: CallKey, tool: str, action: str, why: str, *, allowed: bool) -> str:
        """Record the answer to a tool that asked while it was running. Returns why it must not go on; "" if it may."""
        record = {
            "event": "step",
            "call": str(key),
            "tool": tool,
            "outcome": "allowed" if allowed else "not allowed",
            "why": self._short(why, None),
            "arguments": self._short(action, None),
        }
        return await self._written_before(record)

    async def _written_before(self, record: dict[str, Any]) -> str:
        """Wait until a record is on the disk. Returns why the call must not go on; "" if it may."""
        try:
            await self._writer.put_awaited(self._signed(record))
        except AuditError as problem:
            stops = self.on_failure == "stop"
            self._complain_about(problem, "the call is not run" if stops else "the call goes on unrecorded")
            return "the log of what is done cannot be written" if stops else ""
        return ""

    def ended(self, ready: Ready, result: ToolResult, seconds: float) -> None:
        """Record how a call ended."""
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
        """Record that a call was not run, and why."""
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
        """Check before a run whether lines can be written: creates the file, or follows its chain.

        Raises AuditError where they cannot; with "go_on" it complains once that nothing will be recorded.
        """
        try:
            self._writer.put().result()
        except AuditError as problem:
            if self.on_failure == "stop":
                raise
            self._known_failure = str(problem)
            self._complain(f"{problem}; the run goes on, and what it does is NOT RECORDED")

    def note(self, record: dict[str, Any]) -> None:
        """Append a record and wait for the disk. Raises AuditError where that fails."""
        self._writer.put(self._signed(record)).result()

    def flush(self) -> None:
        """Wait until every line so far is on the disk, or could not be written."""
        self._writer.flush()

    def check(self) -> LogCheck:
        """Check the chain from its first line to the head. Raises OSError for a missing file."""
        self.flush()
        return self._file.check()

    def _later(self, record: dict[str, Any], lost: str) -> None:
        """Put a record without waiting for it; `lost` says what is missing if it cannot be written."""

        def told(problem: AuditError | None) -> None:
            if problem is not None:
                self._complain_about(problem, lost)

        self._writer.put_later(self._signed(record), told)

    def _signed(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record with its time and its actor."""
        try:
            now = self._clock()
        except BaseException as error:
            raise _as_error(error) from error
        return {"at": round(now, 3), "by": self.actor, **record}

    def _complain_about(self, problem: BaseException, consequence: str) -> None:
        """Report each failure, except one that `ready` has already reported."""
        if str(problem) == self._known_failure:
            return
        words = f"{problem}; {consequence}"
        try:
            self._complain(words)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            _to_logging(f"{words} (and it could not be reported: {type(error).__name__})")

    def _short(self, value: Any, mask: Mask | None) -> str:
        text = value if isinstance(value, str) else AS_TEXT(value)
        begun = text[:MAX_MASKED]
        try:
            masked = self._mask(begun if mask is None else mask(begun))
        except BaseException as error:
            raise _as_error(error) from error
        if len(begun) < len(text):
            return masked[:-LONGEST_SECRET][:MAX_TEXT] + "…"
        return masked if len(masked) <= MAX_TEXT else masked[:MAX_TEXT] + "…"


def _as_error(error: BaseException) -> BaseException:
    """What code of a user raised, as an Exception: it can neither cancel the call nor end the program."""
    if isinstance(error, Exception | KeyboardInterrupt):
        return error
    return RuntimeError(f"{type(error).__name__} was raised, which nobody asked for")


def _to_logging(words: str) -> None:
    import logging

    logging.getLogger("toolcrib").warning("%s", words)
