"""Asking a person for input: words, a choice, a form. A reply that does not fit the form is asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import replace
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.fingerprint import fingerprint
from toolcrib.question import Answer, InputRequest, Question
from toolcrib.toolbox.approver import Approving, as_reply
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.operator_log import Mask

if TYPE_CHECKING:
    from toolcrib.context import Context
    from toolcrib.toolbox.suspension import Suspension

__all__ = ["CANNOT_WAIT", "PersonInput"]

MAX_ASKED = 3  # times that a form is asked about while what is given does not fit
CANNOT_WAIT = (
    "This needs approval: {}. The call of tool {!r} cannot wait for a person's answer, since it may not be run twice. "
    "No person has refused it."
)


class PersonInput:
    """Puts requests for input to the approver, or lets them wait where the run ends at its questions."""

    __slots__ = ("_approving", "_decider", "_mask")

    def __init__(self, approving: Approving, decider: Decider, mask: Mask) -> None:
        self._approving = approving
        self._decider = decider
        self._mask = mask

    async def ask(self, ctx: Context[Any], requests: Sequence[InputRequest]) -> list[Answer | None]:
        """A reply to each request, in their order: None where nobody replied, a NO from a person who does not want to.

        Raises ToolError where the call cannot wait for a reply, and Suspended where it waits for one.
        """
        questions = [self._question(ctx, request) for request in requests]
        replies: list[Answer | None] = [None] * len(questions)
        unsettled = list(range(len(questions)))
        for _ in range(MAX_ASKED):
            answers = await self._answers(ctx, [questions[index] for index in unsettled])
            again = []
            for index, answer in zip(unsettled, answers, strict=True):
                try:
                    replies[index] = None if answer is None else as_reply(questions[index], answer)
                except ValueError as problem:
                    why = f"what was given does not fit: {'; '.join(str(problem).splitlines())}"
                    questions[index] = replace(questions[index], reason=why)
                    again.append(index)
            if not (unsettled := again):
                break
        return replies

    def _question(self, ctx: Context[Any], request: InputRequest) -> Question:
        mask, options = self._mask, tuple(request.options)
        asked: list[Any] = ["input", request.text, list(options), request.several]
        if request.form or request.source:
            from toolcrib.forms import form_schema

            asked += [form_schema(request.form), request.source, request.url]
        return Question(
            key=ctx.key,
            tool=ctx.tool,
            action=mask(request.text),
            reason=request.reason or "the model asks",
            arguments={},
            effect=Effect.READ.label,
            fingerprint=fingerprint(ctx._definition.identity, asked),
            strict=True,
            title=ctx._definition.facts.title,
            kind="input",
            options=tuple(map(mask, options)),
            several=request.several,
            form=request.form,
            source=request.source,
            url=request.url,
        )

    async def _answers(self, ctx: Context[Any], questions: list[Question]) -> Sequence[Answer | None]:
        suspension = self._decider.runs.suspension(ctx.key.run)
        if suspension is not None:
            return await self.answered_later(ctx, questions, suspension)
        with ctx._deadline.paused() if ctx._deadline is not None else nullcontext():
            return await self._approving.ask_all(questions)

    async def answered_later(
        self, ctx: Context[Any], questions: Sequence[Question], suspension: Suspension
    ) -> list[Answer]:
        """The answers that were given beforehand. Raises Suspended while one is missing, ToolError if it cannot be."""
        answers = [suspension.answered(ctx, question) for question in questions]
        for question, answer in zip(questions, answers, strict=True):
            if answer is not None:
                self._approving.tell_answered(question, answer)
        waiting = [question for question, answer in zip(questions, answers, strict=True) if answer is None]
        for question in waiting:
            if outer := suspension.cannot_wait(question.key, self._decider.runs.parents):
                raise ToolError(CANNOT_WAIT.format(question.action, outer))
        for question in waiting:
            self._approving.tell_asked(question)
        if waiting:
            await suspension.leave(ctx, waiting)
        return [answer for answer in answers if answer is not None]
