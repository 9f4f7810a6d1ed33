"""The chain of a log: each line is sealed with a key that is forgotten with it.

The seal of a line is an HMAC over the seal before it and the line's own text. After each line the key is
replaced by its hash, so that whoever gets hold of the key of today cannot forge the lines of yesterday. What
the chain alone cannot show is that lines at its end are missing; for that the last seal and the number of
lines are kept in a file beside it (`NAME.head`), which is worth more the farther away it is copied.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

START = "0" * 64
SEALED = len(f',"seal":"{START}"}}')


@dataclass(slots=True)
class Chain:
    """Where a chain stands: the key of the next line, the seal of the last, and how many there are."""

    key: bytes
    seal: str = START
    count: int = 0

    def sealed(self, record: dict[str, Any]) -> str:
        """A record as the next line; the chain has moved on."""
        text = canonical({"n": self.count, **record})
        self.seal = seal_of(self.key, self.seal, text)
        self.key = hashlib.sha256(b"next" + self.key).digest()
        self.count += 1
        return f'{text[:-1]},"seal":"{self.seal}"}}'


@dataclass(frozen=True, slots=True)
class Broken:
    """The first line that is not what was written, counted from 1, and what is wrong with it."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class Checked:
    """What `verify` found: how many lines hold, the seal of the last of them, and where it breaks, if it does."""

    lines: int
    seal: str
    broken: Broken | None = None

    @property
    def ok(self) -> bool:
        return self.broken is None


def canonical(record: dict[str, Any]) -> str:
    """A record as one line of JSON, the same for the same record."""
    return json.dumps(record, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=str)


def seal_of(key: bytes, before: str, text: str) -> str:
    return hmac.digest(key, f"{before}\n{text}".encode("utf-8", "replace"), "sha256").hex()


def follow(chain: Chain, lines: Iterable[str], head: tuple[int, str] | None = None) -> Broken | None:
    """Move a chain on over the lines that stand written; where it breaks, or where the head is not met, if so."""
    for line in _whole(lines):
        text = f"{line[:-SEALED]}}}"
        wanted = seal_of(chain.key, chain.seal, text)
        if not hmac.compare_digest(
            f'{text[:-1]},"seal":"{wanted}"}}'.encode(), line.encode("utf-8", "replace")
        ):
            return _misfit(chain, line)
        number = chain.count + 1
        chain.seal, chain.count = wanted, number
        chain.key = hashlib.sha256(b"next" + chain.key).digest()
        if head is not None and head[0] == chain.count and head[1] != chain.seal:
            return Broken(number, "it is not the line that the head was noted at")
    return None


def _misfit(chain: Chain, line: str) -> Broken:
    """What is wrong with a line that does not follow; what follows is what was written, its number included."""
    number = chain.count + 1
    try:
        record = json.loads(line)
        place, _ = record["n"], record["seal"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return Broken(number, "it is not a line of this log")
    if place != chain.count:
        said = place + 1 if isinstance(place, int) else place
        return Broken(number, f"it says that it is line {said}: lines are missing or moved")
    return Broken(number, "it was changed, or another key was used")


def verify(lines: Iterable[str], key: bytes, *, head: tuple[int, str] | None = None) -> Checked:
    """Follow a log's chain from its first line; `head` is how many lines there must be, and the seal of that line.

    More lines than the head knows are no fault: who stops between the two leaves the head behind.
    """
    chain = Chain(key)
    broken = follow(chain, lines, head) or too_short(chain, head)
    return Checked(chain.count, chain.seal, broken)


def too_short(chain: Chain, head: tuple[int, str] | None) -> Broken | None:
    """What is wrong where the head knows of more lines than there are."""
    if head is None or head[0] <= chain.count:
        return None
    missing = head[0] - chain.count
    what = "1 line is missing" if missing == 1 else f"{missing} lines are missing"
    return Broken(chain.count + 1, f"{what} at the end")


def _whole(lines: Iterable[str]) -> Iterator[str]:
    return (stripped for line in lines if (stripped := line.rstrip("\n")))
