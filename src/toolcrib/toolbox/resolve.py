"""The first step of a call's path: from a name to the object and the compiled definition that will run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.context import Context
from toolcrib.errors import ToolDefinitionError, traceback_text
from toolcrib.prepared import Refused, ResolvedTool
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.registry import Entry, made
from toolcrib.toolbox.tool_list import ToolList

if TYPE_CHECKING:
    from toolcrib.toolbox.box import Toolbox
    from toolcrib.toolbox.call_stream import CallStream


async def resolve(
    box: Toolbox,
    call: ToolCall,
    key: CallKey,
    tool_list: ToolList | None,
    stream: CallStream | None,
    deps: Any,
) -> ResolvedTool | Refused:
    """What a call is bound to, judged by the list that offered it; or the refusal."""
    name = call.name
    try:
        entry = await box.registry.entry(name)
        refused = await _not_there(box, call, key, entry, tool_list)
        if refused is not None:
            return refused
        assert entry is not None
        return await _bound(box, name, key, entry, stream, deps)
    except ToolDefinitionError as problem:
        box.set_aside(key.run, name, str(problem))
        return Refused(call, key, model_messages.tool_broken(name), str(problem))
    except BaseException as problem:  # a factory that raised, or that awaited what was cancelled
        if not isinstance(problem, Exception) and not _cancelled_from_within(problem):
            raise
        return Refused(call, key, model_messages.failed(name), traceback_text(problem))


async def _not_there(
    box: Toolbox, call: ToolCall, key: CallKey, entry: Entry | None, tool_list: ToolList | None
) -> Refused | None:
    """The refusal of a name that is unknown, was not offered, or means another tool by now."""
    name = call.name
    if tool_list is None:
        if entry is None:
            return Refused(call, key, model_messages.unknown_tool(name, await box.registry.all_names()))
        return None
    if name not in tool_list.entries:
        if name in tool_list.broken:
            return Refused(call, key, model_messages.tool_broken(name))
        return Refused(
            call, key, model_messages.unknown_tool(name, tool_list.entries, hidden=entry is not None)
        )
    return None if entry is tool_list.entries[name] else Refused(call, key, model_messages.tool_changed(name))


async def _bound(
    box: Toolbox, name: str, key: CallKey, entry: Entry, stream: CallStream | None, deps: Any
) -> ResolvedTool:
    """The object that saw the partial arguments, one that is made now, or the instance that was given."""
    if stream is not None and stream.tool is not None and stream.entry is entry:
        tool, stream.tool = stream.tool, None  # it is this call's to close from now on
        return ResolvedTool(entry, tool, stream.definition)
    if entry.make is None:
        if entry.bound is None:
            entry.bound = ResolvedTool(entry, entry.supplied, entry.definition())
        return entry.bound
    ctx: Context[Any] = Context(deps if deps is not None else box.deps, key=key, tool=name, host=box.host)
    tool, definition = await made(entry, ctx)
    return ResolvedTool(entry, tool, definition)


def _cancelled_from_within(problem: BaseException) -> bool:
    """Whether a cancellation is no one's wish: the caller's task itself was not cancelled."""
    import asyncio

    task = asyncio.current_task()
    return isinstance(problem, asyncio.CancelledError) and task is not None and not task.cancelling()
