"""What would become of a call, without running it or asking anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.prepared import Lookups, OneExecution, Prepared, Ready, Refused
from toolcrib.result import ToolResult
from toolcrib.sink import EventSink
from toolcrib.toolbox.approvals import Approvals
from toolcrib.toolbox.decide import Decider, effect_of
from toolcrib.toolbox.decode import decode
from toolcrib.toolbox.path import CallPath
from toolcrib.toolbox.policy import Covers, Policy, PolicyRequest
from toolcrib.toolbox.runs import UNKNOWN, Provenance, Runs

if TYPE_CHECKING:
    from toolcrib.secrets.masking import Masking

__all__ = ["DryRuns"]


class DryRuns:
    """The part of a toolbox that says what would become of a call."""

    sink: EventSink
    masking: Masking | None
    deps: Any
    _approvals: Approvals
    _decider: Decider
    _path: CallPath

    async def dry_run(
        self,
        call: ToolCall,
        *,
        policy: Policy | None = None,
        provenance: Provenance = UNKNOWN,
        covers: Covers | None = None,
    ) -> tuple[PolicyRequest | None, Prepared]:
        """What the policy would be asked about a call, and the call as it would be prepared: Ready, Pending or Refused.

        Nothing is run, nobody is asked, and no middleware is called. `covers` says what a checkpoint that is taken
        before could bring back. The request is None for a call that is refused before the policy is asked, such as one
        of an unknown tool.
        """
        key, runs = CallKey("dry run", 0, 0), Runs(self.sink)
        runs.set_provenance(key.run, provenance)
        runs.set_covers(key.run, covers)
        decider = Decider(policy or self._decider.policy, self._approvals, runs, self.masking)
        tool = await self._path.preparation.resolver.resolve(call, key, None, None, self.deps)
        if isinstance(tool, Refused):
            return None, tool
        decoded = decode(call.name, call.arguments, tool.definition, None)
        if isinstance(decoded, ToolResult):
            return None, Refused(call, key, decoded)
        params, given, edits = decoded
        definition = tool.definition
        effect = definition.facts.effect if definition.effect_for is None else effect_of(tool, params)
        candidate = Ready(call, key, tool, params, given, edits, effect, OneExecution(), Lookups())
        return decider.request_for(candidate), decider.decide(call, key, tool, decoded)
