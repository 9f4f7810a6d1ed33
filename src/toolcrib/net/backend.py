"""Network back ends for `httpcore2` (or `httpcore`), which connect to checked addresses within a request's deadline."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from toolcrib.net.guard import NetGuard
from toolcrib.net.redirects import UNTIL
from toolcrib.net.urls import NetworkRefused

__all__ = ["AsyncBackend", "SyncBackend"]


class AsyncBackend:
    """Connects to checked addresses only. It can be used alone, as the `network_backend` of an `httpcore2` pool."""

    def __init__(self, guard: NetGuard, inner: Any, core: ModuleType) -> None:
        self._guard = guard
        self._inner = inner
        self._core = core

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Any:
        import anyio

        try:
            with anyio.fail_after(_left(timeout)):
                addresses = await self._guard.resolve(host, port)
        except TimeoutError:
            raise self._core.ConnectTimeout(f"{host} could not be resolved in time") from None
        for number, address in enumerate(addresses, 1):
            try:
                stream = await self._inner.connect_tcp(
                    address, port, _left(timeout), local_address, socket_options
                )
            except (self._core.ConnectError, self._core.ConnectTimeout):
                if number == len(addresses):
                    raise
            else:
                return AsyncStream(stream, self._core)
        raise NetworkRefused(f"{host} has no address")

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> Any:
        raise NetworkRefused("unix sockets are not allowed")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class AsyncStream:
    """A connection whose reads and writes end with the deadline of the current request."""

    def __init__(self, inner: Any, core: ModuleType) -> None:
        self._inner = inner
        self._core = core

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = await self._inner.read(max_bytes, _left(timeout, self._core.ReadTimeout))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, _left(timeout, self._core.WriteTimeout))

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> Any:
        inner = await self._inner.start_tls(ssl_context, server_hostname, _left(timeout))
        return AsyncStream(inner, self._core)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class SyncBackend:
    """The same for `httpcore2.ConnectionPool`."""

    def __init__(self, guard: NetGuard, inner: Any, core: ModuleType) -> None:
        self._guard = guard
        self._inner = inner
        self._core = core

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Any:
        addresses = self._guard.resolve_sync(host, port)
        for number, address in enumerate(addresses, 1):
            try:
                stream = self._inner.connect_tcp(address, port, _left(timeout), local_address, socket_options)
            except (self._core.ConnectError, self._core.ConnectTimeout):
                if number == len(addresses):
                    raise
            else:
                return SyncStream(stream, self._core)
        raise NetworkRefused(f"{host} has no address")

    def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> Any:
        raise NetworkRefused("unix sockets are not allowed")

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class SyncStream:
    """The same for a connection without an event loop."""

    def __init__(self, inner: Any, core: ModuleType) -> None:
        self._inner = inner
        self._core = core

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._inner.read(max_bytes, _left(timeout, self._core.ReadTimeout))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout, self._core.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> Any:
        return SyncStream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)), self._core)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _left(timeout: float | None, too_late: type[Exception] | None = None) -> float | None:
    """A timeout, shortened to what is left of the current request's time. Raises `too_late` where nothing is left.

    A server that always has something to say would otherwise never meet even the shortest timeout.
    """
    until = UNTIL.get()
    if until is None:
        return timeout
    left = until - time.monotonic()
    if left <= 0 and too_late is not None:
        raise too_late("the time for the request is up")
    left = max(0.001, left)
    return left if timeout is None else min(timeout, left)
