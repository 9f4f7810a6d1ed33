"""Calls that were saved, perhaps by another process: they are prepared anew, and must be what was saved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolcrib.prepared import Pending, Prepared, Ready, Refused
from toolcrib.saved_calls import prepared_from_json, prepared_to_json
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.policy import Decision, Verb
from toolcrib.toolbox.prepare import Preparation

__all__ = ["restored_call"]


async def restored_call(
    data: Any, preparation: Preparation, decider: Decider, deps: Any, *, changed: Any = None
) -> Prepared:
    """A saved call, prepared anew; Refused if it is not what was saved. `changed` are arguments that a person gave."""
    call, key, saved, result = prepared_from_json(data)
    if result is not None:
        return Refused(call, key, result)
    given = call if changed is None else replace(call, arguments=changed, problem="")
    prepared = await preparation.prepare(given, key, deps=deps)
    if isinstance(prepared, Refused):
        return prepared
    if prepared_to_json(prepared)["fingerprint"] != saved:
        return Refused(call, key, model_messages.tool_changed(call.name))
    if data["kind"] == Pending.kind and isinstance(prepared, Ready) and not prepared.approved:
        # Why it was asked about (what the run took in, say) may not be known here: it stays a question.
        reason = str(data.get("reason") or "it was asked about before")
        prepared = decider.asked(prepared, Decision(Verb.ASK, reason), reason)
    if changed is not None:
        ready = prepared.ready if isinstance(prepared, Pending) else prepared
        ready = ready._replace(call=call, edits=(), changed=True)
        prepared = replace(prepared, ready=ready) if isinstance(prepared, Pending) else ready
    if isinstance(prepared, Pending):  # what the person was shown rests on what was there then
        question = replace(prepared.question, digest=str(data.get("digest") or ""))
        prepared = replace(prepared, question=question)
    return prepared
