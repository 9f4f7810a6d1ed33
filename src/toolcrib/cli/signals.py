"""What happens at Ctrl-C and at other signals that ask the program to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import FrameType

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def at_signals(numbers: Iterable[int], handler: Callable[[int], None]) -> Generator[None]:
    """Call `handler` in the running event loop when one of these signals comes, as long as the block lasts.

    A signal that this process was started to ignore, as with `nohup`, stays ignored.
    """
    loop = asyncio.get_running_loop()
    before: dict[int, object] = {}
    added: list[int] = []

    def later(number: int, _: FrameType | None) -> None:
        loop.call_soon_threadsafe(handler, number)

    try:
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_IGN:
                continue
            try:
                loop.add_signal_handler(number, handler, number)
                added.append(number)
            except NotImplementedError:  # Windows
                before[number] = signal.signal(number, later)
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)
        for number, previous in before.items():
            signal.signal(number, previous)  # type: ignore[arg-type] # what `signal.signal` gave
