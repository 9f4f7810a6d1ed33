"""What a policy would be asked about a call, without running the call or asking anybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.call import ToolCall
from toolcrib.errors import ToolcribError
from toolcrib.prepared import Prepared, Refused
from toolcrib.rules import MissingTool
from toolcrib.toolbox.policy import Policy, PolicyRequest
from toolcrib.toolbox.runs import Provenance

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox


async def imagined(
    box: Toolbox, call: ToolCall, policy: Policy | None, tainted: bool, user_texts: Sequence[str]
) -> tuple[PolicyRequest, Prepared]:
    """What a policy would decide on, and what would become of the call.

    `tainted`: the run has taken in something from outside before. `user_texts`: what its user has written.
    Raises MissingTool, or ToolcribError for a call that cannot be made.
    """
    taint = frozenset({"something from outside"} if tainted else ())
    provenance = Provenance(taint, tuple(user_texts))
    request, prepared = await box.imagine(call, policy=policy, provenance=provenance)
    if request is None:
        assert isinstance(prepared, Refused)
        known = await box.registry.entry(call.name) is not None
        raise (ToolcribError if known else MissingTool)(prepared.result.text)
    return request, prepared


async def policy_request(
    box: Toolbox, call: ToolCall, *, tainted: bool = False, user_texts: Sequence[str] = ()
) -> PolicyRequest:
    """What the policy of a box would decide on. Raises as `imagined` does."""
    return (await imagined(box, call, None, tainted, user_texts))[0]
