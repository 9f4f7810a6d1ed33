"""The log of a toolbox: one line before a call runs, saying who allowed it and why, and one after it."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolcrib.audit.chain import Chain, verify
from toolcrib.call import Ready, Refused, fingerprint
from toolcrib.errors import ToolcribError
from toolcrib.result import ToolResult

KEY_BYTES = 32
SHOWN = 500  # characters of arguments in a line; the whole is in their hash


class AuditError(ToolcribError):
    """The log cannot be written, or is not the one that this key wrote."""


class AuditLog:
    """Lines appended to a file, each written to the disk before a call may go on.

    `on_failure` says what happens when a line cannot be written (a full disk, say): "stop" refuses the call,
    "go_on" runs it and calls `complain` with the reason each time. `actor` is who the run works for. Arguments
    are noted as their fingerprint and a short text from which `mask` has taken secrets. Raises AuditError when
    the file does not end as its head says.

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
        mask: Callable[[str], str] = lambda text: text,
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
        self._key = key
        self._mask = mask
        self._complain = complain or _to_logging
        self._clock = clock
        self._sync = sync
        self._lock = threading.Lock()
        self._chain: Chain | None = None

    @property
    def head(self) -> Path:
        """The file beside the log that says how many lines there are and how the last is sealed."""
        return self.path.with_name(self.path.name + ".head")

    def decided(self, ready: Ready, definition: Any) -> str:
        """Note that a call is going to run. What stands in its way when that cannot be written, or ""."""
        mark = ready.fingerprint or fingerprint(definition.identity, ready.arguments)
        return self._noted(
            {
                "event": "decided",
                "call": str(ready.key),
                "tool": ready.call.name,
                "version": definition.facts.version or definition.identity[:12],
                "effect": ready.effect.label,
                "why": ready.why or "its effect is allowed",
                "fingerprint": mark,
                "arguments": self._short(ready.arguments),
            }
        )

    def ended(self, ready: Ready, result: ToolResult, seconds: float) -> None:
        """Note how a call ended."""
        code = result.code.value if result.code is not None else ""
        self._noted(
            {
                "event": "ended",
                "call": str(ready.key),
                "tool": ready.call.name,
                "outcome": code or ("error" if result.is_error else "ok"),
                "seconds": round(seconds, 3),
                "result": hashlib.sha256(result.text.encode("utf-8", "surrogatepass")).hexdigest(),
            }
        )

    def refused(self, refused: Refused) -> None:
        """Note that a call was not run, and why."""
        result = refused.result
        self._noted(
            {
                "event": "refused",
                "call": str(refused.key),
                "tool": refused.call.name,
                "outcome": result.code.value if result.code is not None else "error",
                "why": self._mask(result.text)[:SHOWN],
                "arguments": self._short(refused.call.arguments),
            }
        )

    def note(self, record: dict[str, Any]) -> None:
        """Append a record. Raises AuditError where that fails."""
        with self._lock:
            chain = self._chain or self._opened()
            following = Chain(chain.key, chain.seal, chain.count)
            line = following.sealed({"at": round(self._clock(), 3), "by": self.actor, **record})
            try:
                self._append(line)
            except OSError as problem:
                self._chain = None  # what is in the file now is looked at again
                raise AuditError(
                    f"the audit log {self.path.name} cannot be written: {problem.strerror}"
                ) from None
            self._chain = following
            self._keep_head(following)

    def check(self) -> Any:
        """Follow the chain from its beginning to the head: a `Checked`. Raises OSError for a missing file."""
        with self.path.open(encoding="utf-8") as lines:
            return verify(lines, self._key, head=self._head())

    def _noted(self, record: dict[str, Any]) -> str:
        try:
            self.note(record)
        except (AuditError, OSError) as problem:
            stops = self.on_failure == "stop"
            self._complain(f"{problem}; {'the call is not run' if stops else 'the call goes on unrecorded'}")
            return "the log of what is done cannot be written" if stops else ""
        return ""

    def _short(self, arguments: Any) -> str:
        text = (
            arguments
            if isinstance(arguments, str)
            else json.dumps(arguments, ensure_ascii=False, default=str)
        )
        masked = self._mask(text)
        return masked if len(masked) <= SHOWN else masked[:SHOWN] + "…"

    def _opened(self) -> Chain:
        """The chain as the file leaves it; followed once, when the first line is written."""
        if not self.path.exists():
            if self._head() is not None:
                raise AuditError(
                    f"the audit log {self.path} is gone, and its head is there: somebody removed it"
                )
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return Chain(self._key)
        self._drop_torn_line()
        checked = self.check()
        if checked.broken is not None:
            raise AuditError(f"the audit log {self.path} does not hold: {checked.broken}")
        key = self._key
        for _ in range(checked.lines):
            key = hashlib.sha256(b"next" + key).digest()
        return Chain(key, checked.seal, checked.lines)

    def _drop_torn_line(self) -> None:
        """A line that a crash cut in the middle was never followed by its call; the head does not count it."""
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with self.path.open("r+b") as file:
                file.truncate(whole)

    def _append(self, line: str) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            data = line.encode() + b"\n"
            if os.write(fd, data) != len(data):
                raise OSError(28, "only a part of the line could be written")
            if self._sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def _keep_head(self, chain: Chain) -> None:
        temporary = self.head.with_name(f".{self.head.name}.{os.getpid()}")
        try:
            temporary.write_text(f"{chain.count} {chain.seal}\n")
            temporary.replace(self.head)
        except OSError as problem:
            self._complain(f"the head of the audit log cannot be written: {problem.strerror}")

    def _head(self) -> tuple[int, str] | None:
        try:
            count, _, seal = self.head.read_text().strip().partition(" ")
            return int(count), seal
        except (FileNotFoundError, ValueError):
            return None


def read_key(path: str | Path) -> bytes:
    """The key of a log from a file that is its owner's alone; made if there is none. Raises AuditError."""
    place = Path(path)
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = os.urandom(KEY_BYTES)
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(key.hex().encode())
        return key
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_mode & 0o077:
            raise AuditError(f"{place} can be read by others; make it yours alone: chmod 600 {place}")
        try:
            key = bytes.fromhex(file.read(1000).decode().strip())
        except ValueError:
            key = b""
    if len(key) < KEY_BYTES:
        raise AuditError(f"{place} holds no key of {KEY_BYTES} bytes in hexadecimal")
    return key


def _to_logging(words: str) -> None:
    import logging

    logging.getLogger("toolcrib").warning("%s", words)
