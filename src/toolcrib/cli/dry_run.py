"""A call that is prepared but not run: what a policy is asked about it, and what would become of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.call import ToolCall
from toolcrib.errors import ToolcribError
from toolcrib.prepared import Prepared, Refused
from toolcrib.rules import MissingTool
from toolcrib.toolbox.policy import Covers, Policy, PolicyRequest
from toolcrib.toolbox.runs import Provenance

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox


async def dry_run(
    box: Toolbox,
    call: ToolCall,
    policy: Policy | None = None,
    *,
    tainted: bool = False,
    user_texts: Sequence[str] = (),
    covers: Covers | None = None,
) -> tuple[PolicyRequest, Prepared]:
    """The request that a policy (or else the box's own) gets about a call, and the call as prepared under it.

    `tainted`: the run has already read something from outside. `user_texts`: what its user has written. `covers`:
    what the checkpoint before it covers. Raises MissingTool, or ToolcribError for a call that cannot be made.
    """
    taint = frozenset({"something from outside"} if tainted else ())
    provenance = Provenance(taint, tuple(user_texts))
    request, prepared = await box.dry_run(call, policy=policy, provenance=provenance, covers=covers)
    if request is None:
        assert isinstance(prepared, Refused)
        known = await box.registry.entry(call.name) is not None
        raise (ToolcribError if known else MissingTool)(prepared.result.text)
    return request, prepared


async def policy_request(box: Toolbox, call: ToolCall) -> PolicyRequest:
    """The request that the box's policy gets about a call. Raises as `dry_run` does."""
    return (await dry_run(box, call))[0]
