"""An HTTP server that outlasts slow and greedy clients: uvicorn's, with times for requests and for reading answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["run"]

MAX_HEAD = 32_768  # bytes of a request's line and headers
KEEP_ALIVE = 15  # seconds for which an idle connection is kept
STOPPING = 5  # seconds that requests have to end when the server stops


class _TimedProtocol(H11Protocol):
    """Closes connections that are too many, whose request does not come, or whose client does not read."""

    max_connections: int
    request_time: float
    read_time: float
    _awaited: asyncio.TimerHandle | None = None  # ends the connection if the request has not come by then
    _unread: asyncio.TimerHandle | None = None  # ends it if what was sent has not been read by then

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self.connections.discard(self)
            transport.abort()
            return
        own = transport.get_extra_info("socket")
        if own is not None and own.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio leaves this to the system for a socket that was made without naming TCP: 40 ms a call
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._awaited = self.loop.call_later(self.request_time, transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._awaited is None and self.conn.their_state is not h11.DONE:
            self._awaited = self.loop.call_later(self.request_time, self.transport.abort)
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._request_came()

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is h11.SEND_BODY and self._awaited is None:
            self._awaited = self.loop.call_later(self.request_time, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._request_came()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.read_time, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _request_came(self) -> None:
        if self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None


class _Server(uvicorn.Server):
    """Leaves signals to the program that it runs in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def run(
    app: Any,
    sock: socket.socket,
    max_connections: int,
    request_time: float,
    read_time: float,
    stop: asyncio.Event | None,
    *,
    has_lifespan: bool = True,
) -> None:
    """Serve an application until `stop` is set, or the task is cancelled."""
    limits = {"max_connections": max_connections, "request_time": request_time, "read_time": read_time}
    protocol = type("TimedProtocol", (_TimedProtocol,), limits)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="on" if has_lifespan else "off",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEAD,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=STOPPING,
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[sock]))
    stopping = asyncio.ensure_future(stop.wait() if stop is not None else asyncio.Event().wait())
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        server.should_exit = True
        await asyncio.shield(serving)
