"""Asking a person, and what the answer makes of a call. What could have changed meanwhile is checked again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcrib.errors import ErrorCode, ToolcribError, traceback_text
from toolcrib.events import QuestionAnswered, QuestionAsked
from toolcrib.prepared import Pending, Ready, Refused
from toolcrib.question import Answer, Preview, Question, Verdict
from toolcrib.result import ToolResult
from toolcrib.sink import EventSink
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.operator_log import Mask, OperatorLog
from toolcrib.toolbox.policy import Approver, Decision, Verb
from toolcrib.toolbox.prepare import Preparation
from toolcrib.toolbox.registry import Registry, close_tool
from toolcrib.toolbox.threads import Workers

if TYPE_CHECKING:
    import asyncio

__all__ = ["Approving", "Questions", "parse_answer"]

ASKED = "; asked because: "
MAX_ASKED = 3  # times that a call is asked about while what the question rests on changes
PREVIEW_TIME = 10.0  # seconds that a person waits for what a tool shows
WANTED = (
    "an approver gives Answer(Verdict.YES), Answer(Verdict.NO) or Answer(Verdict.ALWAYS), or in short a Verdict, "
    'True, False, "yes", "no" or "always"; None where nobody could be asked'
)


class Approving:
    """Puts questions to the approver, if there is one, and reads what it gives."""

    __slots__ = ("_operator", "_sink", "approver", "timeout")

    def __init__(
        self, approver: Approver | None, timeout: float | None, sink: EventSink, operator: OperatorLog
    ) -> None:
        self.approver = approver
        self.timeout = timeout
        self._sink = sink
        self._operator = operator

    async def ask(self, question: Question) -> Answer | None:
        """The approver's answer; None when there is no approver, it fails, or it gives no answer."""
        run = question.key.run
        if self._sink:
            self._sink.emit(run, QuestionAsked(question))
        given: Any = None
        if self.approver is not None:
            import asyncio

            try:
                if self.timeout is None:
                    given = await self.approver(question)
                else:
                    given = await asyncio.wait_for(self.approver(question), self.timeout)
            except TimeoutError:
                pass
            except (Exception, asyncio.CancelledError) as problem:
                task = asyncio.current_task()
                if task is not None and task.cancelling():  # it is this call that was cancelled
                    raise
                self._operator.problem("the approver failed; the answer is no", traceback_text(problem))
        answer = parse_answer(given)
        if given is not None and answer is None:
            shown = f"{type(given).__name__} {str(given)[:60]!r}"
            what = f"the approver gave {shown}, which allows nothing"
            self._operator.problem_once("the approver's answers", what, WANTED)
        if self._sink:
            said = (answer.verdict.value, answer.message, answer.by) if answer else ("", "", "")
            self._sink.emit(run, QuestionAnswered(question.key, *said))
        return answer


def parse_answer(given: Any) -> Answer | None:
    """The answer that is meant, if it is clear: an Answer, or the plain words for yes, no and always.

    >>> parse_answer("yes").verdict.value, parse_answer(False).verdict.value, parse_answer("perhaps")
    ('yes', 'no', None)
    """
    if isinstance(given, Answer):
        return given
    if isinstance(given, bool):
        return Answer(Verdict.YES if given else Verdict.NO)
    if isinstance(given, str) and given in list(Verdict):
        return Answer(Verdict(given))
    return None


class AskAgain(NamedTuple):
    """A yes that cannot be taken as it is: the question to ask anew, and the refusal where nobody is asked anew."""

    pending: Pending
    refusal: ToolResult


class Questions:
    """Takes a pending call through its question: preview, ask, check what the answer makes of it."""

    def __init__(
        self,
        approving: Approving,
        preparation: Preparation,
        decider: Decider,
        registry: Registry,
        workers: Workers,
        operator: OperatorLog,
        mask: Mask,
    ) -> None:
        self._approving = approving
        self._preparation = preparation
        self._decider = decider
        self._registry = registry
        self._workers = workers
        self._operator = operator
        self._mask = mask

    async def settle(
        self, pending: Pending, deps: Any, asking: asyncio.Lock | None = None
    ) -> Ready | ToolResult:
        """Ask the approver, and again while what the question rests on changes: the call to run, or a refusal.

        Calls of a turn ask one after the other, each holding the lock `asking`.
        """
        refusal = model_messages.nobody_to_ask(pending.call.name)
        for _ in range(MAX_ASKED):
            pending = await self.with_preview(pending)
            if asking is None:
                answer = await self._approving.ask(pending.question)
            else:
                async with asking:
                    answer = await self._ask_unless_covered(pending)
            reply = await self.answered(pending, answer, deps)
            if not isinstance(reply, AskAgain):
                return reply
            pending, refusal = reply
        return refusal

    async def _ask_unless_covered(self, pending: Pending) -> Answer | None:
        """Ask, unless an "always" that came while this call waited for its turn to ask covers it already."""
        if not pending.question.strict and self._decider.approvals.covers_call(pending.ready):
            return Answer(Verdict.YES, by="always")
        return await self._approving.ask(pending.question)

    async def answered(
        self, pending: Pending, answer: Answer | None, deps: Any
    ) -> Ready | ToolResult | AskAgain:
        """What an answer makes of a pending call: the call to run, a refusal, or a question to ask anew."""
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
            question = fresh.question if isinstance(fresh, Pending) else question
        else:
            asked_about_it = question.fingerprint == ready.fingerprint
            decision = await self._decision_now(ready)
            if isinstance(decision, ToolResult):
                return decision
            if await self._outdated(pending):
                return AskAgain(pending, model_messages.outdated(name))
        if answer.verdict is Verdict.ALWAYS and asked_about_it:
            try:
                entry, identity = ready.tool.entry, ready.tool.definition.identity
                self._decider.approvals.add(question, answer, entry, identity)
            except (ToolcribError, OSError) as problem:  # the yes holds for this call all the same
                self._operator.problem("an approval could not be kept", str(problem))
        return ready._replace(approved=True, why=f"approved by {answer.by or 'a person'}")

    async def _with_other_arguments(
        self, pending: Pending, arguments: dict[str, Any], deps: Any
    ) -> Ready | Pending | AskAgain:
        """A person said yes to other arguments: they are validated and decided on like any, once."""
        call = replace(pending.call, arguments=arguments, problem="")
        fresh = await self._preparation.prepare(call, pending.key, deps=deps)
        if isinstance(fresh, Refused):
            text = fresh.result.text
            lines = [line for line in text.split("\n") if line.startswith("- ")] or [text]
            wrong = f"the arguments that you gave cannot be used ({' '.join(lines)})"
            before = pending.question.reason.rpartition(ASKED)[2]
            question = replace(pending.question, reason=self._mask(f"{wrong}{ASKED}{before}"))
            invalid = fresh.result.code is ErrorCode.INVALID_ARGUMENTS
            refusal = model_messages.unusable(call.name) if invalid else fresh.result
            return AskAgain(replace(pending, question=question), refusal)
        if pending.tool.entry.owned and pending.tool is not fresh.tool:
            await close_tool(pending.tool.instance)
        ready = fresh if isinstance(fresh, Ready) else fresh.ready
        ready = ready._replace(call=pending.call, edits=(), execution=pending.execution, changed=True)
        return ready if isinstance(fresh, Ready) else replace(fresh, ready=ready)

    async def recheck(self, ready: Ready) -> Ready | Pending | ToolResult:
        """A call that was kept since it was decided on: whether it may still run, or has to be asked about now."""
        decision = await self._decision_now(ready)
        if isinstance(decision, ToolResult):
            return decision
        if ready.approved:
            covered = self._decider.approvals.covers_call(ready)
            return ready if covered else model_messages.outdated(ready.call.name)
        return self._decider.asked(ready, decision, decision.reason) if decision.verb is Verb.ASK else ready

    async def _decision_now(self, ready: Ready) -> Decision | ToolResult:
        """The policy's decision now; the refusal where it denies the call, or where the tool is another by now."""
        name = ready.call.name
        if await self._registry.entry(name) is not ready.tool.entry:
            return model_messages.tool_changed(name)
        decision = self._decider.decide_again(ready)
        return model_messages.denied(name, decision.reason) if decision.verb is Verb.DENY else decision

    # -- previews

    async def with_preview(self, pending: Pending) -> Pending:
        """The call, its question with what the tool shows of it; only a person sees that."""
        preview = await self._preview_of(pending)
        shown = [f"it leads to {access.target}" for access in pending.accesses or () if access.real]
        digest = pending.question.digest
        if preview is not None:
            shown.append(preview.text)
            digest = preview.digest
        question = replace(pending.question, preview=self._mask("\n".join(shown)), digest=digest)
        return replace(pending, question=question)

    async def _outdated(self, pending: Pending) -> bool:
        """Whether what the person saw rests on something that has changed since."""
        if not pending.question.digest:
            return False
        preview = await self._preview_of(pending)
        return preview is None or preview.digest != pending.question.digest

    async def _preview_of(self, pending: Pending) -> Preview | None:
        hook: Callable[..., Any] | None = pending.tool.definition.hooks.get("preview")
        if hook is None:
            return None
        job = self._workers.submit(hook, (pending.tool.instance, pending.params))
        try:
            if not await job.wait(PREVIEW_TIME):
                return Preview("(what it would do could not be shown in time)")
            shown = job.result()
            return shown if isinstance(shown, Preview) and isinstance(shown.text, str) else None
        except (Exception, SystemExit) as problem:
            self._operator.problem(f"the preview of tool {pending.call.name} failed", traceback_text(problem))
            return None
