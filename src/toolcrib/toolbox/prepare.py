"""The first phase of a call's path, without effects: resolve, decode, validate, decide, precheck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import ToolError, traceback_text
from toolcrib.middleware import PrepareStep
from toolcrib.prepared import Prepared, Ready, Refused, ResolvedTool
from toolcrib.result import ToolResult
from toolcrib.sink import EventSink
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.call_events import call_comes
from toolcrib.toolbox.closing import close_tool
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.decode import decode
from toolcrib.toolbox.resolve import PartialCall, Resolver

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.facts import MaxOutput
    from toolcrib.secrets.masking import Masking
    from toolcrib.toolbox.tool_list import ToolList

__all__ = ["Preparation", "Unprepared"]

Unprepared = tuple[ToolCall, CallKey, "ToolList | None"]


@dataclass(slots=True)
class Preparation:
    """Turns a ToolCall into a prepared call: Ready, Pending or Refused. It never raises, except when cancelled."""

    resolver: Resolver
    decider: Decider
    sink: EventSink
    masking: Masking | None
    steps: tuple[PrepareStep, ...]
    max_output: MaxOutput
    overflow: Path | None

    def without_awaiting(self, unprepared: Unprepared, *, at_once: bool = False) -> Prepared | None:
        """The prepared call; None if something must be awaited. With `at_once`, a Ready one is told of by its run."""
        call, key, tool_list = unprepared
        name = call.name
        tool = self.resolver.registry.at_hand.get(name)
        if tool is None or self.steps or (tool_list and tool_list.entries.get(name) is not tool.entry):
            return None
        prepared = self._decided(call, key, tool, tool_list)
        if self.sink.listeners and not (at_once and type(prepared) is Ready):
            self.sink.emit_new(key.run, call_comes, (key, name, tool.definition.facts.title, None))
        return prepared

    async def prepare(
        self,
        call: ToolCall,
        key: CallKey,
        tool_list: ToolList | None = None,
        stream: PartialCall | None = None,
        deps: Any = None,
    ) -> Prepared:
        """Prepare a call, through the middleware around it."""
        if self.sink.listeners and stream is None:
            self.sink.emit_new(key.run, call_comes, (key, call.name, "", None))
        if not self.steps:
            return await self._by_name(call, key, tool_list, stream, deps)
        from toolcrib.toolbox.through_steps import prepare_through

        prepared = await prepare_through(
            self.steps, call, key, lambda changed: self._by_name(changed, key, tool_list, stream, deps)
        )
        return self._shown_to_model(prepared)

    async def _by_name(
        self, call: ToolCall, key: CallKey, tool_list: ToolList | None, stream: PartialCall | None, deps: Any
    ) -> Prepared:
        """Resolve the tool; then the rest, through the middleware of the toolsets that the tool comes from."""
        name = call.name
        tool = await self.resolver.resolve(call, key, tool_list, stream, deps)
        if isinstance(tool, Refused):
            if call.problem and not call.name:  # the answer broke off before the name
                return replace(tool, result=model_messages.unreadable_call("", call.problem))
            return tool
        if tool.entry.steps is None:
            prepared = self._decided(call, key, tool, tool_list)
            if tool.entry.owned and type(prepared) is Refused:
                await close_tool(tool.entry, tool.instance)
            return prepared

        async def decided(changed: ToolCall) -> Prepared:
            if changed.name != name:  # a tool of another toolset has other steps
                return await self._by_name(changed, key, tool_list, None, deps)
            return self._decided(changed, key, tool, tool_list)

        from toolcrib.toolbox.through_steps import prepare_through

        prepared = await prepare_through(tool.entry.steps.around_prepare, call, key, decided, tool)
        return prepared if self.steps else self._shown_to_model(prepared)

    def _shown_to_model(self, prepared: Prepared) -> Prepared:
        """A step's answer without secrets, cut to the length that a tool's result may have."""
        if not isinstance(prepared, Refused):
            return prepared
        from toolcrib.toolbox.cap import cap

        masked = prepared.result if self.masking is None else self.masking.mask_result(prepared.result)
        result = cap(masked, self.max_output, prepared.call.name, self.overflow, prepared.key)
        return replace(prepared, result=result)

    def _decided(
        self, call: ToolCall, key: CallKey, tool: ResolvedTool, tool_list: ToolList | None
    ) -> Prepared:
        """Decode, validate, decide, precheck."""
        try:
            if call.problem:
                return Refused(call, key, model_messages.unreadable_call(call.name, call.problem))
            turn_schema = tool_list.turn_schemas.get(call.name) if tool_list is not None else None
            decoded = decode(call.name, call.arguments, tool.definition, turn_schema)
            if isinstance(decoded, ToolResult):
                return Refused(call, key, decoded)
            if self.masking is not None or tool.definition.facts.secrets:
                from toolcrib.secrets.masking import problem_of

                if problem := problem_of(self.masking, decoded[1], tool.definition):
                    return Refused(call, key, model_messages.wrong_secret(call.name, problem))
            return self.decider.decide(call, key, tool, decoded)
        except ToolError as refusal:  # of a precheck, in words for the model
            return Refused(call, key, model_messages.precheck(call.name, refusal.message))
        except BaseException as problem:  # a precheck or a policy of the user's that raised
            if isinstance(problem, KeyboardInterrupt):
                raise
            return Refused(call, key, model_messages.failed(call.name), traceback_text(problem))
