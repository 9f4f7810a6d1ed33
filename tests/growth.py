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
    keeps the answer below `at_most`, one run of it is enough.
    """
    works = (make(small), make(large))
    start = cpu_seconds()
    works[1]()
    spent = cpu_seconds() - start
    if spent < at_most * floor:
        return spent / floor
    works[0]()
    ratio = float("inf")
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        gc.collect()
        for index in (0, 1, 0):  # the cheap one twice: if it seems dear, a steep growth seems flat
            start = cpu_seconds()
            works[index]()
            best[index] = min(best[index], cpu_seconds() - start)
        ratio = best[1] / max(best[0], floor)
        if ratio < at_most:
            break
    return ratio
