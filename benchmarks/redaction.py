"""How fast secrets are masked, with 1, 10 and 50 of them, by both ways of looking: `python benchmarks/redaction.py`.

Processor time, so that a busy machine says the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from toolcrib.secrets import Redactor
from toolcrib.secrets.byte_search import aho_corasick_installed

SIZE = 1 << 20
PIECE = 4096


def texts() -> dict[str, str]:
    """A megabyte each of what tools print."""
    chance = random.Random(1)
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
    return {
        "prose": ("The quick brown fox jumps over the lazy dog, 42 times. " * (SIZE // 50))[:SIZE],
        "code": (code * (SIZE // len(code) + 1))[:SIZE],
        "hex": chance.randbytes(SIZE // 2).hex(),
    }


def megabytes_per_second(run: Callable[[], object], size: int = SIZE, times: int = 3) -> float:
    best = min(_timed(run) for _ in range(times))
    return size / best / 1e6


def _timed(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def streamed(redactor: Redactor, text: str) -> None:
    stream = redactor.stream()
    for at in range(0, len(text), PIECE):
        stream.feed(text[at : at + PIECE])
    stream.finish()


def main() -> None:
    chance = random.Random(2)
    given = texts()
    print(f"{'MB/s':<28}" + "".join(f"{name:>10}" for name in [*given, "streamed"]) + f"{'made in':>12}")
    for label, automaton in (("plain Python", False), ("pyahocorasick", True)):
        if automaton and not aho_corasick_installed():
            print(f"{label}: not installed")
            continue
        for count in (1, 10, 50):
            values = {
                f"S{n}": chance.randbytes(24).hex()[:32] + chance.choice("+/=") + "Z" for n in range(count)
            }
            start = time.process_time()
            redactor = Redactor(values, patterns=(), automaton=automaton)
            made = (time.process_time() - start) * 1e3
            speeds = [
                megabytes_per_second(lambda r=redactor, t=text: r.redact_text(t)) for text in given.values()
            ]
            speeds.append(megabytes_per_second(lambda r=redactor: streamed(r, given["code"])))
            row = "".join(f"{speed:>10.0f}" for speed in speeds)
            print(f"{label + f', {count} secrets':<28}{row}{made:>9.1f} ms")
    net = Redactor({})
    row = "".join(
        f"{megabytes_per_second(lambda t=text: net.redact_text(t)):>10.0f}" for text in given.values()
    )
    print(f"{'key formats alone':<28}{row}")


if __name__ == "__main__":
    main()
