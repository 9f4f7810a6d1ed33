"""Asking a person, and what becomes of a pending call when the answer comes: everything is checked again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolcrib.errors import ToolcribError, traceback_text
from toolcrib.events import QuestionAnswered, QuestionAsked
from toolcrib.prepared import Pending, Prepared, Ready, Refused, prepared_from_json, prepared_to_json
from toolcrib.question import Answer, Preview, Question, Verdict
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.policy import Verb, accesses_of
from toolcrib.toolbox.prepare import is_invalid
from toolcrib.toolbox.registry import close_tool

if TYPE_CHECKING:
    from toolcrib.toolbox.box import Toolbox

ASKED = "; asked because: "
PREVIEW_TIME = 10.0  # seconds that a person waits for what a tool shows


async def ask(box: Toolbox, question: Question) -> Answer | None:
    """Put a question to the box's approver; None when there is none, it fails, or it gives no answer."""
    run = question.key.run
    if box.sink:
        box.emit(run, QuestionAsked(question))
    given: Any = None
    if box.approver is not None:
        import asyncio

        try:
            if box.answer_timeout is None:
                given = await box.approver(question)
            else:
                given = await asyncio.wait_for(box.approver(question), box.answer_timeout)
        except TimeoutError:
            pass
        except (Exception, asyncio.CancelledError) as problem:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # it is this call that was cancelled
                raise
            box.complain("the approver failed; the answer is no", traceback_text(problem))
    answer: Answer | None = given
    if given is not None and not isinstance(given, Answer):
        from toolcrib.rules.answers import parse_answer

        answer = parse_answer(given, box)
    if box.sink:
        said = (answer.verdict.value, answer.message, answer.by) if answer else ("", "", "")
        box.emit(run, QuestionAnswered(question.key, *said))
    return answer


async def answered(box: Toolbox, pending: Pending, answer: Answer | None) -> ToolResult | None:
    """What an answer makes of a pending call: a refusal, or None to go on."""
    name = pending.call.name
    if not isinstance(answer, Answer):
        return model_messages.nobody_to_ask(name)
    if not answer.allows:
        return model_messages.rejected(name, answer.message)
    if answer.arguments is not None and (refusal := await _with_other_arguments(box, pending, answer)):
        return refusal
    refusal = await bind(box, pending)
    if refusal is None and answer.arguments is None and await outdated(box, pending):
        return model_messages.outdated(name)
    pending.approved = True
    pending.why = f"approved by {answer.by or 'a person'}"
    asked = (
        pending.question.fingerprint == pending.fingerprint
    )  # else something else runs than was asked about
    if refusal is None and answer.verdict is Verdict.ALWAYS and asked and pending.bound is not None:
        try:
            box.approvals.add(
                pending.question, answer, pending.bound.entry, pending.bound.definition.identity
            )
        except (ToolcribError, OSError) as problem:  # the yes holds for this call all the same
            box.complain("an approval could not be kept", str(problem))
    return refusal


async def previewed(box: Toolbox, pending: Pending) -> Question:
    """The question, with what the tool shows of the call, if it shows anything; only a person sees it."""
    preview = await _preview_of(box, pending)
    shown = [f"it leads to {access.target}" for access in accesses_of(pending) or () if access.real]
    if preview is not None:
        pending.question.digest = preview.digest
        shown.append(preview.text)
    pending.question.preview = box.shown("\n".join(shown))
    return pending.question


async def outdated(box: Toolbox, pending: Pending) -> bool:
    """Whether what the person saw rests on something that is another by now."""
    if not pending.question.digest:
        return False
    preview = await _preview_of(box, pending)
    return preview is None or preview.digest != pending.question.digest


async def _preview_of(box: Toolbox, pending: Pending) -> Preview | None:
    bound = pending.bound
    hook = bound.definition.hooks.get("preview") if bound is not None else None
    if hook is None or bound is None:
        return None
    job = box.workers.submit(hook, (bound.tool, pending.params))
    try:
        if not await job.wait(PREVIEW_TIME):
            return Preview("(what it would do could not be shown in time)")
        shown = job.result()
        return shown if isinstance(shown, Preview) and isinstance(shown.text, str) else None
    except (Exception, SystemExit) as problem:
        box.complain(f"the preview of tool {pending.call.name} failed", traceback_text(problem))
        return None


async def stale(box: Toolbox, pending: Pending, answer: Answer) -> bool:
    """Whether a yes cannot be taken as it is, and the person has to be asked again."""
    return await unusable(box, pending, answer) or await outdated(box, pending)


async def unusable(box: Toolbox, pending: Pending, answer: Answer) -> bool:
    """Whether a person gave arguments that cannot be used; then the question says so to them."""
    if answer.arguments is None:
        return False
    call = replace(pending.call, arguments=answer.arguments, problem="")
    fresh = await box.prepare(call, key=pending.key)
    if not isinstance(fresh, Refused):
        if fresh.bound is not None and fresh.bound.entry.owned:
            await close_tool(fresh.bound.tool)
        return False
    lines = [line for line in fresh.result.text.split("\n") if line.startswith("- ")] or [fresh.result.text]
    wrong = f"the arguments that you gave cannot be used ({' '.join(lines)})"
    before = pending.question.reason.rpartition(ASKED)[2]
    pending.question = replace(pending.question, reason=box.shown(f"{wrong}{ASKED}{before}"))
    return True


async def _with_other_arguments(box: Toolbox, pending: Pending, answer: Answer) -> ToolResult | None:
    """A person said yes to other arguments: they are validated and decided on like any; a refusal, or None."""
    call = replace(pending.call, arguments=answer.arguments or {}, problem="")
    fresh = await box.prepare(call, key=pending.key)
    if isinstance(fresh, Refused):
        return model_messages.unusable(call.name) if is_invalid(fresh) else fresh.result
    if pending.bound is not None and pending.bound.entry.owned:
        await close_tool(pending.bound.tool)
    pending.bound, pending.params, pending.effect = fresh.bound, fresh.params, fresh.effect
    pending.replace_arguments(fresh.arguments)
    pending.accesses = fresh.accesses
    pending.edits, pending.fingerprint = (), fresh.fingerprint
    if isinstance(fresh, Pending):
        pending.question = fresh.question
    pending.changed = True
    return None


async def bind(box: Toolbox, prepared: Ready) -> ToolResult | None:
    """Make sure that what will run is what was decided on, and still allowed; None when it is."""
    name = prepared.call.name
    if prepared.bound is None:
        fresh = await box.prepare(prepared.call, key=prepared.key)
        if isinstance(fresh, Refused):
            return fresh.result
        if prepared.fingerprint and fresh.fingerprint and fresh.fingerprint != prepared.fingerprint:
            return model_messages.tool_changed(name)
        prepared.bound, prepared.params, prepared.accesses = fresh.bound, fresh.params, fresh.accesses
    elif await box.registry.entry(name) is not prepared.bound.entry:
        return model_messages.tool_changed(name)
    bound = prepared.bound
    assert bound is not None
    decision = box.policy.decide(box.case_of(prepared))
    if decision.verb is Verb.DENY:
        return model_messages.denied(name, decision.reason)
    if prepared.approved and type(prepared) is Ready and not _still_covered(box, prepared):
        return model_messages.outdated(name)
    return None


def _still_covered(box: Toolbox, ready: Ready) -> bool:
    """Whether what was approved before has neither expired nor been revoked meanwhile."""
    bound = ready.bound
    assert bound is not None
    run, identity = ready.key.run, bound.definition.identity
    return box.approvals.covers(run, bound.entry, ready.fingerprint, identity, lambda: accesses_of(ready))


async def restored(box: Toolbox, data: Any) -> Prepared:
    """A prepared call from what `prepared_to_json` wrote, prepared anew; Refused if it is not what was saved."""
    call, key, saved, result = prepared_from_json(data)
    if result is not None:
        return Refused(call, key, result)
    prepared = await box.prepare(call, key=key)
    if isinstance(prepared, Refused):
        return prepared
    if prepared_to_json(prepared)["fingerprint"] != saved:
        return Refused(call, key, model_messages.tool_changed(call.name))
    if data["kind"] == Pending.kind and type(prepared) is Ready and not prepared.approved:
        prepared = _still_pending(prepared, str(data.get("reason") or "it was asked about before"))
    if isinstance(prepared, Pending):  # what the person was shown rests on what was there then
        prepared.question.digest = str(data.get("digest") or "")
    return prepared


def _still_pending(ready: Ready, reason: str) -> Pending:
    """What was asked about stays a question, though why (what the run took in, say) may not be known here."""
    name, effect = ready.call.name, ready.effect
    question = Question(
        ready.key, name, f"run {name}", reason, ready.arguments, effect.label, ready.fingerprint, ready.edits
    )
    parts = (ready.call, ready.key, ready.arguments, effect, ready.edits, ready.fingerprint, ready.bound)
    return Pending(*parts, ready.params, question=question)
