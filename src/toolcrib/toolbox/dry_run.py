"""What would become of a call, without running it or asking anybody."""

from __future__ import annotations

from typing import Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.prepared import Lookups, OneExecution, Prepared, Ready, Refused
from toolcrib.result import ToolResult
from toolcrib.toolbox.decide import Decider, effect_of
from toolcrib.toolbox.decode import decode
from toolcrib.toolbox.policy import PolicyRequest
from toolcrib.toolbox.resolve import Resolver

__all__ = ["dry_run"]


async def dry_run(
    call: ToolCall, key: CallKey, resolver: Resolver, decider: Decider, deps: Any
) -> tuple[PolicyRequest | None, Prepared]:
    """What a decider would be asked about a call, and what would become of the call. It passes no middleware."""
    tool = await resolver.resolve(call, key, None, None, deps)
    if isinstance(tool, Refused):
        return None, tool
    decoded = decode(call.name, call.arguments, tool.definition, None)
    if isinstance(decoded, ToolResult):
        return None, Refused(call, key, decoded)
    params, given, edits = decoded
    effect = tool.definition.facts.effect if tool.definition.effect_for is None else effect_of(tool, params)
    candidate = Ready(call, key, tool, params, given, edits, effect, OneExecution(), Lookups())
    return decider.request_for(candidate), decider.decide(call, key, tool, decoded)
