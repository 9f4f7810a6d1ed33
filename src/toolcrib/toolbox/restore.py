"""Calls that were saved, perhaps by another process: they are prepared anew, and must be what was saved."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from toolcrib.call import CallKey
from toolcrib.dataclass import replace
from toolcrib.prepared import OneExecution, Pending, Prepared, Refused
from toolcrib.saved_calls import fingerprint_of, prepared_from_json, prepared_to_json
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.policy import Decision, Verb
from toolcrib.toolbox.prepare import Preparation

__all__ = ["QuestionsOnce", "restored_call"]

MAX_KEPT = 1_024  # questions whose execution is remembered


class QuestionsOnce:
    """Gives a question that is restored several times the same execution, so that its call runs once. This holds within
    one process only."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[CallKey, str], OneExecution] = OrderedDict()

    def remember(self, pending: Pending) -> OneExecution:
        """The execution of a question: its own, unless the same one was remembered before."""
        execution = self._kept.setdefault((pending.key, fingerprint_of(pending)), pending.execution)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return execution

    def once(self, prepared: Prepared) -> Prepared:
        """A restored call with the execution that it has had since it was asked about first."""
        if not isinstance(prepared, Pending):
            return prepared
        return replace(prepared, ready=prepared.ready._replace(execution=self.remember(prepared)))


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
    strict = data.get("strict") is True
    if isinstance(prepared, Pending):
        settled = prepared.question.strict or not strict
    else:
        settled = prepared.approved and not strict
    if data["kind"] == Pending.kind and not settled:
        # Why it was asked about (what the run took in, say) may not be known here: it stays a question, and one that
        # no earlier approval answers, if it was such.
        reason = str(data.get("reason") or "it was asked about before")
        ready = prepared.ready if isinstance(prepared, Pending) else prepared
        asking = Decision(Verb.ASK, reason, strict=strict)
        prepared = decider.asked(ready._replace(approved=False), asking, reason)
    if changed is not None:
        ready = prepared.ready if isinstance(prepared, Pending) else prepared
        ready = ready._replace(call=call, edits=(), changed=True)
        prepared = replace(prepared, ready=ready) if isinstance(prepared, Pending) else ready
    if isinstance(prepared, Pending):  # its preview was made from the state at that time
        question = replace(prepared.question, digest=str(data.get("digest") or ""))
        prepared = replace(prepared, question=question)
    return prepared
