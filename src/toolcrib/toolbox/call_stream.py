"""Arguments as they stream in: partial values, events, and `on_partial` on the object that will execute."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, CallState
from toolcrib.context import PartialContext
from toolcrib.events import ArgumentsDelta, StatusChanged
from toolcrib.jsonstream import JsonStream, JsonStreamError
from toolcrib.toolbox.registry import Entry, close_tool, made

if TYPE_CHECKING:
    from toolcrib.toolbox.box import Toolbox


class CallStream:
    """One call while its arguments are being written; nothing is ever executed from it.

    `feed` takes the next piece of the text. Hand the stream to `Toolbox.prepare(call, stream=...)` when the
    text is complete, so that the same object executes; `discard` it otherwise.
    """

    def __init__(
        self, box: Toolbox, name: str, key: CallKey, entry: Entry | None, tool: Any, hook: Any
    ) -> None:
        self.name = name
        self.key = key
        self.entry = entry
        self.tool = tool
        self.definition: Any = None
        self._box = box
        self._hook = hook
        self._ctx: PartialContext[Any] | None = (
            PartialContext(key=key, tool=name, host=box.host) if hook else None
        )
        self._json: JsonStream | None = JsonStream(events=bool(box.sink))
        if box.sink:
            box.emit(key.run, StatusChanged(key, name, CallState.WAIT))

    @classmethod
    async def open(cls, box: Toolbox, name: str, key: CallKey) -> CallStream:
        """Meet the tool, if it wants to see partial arguments; an unknown name is answered at the end."""
        entry = await box.registry.entry(name)
        tool, definition, hook = None, None, None
        if entry is not None:
            try:
                known = entry.definition()
                if known is None or "on_partial" in known.hooks:
                    tool, definition = await made(entry, PartialContext(key=key, tool=name, host=box.host))
                    hook = definition.hooks.get("on_partial")
            except Exception:  # prepare will say so, as the call's result
                tool = hook = None
        stream = cls(box, name, key, entry, tool, hook)
        stream.definition = definition
        return stream

    @property
    def partial(self) -> Any:
        """What is known of the arguments so far, unvalidated; valid until the next `feed`, not to be changed."""
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
        if self._box.sink:
            for event in events:
                if event.kind == "delta" or (
                    event.kind == "value" and not isinstance(event.value, str | dict | list)
                ):
                    finished = event.kind == "value"
                    delta = ArgumentsDelta(self.key, self.name, event.path, event.value, finished)
                    self._box.emit(self.key.run, delta)
        if self._hook is not None:
            try:
                self._hook(self.tool, self.partial, self._ctx)
            except Exception:
                self._hook = None
                logging.getLogger("toolcrib").exception("on_partial of tool %s failed", self.name)

    async def discard(self) -> None:
        """The call will not come: close the object that was made for it."""
        self._json = self._hook = None
        if self.entry is not None and self.entry.owned and self.tool is not None:
            tool, self.tool = self.tool, None
            await close_tool(tool)
