"""What a policy would be asked about a call, without running the call or asking anybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.call import CallKey, ToolCall
from toolcrib.errors import ToolcribError
from toolcrib.prepared import Ready, Refused, ResolvedTool
from toolcrib.rules import MissingTool
from toolcrib.toolbox.policy import PolicyRequest
from toolcrib.toolbox.prepare import Arguments, call_effect, decode
from toolcrib.toolbox.resolve import resolve

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox

KEY = CallKey("policy", 0, 0)


async def read_call(box: Toolbox, call: ToolCall) -> tuple[ResolvedTool, Arguments]:
    """The tool of a call and its arguments. Raises MissingTool, or ToolcribError for a call that cannot be made."""
    tool = await resolve(box, call, KEY, None, None, None)
    if isinstance(tool, Refused):
        known = await box.registry.entry(call.name) is not None
        raise (ToolcribError if known else MissingTool)(tool.result.text)
    arguments = decode(call.name, call.arguments, tool.definition, None)
    if not isinstance(arguments, tuple):
        raise ToolcribError(arguments.text)
    return tool, arguments


async def policy_request(
    box: Toolbox, call: ToolCall, *, tainted: bool = False, user_texts: Sequence[str] = ()
) -> PolicyRequest:
    """What a policy would decide on. Raises as `read_call` does.

    `tainted`: the run has taken in something from outside before. `user_texts`: what its user has written.
    """
    tool, (params, json, edits) = await read_call(box, call)
    definition = tool.definition
    effect = definition.facts.effect if definition.effect_for is None else call_effect(tool, params)
    ready = Ready(call, KEY, json, effect, edits, "", tool, params)
    taint = frozenset({"something from outside"} if tainted else ())
    return PolicyRequest(definition.facts, effect, ready, taint=taint, user_texts=tuple(user_texts))
