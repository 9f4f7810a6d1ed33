"""Asking a person, and what becomes of a pending call when the answer comes: everything is checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.call import (
    Answer,
    Pending,
    Prepared,
    Question,
    Ready,
    Refused,
    Verdict,
    prepared_from_json,
    prepared_to_json,
)
from toolcrib.events import QuestionAnswered, QuestionAsked
from toolcrib.result import ToolResult
from toolcrib.toolbox import words
from toolcrib.toolbox.policy import Case, Verb

if TYPE_CHECKING:
    from toolcrib.toolbox.box import Toolbox


async def ask(box: Toolbox, question: Question) -> Answer | None:
    """Put a question to the box's approver; None when there is none, it fails, or it gives no answer."""
    run = question.key.run
    if box.sink:
        box.emit(run, QuestionAsked(question))
    answer = None
    if box.approver is not None:
        import asyncio

        try:
            if box.answer_timeout is None:
                answer = await box.approver(question)
            else:
                answer = await asyncio.wait_for(box.approver(question), box.answer_timeout)
        except TimeoutError:
            pass
        except (Exception, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # it is this call that was cancelled
                raise
            import logging

            logging.getLogger("toolcrib").exception("the approver failed; the answer is no")
    if not isinstance(answer, Answer):
        answer = None
    if box.sink:
        said = (answer.verdict.value, answer.message, answer.by) if answer else ("", "", "")
        box.emit(run, QuestionAnswered(question.key, *said))
    return answer


async def answered(box: Toolbox, pending: Pending, answer: Answer | None) -> ToolResult | None:
    """What an answer makes of a pending call: a refusal, or None to go on."""
    name = pending.call.name
    if not isinstance(answer, Answer):
        return words.nobody_to_ask(name)
    if not answer.allows:
        return words.rejected(name, answer.message)
    refusal = await bind(box, pending)
    if refusal is None and answer.verdict is Verdict.ALWAYS:
        box.grants.add(pending.key.run, pending.bound.entry if pending.bound else None, pending.fingerprint)
    return refusal


async def bind(box: Toolbox, prepared: Ready) -> ToolResult | None:
    """Make sure that what will run is what was decided on, and still allowed; None when it is."""
    name = prepared.call.name
    if prepared.bound is None:
        fresh = await box.prepare(prepared.call, key=prepared.key)
        if isinstance(fresh, Refused):
            return fresh.result
        if prepared.fingerprint and fresh.fingerprint and fresh.fingerprint != prepared.fingerprint:
            return words.tool_changed(name)
        prepared.bound, prepared.params = fresh.bound, fresh.params
    elif await box.registry.entry(name) is not prepared.bound.entry:
        return words.tool_changed(name)
    bound = prepared.bound
    assert bound is not None
    decision = box.policy.decide(Case(bound.definition.facts, prepared.effect, prepared))
    return words.denied(name, decision.reason) if decision.verb is Verb.DENY else None


async def restored(box: Toolbox, data: Any) -> Prepared:
    """A prepared call from what `prepared_to_json` wrote, prepared anew; Refused if it is not what was saved."""
    call, key, saved, result = prepared_from_json(data)
    if result is not None:
        return Refused(call, key, result)
    prepared = await box.prepare(call, key=key)
    if isinstance(prepared, Refused):
        return prepared
    if prepared_to_json(prepared)["fingerprint"] != saved:
        return Refused(call, key, words.tool_changed(call.name))
    return prepared
