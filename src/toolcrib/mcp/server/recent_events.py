"""The last messages of streams, so that a client whose connection broke gets those that it missed (2025-11-25)."""

from __future__ import annotations

import secrets
from collections import OrderedDict

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage

__all__ = ["RecentEvents"]

MAX_EVENTS = 5_000  # of all streams
MAX_BYTES = 32_000_000


class RecentEvents(EventStore):
    """Keeps messages in memory, the oldest go first. Their ids cannot be guessed: they give access to a stream."""

    def __init__(self, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_events, self._max_bytes = max_events, max_bytes
        self._events: OrderedDict[EventId, tuple[StreamId, JSONRPCMessage | None, int]] = OrderedDict()
        self._bytes = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        size = 0 if message is None else len(message.model_dump_json())
        name = secrets.token_urlsafe(18)
        self._events[name] = (stream_id, message, size)
        self._bytes += size
        while len(self._events) > self._max_events or (
            self._bytes > self._max_bytes and len(self._events) > 1
        ):
            _, (_, _, gone) = self._events.popitem(last=False)
            self._bytes -= gone
        return name

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        known = self._events.get(last_event_id)
        if known is None:
            return None
        stream, seen = known[0], False
        for name, (of, message, _) in list(self._events.items()):
            if seen and of == stream and message is not None:
                await send_callback(EventMessage(message, name))
            seen = seen or name == last_event_id
        return stream
