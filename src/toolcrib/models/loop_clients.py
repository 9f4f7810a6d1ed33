"""The clients of a model, one for each event loop: an SDK's connection pool belongs to the loop that opened it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

__all__ = ["LoopClients"]

CLOSING = 5.0  # seconds in which another loop has to close its client


class Opened(NamedTuple):
    """The client of one event loop, and the generator that closes it when the loop ends."""

    client: Any
    keeper: Any


class LoopClients:
    """One client for each event loop. `close` closes a client: when its loop ends, or when `aclose` is awaited.

    Several loops in several threads may use it at once.
    """

    def __init__(self, close: Callable[[Any], Awaitable[None]]) -> None:
        self._close = close
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, Opened] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of_this_loop(self) -> Any:
        """The client that the running loop has opened and not closed; None where there is none."""
        opened = self._opened.get(asyncio.get_running_loop())
        return opened.client if opened is not None and opened.keeper.ag_frame is not None else None

    async def open(self, make: Callable[[], Any]) -> Any:
        """The client of the running loop. `make` makes it on a thread: importing an SDK takes a second."""
        client = await asyncio.to_thread(make)
        if (faster := self.of_this_loop()) is not None:  # another request has made one meanwhile
            await self._close(client)
            return faster
        keeper = _closed_at_the_end(partial(self._close, client))
        await anext(keeper)
        with self._lock:
            # A client holds on to its loop, so those of loops that ended would stay for ever.
            for ended in [other for other in self._opened if other.is_closed()]:
                del self._opened[ended]
            self._opened[asyncio.get_running_loop()] = Opened(client, keeper)
        return client

    def all(self) -> list[Any]:
        """The clients of all loops."""
        with self._lock:
            return [opened.client for opened in self._opened.values()]

    async def aclose(self) -> None:
        """Close all clients, also those of other loops that still run. New ones can be opened."""
        here = asyncio.get_running_loop()
        with self._lock:
            opened = dict(self._opened)
            self._opened.clear()
        elsewhere = [
            asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_ended(one.keeper), loop))
            for loop, one in opened.items()
            if loop is not here and loop.is_running()
        ]
        if here in opened:
            await opened[here].keeper.aclose()
        if elsewhere:
            await asyncio.wait(elsewhere, timeout=CLOSING)


async def _closed_at_the_end(close: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Calls `close` when its event loop ends: a loop closes the generators that are still open before it ends."""
    try:
        yield
    finally:
        await close()


async def _ended(keeper: Any) -> None:
    await keeper.aclose()
