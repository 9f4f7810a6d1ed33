"""Clocks that users hand in: one that fails delays and ends no call."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["with_fallback"]

Clock = Callable[[], float]


def with_fallback(clock: Clock, system: Clock) -> Clock:
    """A clock as it is handed in; from the first time that it raises, or gives no number, the system's is read."""
    if clock is system:
        return clock
    read = clock

    def told() -> float:
        nonlocal read
        try:
            return read() + 0.0
        except KeyboardInterrupt:
            raise
        except BaseException:
            import logging

            logging.getLogger("toolcrib").exception("a clock raised; the system's is read in its place")
            read = system
            return system()

    return told
