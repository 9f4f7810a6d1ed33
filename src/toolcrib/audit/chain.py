"""The hash chain of a log: each line is sealed with a key of its own.

The seal of a line is an HMAC over the seal before it and the line's own text. After each line the key is
replaced by its hash, so that somebody who obtains today's key cannot forge yesterday's lines. The chain alone cannot
show that lines are missing at its end; for that, the number of lines and the last seal are kept in a file beside the
log (`NAME.head`), which protects more if it is copied elsewhere.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import Any

from toolcrib.dataclass import dataclass
from toolcrib.json_text.encoder import json_encoder

__all__ = ["Chain", "LogBreak", "LogCheck", "verify"]

START = "0" * 64
NO_END = "it has no end: its writer was killed, or the log was cut"
MAX_LINES = 10**15
ENCODED = ("utf-8", "surrogatepass")  # keeps half surrogate pairs apart from "?"
SEALED = len(f',"seal":"{START}"}}')


@dataclass(slots=True)
class Chain:
    """The state of a chain: the key of the next line, the seal of the last line, and the number of lines."""

    key: bytes
    seal: str = START
    count: int = 0

    def sealed(self, record: dict[str, Any]) -> str:
        """Seal a record as the next line, and move the chain on."""
        text = canonical({"n": self.count, **record})
        self.seal = seal_of(self.key, self.seal, text)
        self.key = hashlib.sha256(b"next" + self.key).digest()
        self.count += 1
        return f'{text[:-1]},"seal":"{self.seal}"}}'


@dataclass(frozen=True, slots=True)
class LogBreak:
    """The first line that does not hold, counted from 1, and what is wrong with it."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class LogCheck:
    """The result of `verify`: how many lines hold, the seal of the last of these, and where the chain breaks."""

    lines: int
    seal: str
    broken: LogBreak | None = None

    @property
    def ok(self) -> bool:
        return self.broken is None


CANONICAL = json_encoder(ascii_only=True, sort_keys=True, separators=(",", ":"))


def canonical(record: dict[str, Any]) -> str:
    """A record as one line of JSON; equal records give equal lines."""
    return CANONICAL(record)


def seal_of(key: bytes, before: str, text: str) -> str:
    return hmac.digest(key, f"{before}\n{text}".encode(*ENCODED), "sha256").hex()


def follow(chain: Chain, lines: Iterable[str], head: tuple[int, str] | None = None) -> LogBreak | None:
    """Move a chain on over written lines. Returns where it breaks or differs from the head; None if it holds."""
    ended = breaks = False
    for given in lines:
        if ended:
            return LogBreak(chain.count + 1, "an empty line stands before it")
        ended = not given  # what comes after the last line break of a text
        if ended:
            continue
        if breaks and not given.endswith("\n"):
            return LogBreak(chain.count + 1, NO_END)
        breaks = given.endswith("\n")
        line = given.removesuffix("\n")
        text = f"{line[:-SEALED]}}}"
        wanted = seal_of(chain.key, chain.seal, text)
        if not hmac.compare_digest(
            f'{text[:-1]},"seal":"{wanted}"}}'.encode(*ENCODED), line.encode(*ENCODED)
        ):
            return _misfit(chain, line)
        number = chain.count + 1
        chain.seal, chain.count = wanted, number
        chain.key = hashlib.sha256(b"next" + chain.key).digest()
        if head is not None and head[0] == chain.count and head[1] != chain.seal:
            return LogBreak(number, "it is not the line that the head was noted at")
    return None


def _misfit(chain: Chain, line: str) -> LogBreak:
    """What is wrong with a line whose seal does not match."""
    number = chain.count + 1
    try:
        record = json.loads(line)
        place, _ = record["n"], record["seal"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return LogBreak(number, "it is not a line of this log")
    if type(place) is not int or not 0 <= place < MAX_LINES:  # what stands there may be text for a terminal
        return LogBreak(number, "it is not a line of this log")
    if place != chain.count:
        return LogBreak(number, f"it says that it is line {place + 1}: lines are missing or moved")
    return LogBreak(number, "it was changed, or another key was used")


def verify(lines: Iterable[str], key: bytes, *, head: tuple[int, str] | None = None) -> LogCheck:
    """Check a log's chain from its first line; `head` is the number of lines that must be there, and the last seal.

    Lines may have their line breaks or not, but then all of them. More lines than the head counts are no fault: a
    writer may be stopped after a line and before the head is written.
    """
    chain = Chain(key)
    broken = follow(chain, lines, head) or too_short(chain, head)
    return LogCheck(chain.count, chain.seal, broken)


def too_short(chain: Chain, head: tuple[int, str] | None) -> LogBreak | None:
    """The problem, if the head counts more lines than the log has."""
    if head is None or head[0] <= chain.count:
        return None
    missing = head[0] - chain.count
    what = "1 line is missing" if missing == 1 else f"{missing} lines are missing"
    return LogBreak(chain.count + 1, f"{what} at the end")
