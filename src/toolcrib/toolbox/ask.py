"""Asking a person about a call and acting on the answer. What may have changed meanwhile is checked again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import ErrorCode
from toolcrib.prepared import Pending, Prepared, Ready, Refused
from toolcrib.question import Answer, Verdict
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.approval import approval_mark, as_shown
from toolcrib.toolbox.approver import Approving
from toolcrib.toolbox.closing import close_tool
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.operator_log import Mask, OperatorLog
from toolcrib.toolbox.policy import Decision, Verb
from toolcrib.toolbox.prepare import Preparation
from toolcrib.toolbox.preview import Previews
from toolcrib.toolbox.registry import Registry

if TYPE_CHECKING:
    from toolcrib.toolbox.suspension import Suspension
    from toolcrib.toolbox.turn_questions import TurnQuestions

__all__ = ["AskAgain", "Questions"]

ASKED = "; asked because: "
MAX_ASKED = 3  # times that one call is asked about, if each question is outdated when its answer comes


class AskAgain(NamedTuple):
    """A yes that does not hold: the question to ask again, and the refusal to give where nobody is asked again."""

    pending: Pending
    refusal: ToolResult


@dataclass(slots=True)
class Questions:
    """Takes a pending call through its question: shows a preview, asks, checks whether the answer still holds."""

    approving: Approving
    preparation: Preparation
    decider: Decider
    registry: Registry
    previews: Previews
    operator: OperatorLog
    mask: Mask

    async def settle(
        self, pending: Pending, deps: Any, asking: TurnQuestions | None = None
    ) -> Ready | Pending | ToolResult:
        """Ask the approver, and again if the question is outdated by then. Returns the call to run, or a refusal.

        In a run that ends at its questions, the answer must have been given before; without one, the call stays
        Pending. `asking` puts the questions of a turn's calls, one after the other or together.
        """
        suspension = self.decider.runs.suspension(pending.key.run)
        request = self.decider.request_for(pending.ready)
        if why := await self.previews.failure_of(pending, self.decider.policy, request, suspension):
            return model_messages.precheck(pending.call.name, why)
        refusal = model_messages.nobody_to_ask(pending.call.name)
        for _ in range(MAX_ASKED):
            pending = await self.previews.with_preview(pending)
            pending, answer = await self.approving.reviewed(pending, suspension)
            if answer is not None:
                if (stricter := self._for_a_person(pending)) is not None:
                    pending = stricter
                    continue
                if asking is not None:  # the questions of others do not wait for the end of this call
                    asking.no_longer_expect(pending.key)
            elif suspension is not None:
                given = self._given(pending, suspension)
                if not isinstance(given, Answer):
                    return given
                answer = given
            elif asking is None:
                answer = await self.approving.ask(pending.question)
            else:
                answer = await asking.ask(pending.question, partial(self._covered, pending))
            reply = await self.answered(pending, answer, deps)
            if not isinstance(reply, AskAgain):
                return reply
            pending, refusal = reply
        return refusal

    async def settle_anew(self, prepared: Prepared, deps: Any) -> Ready | ToolResult:
        """A call that a middleware changed, and that was prepared anew: the call to run, or a refusal."""
        if isinstance(prepared, Refused):
            if prepared.problem:
                self.operator.problem(f"tool {prepared.call.name} failed", prepared.problem)
            return prepared.result
        if isinstance(prepared, Ready):
            return prepared
        settled = await self.settle(prepared, deps)
        if isinstance(settled, Pending):  # the middleware, in its work, cannot wait for days
            settled = model_messages.nobody_to_ask(prepared.call.name)
        if isinstance(settled, ToolResult) and prepared.tool.entry.owned:
            await close_tool(prepared.tool.entry, prepared.tool.instance)
        return settled

    def _given(self, pending: Pending, suspension: Suspension) -> Answer | Pending | ToolResult:
        """The answer that was given beforehand; the call itself while there is none; a refusal if it cannot wait."""
        answer = suspension.answer(pending.question)
        if answer is not None:
            self.approving.tell_answered(pending.question, answer)
            return answer
        if self._covered(pending):
            return Answer(Verdict.YES, by="always")
        outer = suspension.cannot_wait(pending.key, self.decider.runs.parents)
        return model_messages.cannot_wait(pending.call.name, outer) if outer else pending

    def _covered(self, pending: Pending) -> bool:
        """Whether an "always" that came while the call waited covers it."""
        covered = not pending.question.strict and self.decider.approvals.covers_call(pending.ready)
        return covered and self._for_a_person(pending) is None

    def _for_a_person(self, pending: Pending) -> Pending | None:
        """The call as a question, if only a person may allow it by now (its run was tainted, say); else None."""
        decision = self.decider.decide_again(pending.ready)
        only = decision.verb is Verb.ASK and decision.strict
        asked = self.decider.asked(pending.ready, decision, decision.reason) if only else None
        return asked if isinstance(asked, Pending) else None

    async def answered(
        self, pending: Pending, answer: Answer | None, deps: Any
    ) -> Ready | ToolResult | AskAgain:
        """The outcome of an answer to a pending call: the call to run, a refusal, or a question to ask again."""
        name, question = pending.call.name, pending.question
        if not isinstance(answer, Answer):
            return model_messages.nobody_to_ask(name)
        if not answer.allows:
            return model_messages.rejected(name, answer.message)
        ready = pending.ready
        if answer.arguments is not None:
            fresh = await self._with_other_arguments(pending, answer.arguments, deps)
            if isinstance(fresh, AskAgain):
                return fresh
            ready = fresh if isinstance(fresh, Ready) else fresh.ready
            asked_about_it = isinstance(fresh, Pending)
            question = as_shown(fresh.question, question) if isinstance(fresh, Pending) else question
        else:
            asked_about_it = question.fingerprint == ready.fingerprint
            decision = await self._decision_now(ready)
            if isinstance(decision, ToolResult):
                return decision
            if await self.previews.outdated(pending):
                return AskAgain(pending, model_messages.outdated(name))
        if answer.verdict is Verdict.ALWAYS and asked_about_it:
            entry, identity = ready.tool.entry, ready.tool.definition.identity
            self.decider.approvals.add(question, answer, entry, identity, ready, approval_mark(ready))
        return ready._replace(approved=True, why=f"approved by {answer.by or 'a person'}")

    async def _with_other_arguments(
        self, pending: Pending, arguments: dict[str, Any], deps: Any
    ) -> Ready | Pending | AskAgain:
        """Prepare the call with the arguments that a person gave instead; they are validated and decided on once."""
        call = replace(pending.call, arguments=arguments, problem="")
        fresh = await self.preparation.prepare(call, pending.key, deps=deps)
        if isinstance(fresh, Refused):
            lines = [line for line in fresh.result.text.split("\n") if line.startswith("- ")]
            wrong = f"the arguments that you gave cannot be used ({' '.join(lines) or fresh.result.text})"
            before = pending.question.reason.rpartition(ASKED)[2]
            question = replace(pending.question, reason=self.mask(f"{wrong}{ASKED}{before}"))
            invalid = fresh.result.code is ErrorCode.INVALID_ARGUMENTS
            refusal = model_messages.unusable(call.name) if invalid else fresh.result
            return AskAgain(replace(pending, question=question), refusal)
        if pending.tool.entry.owned and pending.tool is not fresh.tool:
            await close_tool(pending.tool.entry, pending.tool.instance)
        ready = fresh if isinstance(fresh, Ready) else fresh.ready
        ready = ready._replace(call=pending.call, edits=(), execution=pending.execution, changed=True)
        return ready if isinstance(fresh, Ready) else replace(fresh, ready=ready)

    async def recheck(self, ready: Ready) -> Ready | Pending | ToolResult:
        """A call that was kept since it was decided on: whether it may still run, or has to be asked about now."""
        decision = await self._decision_now(ready)
        if isinstance(decision, ToolResult):
            return decision
        if ready.approved and not decision.strict:
            covered = self.decider.approvals.covers_call(ready)
            return ready if covered else model_messages.outdated(ready.call.name)
        if decision.verb is Verb.ASK:
            return self.decider.asked(ready._replace(approved=False), decision, decision.reason)
        return ready if ready.confined == decision.confined else ready._replace(confined=decision.confined)

    async def _decision_now(self, ready: Ready) -> Decision | ToolResult:
        """The policy's decision now; the refusal where it denies the call, or where the tool is another by now."""
        name = ready.call.name
        if await self.registry.entry(name) is not ready.tool.entry:
            return model_messages.tool_changed(name)
        decision = self.decider.decide_again(ready)
        return model_messages.denied(name, decision.reason) if decision.verb is Verb.DENY else decision
