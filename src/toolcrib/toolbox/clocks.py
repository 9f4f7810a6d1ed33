"""Clocks that users hand in: one that fails delays and ends no call."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["with_fallback"]

Clock = Callable[[], float]


def with_fallback(clock: Clock, system: Clock) -> Clock:
    """A clock that reads the given one until that raises or gives no number, and from then on the system's."""
    if clock is system:
        return clock
    read = clock

    def read_safely() -> float:
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

    return read_safely
