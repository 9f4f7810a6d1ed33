"""Tools that hold to a policy by themselves: also where they are called directly, without a toolbox."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.prepared import Pending, Ready, Refused, ResolvedTool
from toolcrib.rules.permissions import CallPermissions, call_permissions, permissions_of_both
from toolcrib.sink import EventSink
from toolcrib.tool import Tool
from toolcrib.toolbox.approvals import Approvals
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.policy import Policy
from toolcrib.toolbox.registry import Entry
from toolcrib.toolbox.runs import Runs

__all__ = ["bind"]


def bind(tool: Tool[Any, Any], policy: Policy) -> None:
    """Let each `tool.execute(params, ctx)` hold to a policy, whoever calls it.

    What the policy denies raises ToolError, in the words that a model would get. So does what it would ask about, as
    nobody can be asked here; in a call of a toolbox, that toolbox has asked. While the tool runs, it may reach only
    what the policy permits.
    """
    runs = Runs(EventSink(time.time))
    decider = Decider(policy, Approvals(runs), runs, None)
    entry = Entry(tool.facts.name, tool, 1.0)
    execute: Callable[[Any, Any], Any] = tool.execute

    def permitted(params: Any, ctx: Context[Any]) -> Context[Any]:
        """The context in which the call may run. Raises ToolError."""
        from pydantic_core import to_jsonable_python

        resolved = ResolvedTool(entry, tool, tool.definition())
        given = to_jsonable_python(params)
        call = ToolCall(tool.facts.name, given)
        decided = decider.decide(call, ctx.key, resolved, (params, given, ()))
        in_toolbox = ctx._host is not None
        if isinstance(decided, Refused):
            raise ToolError(decided.result.text)
        if isinstance(decided, Pending) and not in_toolbox:
            words = (
                f"{call.name} needs a person's approval, and nobody can be asked: {decided.question.reason}."
            )
            raise ToolError(words)
        ready = decided.ready if isinstance(decided, Pending) else decided
        return _narrowed(ctx if in_toolbox else copy.copy(ctx), policy, decider, ready)

    async def in_coroutine(params: Any, ctx: Context[Any]) -> Any:
        return await execute(params, permitted(params, ctx))

    def at_once(params: Any, ctx: Context[Any]) -> Any:
        return execute(params, permitted(params, ctx))

    vars(tool)["execute"] = in_coroutine if inspect.iscoroutinefunction(execute) else at_once


def _narrowed(ctx: Context[Any], policy: Policy, decider: Decider, ready: Ready) -> Context[Any]:
    """The context, in which the call may reach only what the policy permits as well."""
    ready.accesses  # noqa: B018 - so that they are known, whether the policy has looked or not
    own = call_permissions(policy, decider.request_for(ready))
    if ctx._permits is not None:
        own = permissions_of_both(CallPermissions(ctx._permits, ctx.denied_paths, ctx._why_denied), own)
    ctx._permits, ctx.denied_paths, ctx._why_denied = own
    return ctx
