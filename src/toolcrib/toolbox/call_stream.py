"""Arguments as they stream in: partial values, events, and `on_partial` on the object that will execute."""

from __future__ import annotations

from typing import Any

from toolcrib.call import CallKey, CallState
from toolcrib.context import Host, PartialContext
from toolcrib.errors import belongs_to_caller
from toolcrib.events import ArgumentsDelta, StatusChanged
from toolcrib.jsonstream import JsonStream, JsonStreamError
from toolcrib.prepared import ResolvedTool
from toolcrib.sink import EventSink
from toolcrib.toolbox.closing import close_tool
from toolcrib.toolbox.registry import Entry, Registry, made

__all__ = ["CallStream", "open_call_stream"]

BROKE_OFF = "not run: the answer broke off"


class CallStream:
    """One call while its arguments are being written; nothing is ever executed from it.

    `feed` takes the next piece of the text. Hand the stream to `Toolbox.prepare(call, stream=...)` when the
    text is complete, so that the same object executes; `discard` it otherwise.
    """

    def __init__(
        self, name: str, key: CallKey, sink: EventSink, host: Host, resolved: ResolvedTool | None
    ) -> None:
        self.name = name
        self.key = key
        self._sink = sink
        self._resolved = resolved
        self._hook = resolved.definition.on_partial if resolved is not None else None
        self._ctx: PartialContext[Any] | None = (
            PartialContext(key=key, tool=name, host=host) if self._hook else None
        )
        self._json: JsonStream | None = JsonStream(events=bool(sink))
        self._discarded = False
        if sink:
            title = resolved.definition.facts.title if resolved is not None else ""
            sink.emit(key.run, StatusChanged(key, name, CallState.WAIT, title=title))

    @property
    def partial(self) -> Any:
        """The arguments so far, unvalidated; valid until the next `feed`, not to be changed."""
        return self._json.value if self._json is not None and self._json.has_value else {}

    def feed(self, text: str) -> None:
        """Take the next piece in. Text that is no JSON ends the partial view; `prepare` will judge it."""
        if self._json is None or not text:
            return
        try:
            events = self._json.feed(text)
        except JsonStreamError:
            self._json = None
            return
        if self._sink:
            for event in events:
                if event.kind == "delta" or (
                    event.kind == "value" and not isinstance(event.value, str | dict | list)
                ):
                    finished = event.kind == "value"
                    delta = ArgumentsDelta(self.key, self.name, event.path, event.value, finished)
                    self._sink.emit(self.key.run, delta)
        if self._hook is not None and self._resolved is not None:
            try:
                self._hook(self._resolved.instance, self.partial, self._ctx)
            except BaseException as problem:
                if belongs_to_caller(problem):
                    raise
                self._hook = None
                self._resolved.entry.log_failure("on_partial")

    def take(self, entry: Entry) -> ResolvedTool | None:
        """The object that saw the partial arguments, for the call that executes; whoever takes it closes it."""
        if self._resolved is None or self._resolved.entry is not entry:
            return None
        taken, self._resolved = self._resolved, None
        return taken

    async def discard(self, *, told: bool = False) -> None:
        """The call will not come: close the object that was made for it, and end its status.

        `told` says that listeners are told of the call's end elsewhere.
        """
        self._json = self._hook = None
        if self._sink and not told and not self._discarded:
            self._sink.emit(self.key.run, StatusChanged(self.key, self.name, CallState.ERROR, BROKE_OFF))
        self._discarded = True
        resolved, self._resolved = self._resolved, None
        if resolved is not None and resolved.entry.owned:
            await close_tool(resolved.entry, resolved.instance)


async def open_call_stream(
    registry: Registry, sink: EventSink, host: Host, name: str, key: CallKey
) -> CallStream:
    """A stream for a call; its tool is made now if it wants to see partial arguments.

    A name that is unknown, or a tool that cannot be made, is answered when the call is prepared.
    """
    resolved: ResolvedTool | None = None
    try:
        entry = await registry.entry(name)
        if entry is not None:
            known = entry.definition()
            if known is None or known.on_partial is not None:
                instance, definition = await made(entry, PartialContext(key=key, tool=name, host=host))
                resolved = ResolvedTool(entry, instance, definition)
    except BaseException as problem:
        if belongs_to_caller(problem):
            raise
    return CallStream(name, key, sink, host, resolved)
