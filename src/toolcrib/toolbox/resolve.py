"""The first step of a call's path: from a name to the object and the compiled definition that will run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.call import CallKey, ToolCall
from toolcrib.context import Context, Host
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolDefinitionError, belongs_to_caller, traceback_text
from toolcrib.prepared import Refused, ResolvedTool
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.operator_log import OperatorLog
from toolcrib.toolbox.registry import Entry, Registry, made

if TYPE_CHECKING:
    from toolcrib.toolbox.tool_list import ToolList

__all__ = ["PartialCall", "Resolver"]


class PartialCall(Protocol):
    """A call whose arguments streamed in before, and the object that saw them; see `call_stream.py`."""

    def take(self, entry: Entry) -> ResolvedTool | None: ...


@dataclass(slots=True)
class Resolver:
    """Finds the tool of a call, and makes it where each call has its own."""

    registry: Registry
    host: Host
    operator: OperatorLog

    async def resolve(
        self, call: ToolCall, key: CallKey, tool_list: ToolList | None, stream: PartialCall | None, deps: Any
    ) -> ResolvedTool | Refused:
        """The tool of a call, which must be the tool that its list showed; or the refusal."""
        name, entry = call.name, None
        try:
            entry = await self.registry.entry(name)
            if (refused := await self._not_there(call, key, entry, tool_list)) is not None:
                return refused
            assert entry is not None
            return await self._resolved(name, key, entry, stream, deps)
        except ToolDefinitionError as problem:
            self.operator.set_aside(key.run, name, str(problem), entry and entry.supplied)
            return Refused(call, key, model_messages.tool_broken(name), str(problem))
        except BaseException as problem:  # a factory that raised, or that awaited what was cancelled
            if belongs_to_caller(problem):
                raise
            return Refused(call, key, model_messages.failed(name), traceback_text(problem))

    async def _not_there(
        self, call: ToolCall, key: CallKey, entry: Entry | None, tool_list: ToolList | None
    ) -> Refused | None:
        """The refusal of a name that is unknown, was not shown, or means another tool by now."""
        name = call.name
        if tool_list is None:
            if entry is None:
                known = await self.registry.all_names()
                return Refused(call, key, model_messages.unknown_tool(name, known))
            return None
        if name not in tool_list.entries:
            if name in tool_list.broken:
                return Refused(call, key, model_messages.tool_broken(name))
            hidden = entry is not None
            definition, why_hidden = entry and entry.compiled, tool_list.why_hidden
            if definition and why_hidden and (why := why_hidden(definition.facts)):
                return Refused(call, key, model_messages.denied(name, why))
            return Refused(call, key, model_messages.unknown_tool(name, tool_list.entries, hidden=hidden))
        same = entry is tool_list.entries[name]
        return None if same else Refused(call, key, model_messages.tool_changed(name))

    async def _resolved(
        self, name: str, key: CallKey, entry: Entry, stream: PartialCall | None, deps: Any
    ) -> ResolvedTool:
        """The object that saw the partial arguments, an object that is made now, or the instance that was given."""
        if stream is not None and (taken := stream.take(entry)) is not None:
            return taken
        if entry.make is None:
            at_hand = self.registry.at_hand  # before it is looked up: the entry may be removed meanwhile
            if entry.resolved is None:
                entry.resolved = ResolvedTool(entry, entry.supplied, entry.definition())
            if entry.steps is None and self.registry.known(name) is entry:
                at_hand[name] = entry.resolved
            return entry.resolved
        ctx: Context[Any] = Context(deps, key=key, tool=name, host=self.host)
        instance, definition = await made(entry, ctx)
        return ResolvedTool(entry, instance, definition)
