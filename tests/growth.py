"""How a cost grows with its input, in CPU time of ours and of child processes: another's load does not count."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable

ROUNDS = 12
FLOOR = 0.0005  # seconds; keeps noise out of small numbers


def cpu_seconds() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in spent)


def growth(
    make: Callable[[int], Callable[[], object]], small: int, large: int, at_most: float, floor: float = FLOOR
) -> float:
    """How many times as much the work made for `large` costs as that for `small`, by the best of some rounds.

    A busy machine may spoil a measurement, not all of them: it is measured until the answer is below
    `at_most`, and after `ROUNDS` rounds the answer is what it is. If the large work is so cheap that `floor` alone
    keeps the answer below `at_most`, one run of it is enough. The first run of the large work fills caches and counts:
    it can only make the growth seem steeper than it is. The small one is measured several times, and never cold: if it
    seems dear, a steep growth seems flat.
    """
    works = (make(small), make(large))
    best = [float("inf"), spent(works[1])]
    if best[1] < at_most * floor:
        return best[1] / floor
    works[0]()
    ratio = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        best[0] = min(best[0], spent(works[0]), spent(works[0]))
        ratio = best[1] / max(best[0], floor)
        if ratio < at_most:
            break
        best[1] = min(best[1], spent(works[1]))
    return ratio


def spent(work: Callable[[], object]) -> float:
    """The CPU seconds of one run."""
    start = cpu_seconds()
    work()
    return cpu_seconds() - start
