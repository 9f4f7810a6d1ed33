"""What it costs to find the calls in a text: microseconds a kilobyte, and whether they grow with the text."""

import gc
import json
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

SIZES = {"10 kB": 10_000, "100 kB": 100_000, "1 MB": 1_000_000}
PIECE = 16
Calls = list[tuple[str, Any]]


class Reader(NamedTuple):
    """Who reads: `write` makes a text of these calls, `read` finds them in its pieces.

    `many` says whether the text holds a call a kilobyte, or one of the whole size; `piece` how many
    characters come at a time, 0 for all at once.
    """

    row: str
    write: Callable[[Calls], str]
    read: Callable[[Iterable[str]], Calls]
    many: bool = True
    piece: int = PIECE


class TooLong(Exception):
    """Said when the time is over, with the share of the text that was read."""


def arguments(number: int, size: int) -> dict[str, Any]:
    """Arguments of about so many characters: short lines, as a file to be written has them."""
    line = f"line {number}: if a > b and c then say 'hello' [{number}] to {{name}}, and go on\n"
    return {
        "path": f"src/module_{number}.py",
        "content": (line * (size // len(line) + 1))[: size - 60].rstrip(),
    }


def _calls(size: int, many: bool) -> Calls:
    if not many:
        return [("edit_file", arguments(0, size))]
    return [("edit_file", arguments(number, 1_000)) for number in range(size // 1_000)]


def _timed(reader: Reader, text: str, limit: float) -> tuple[float, float, Calls]:
    """CPU seconds, the share of the text that was read, and the calls."""
    piece = reader.piece or len(text)
    had = 0
    gc.collect()
    begun = time.process_time()

    def pieces() -> Iterable[str]:
        nonlocal had
        for at in range(0, len(text), piece):
            yield text[at : at + piece]
            had = at + piece
            if not (at // piece) & 63 and time.process_time() - begun > limit:
                raise TooLong

    try:
        calls = reader.read(pieces())
    except TooLong:
        return time.process_time() - begun, had / len(text), []
    return time.process_time() - begun, 1.0, calls


def _seconds(reader: Reader, size: int, limit: float) -> tuple[float, bool]:
    """CPU seconds for a text of that size, and whether they are extrapolated."""
    expected = _calls(size, reader.many)
    text = reader.write(expected)
    spent, share, calls = _timed(reader, text, limit)
    if share < 1:
        return spent / share**2, True
    read = [(name, json.loads(given) if isinstance(given, str) else given) for name, given in calls]
    if read != expected:
        raise AssertionError(f"{reader.row}: the calls are not those that were written")
    if spent < limit / 10:
        spent = min(spent, *(_timed(reader, text, limit)[0] for _ in range(4)))
    return spent, False


def measure(adapter: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    limit = 2.0 if options["quick"] else 8.0
    samples = []
    for path, reader in (adapter.text() if hasattr(adapter, "text") else {}).items():
        spent: dict[str, float] = {}
        guesses: list[str] = []
        _seconds(reader, 1_000, limit)  # imports, caches
        for label, size in SIZES.items():
            seconds, guessed = _seconds(reader, size, limit)
            spent[f"µs a kB of {label}"] = seconds * 1e9 / size
            guesses += [f"µs a kB of {label}"] if guessed else []
        first, *_, last = spent.values()
        figures = {"× growth": last / first, **spent}
        guesses += ["× growth"] if guesses else []
        samples.append({"row": reader.row, "path": path, "figures": figures, "guessed": guesses})
    return samples
