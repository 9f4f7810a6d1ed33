"""Putting a question to the approver, and reading the answer that it gives."""

from __future__ import annotations

from typing import Any

from toolcrib.errors import traceback_text
from toolcrib.events import QuestionAnswered, QuestionAsked
from toolcrib.question import Answer, Question, Verdict
from toolcrib.sink import EventSink
from toolcrib.toolbox.operator_log import OperatorLog
from toolcrib.toolbox.policy import Approver
from toolcrib.toolbox.threads import Workers

__all__ = ["Approving", "parse_answer"]

WANTED = (
    "an approver gives Answer(Verdict.YES), Answer(Verdict.NO) or Answer(Verdict.ALWAYS), or in short a Verdict, "
    'True, False, "yes", "no" or "always"; None where nobody could be asked'
)


class Approving:
    """Puts questions to the approver, if there is one, and reads what it gives."""

    __slots__ = ("_operator", "_sink", "_workers", "approver", "grace", "timeout")

    def __init__(
        self,
        approver: Approver | None,
        timeout: float | None,
        sink: EventSink,
        operator: OperatorLog,
        workers: Workers,
        grace: float,
    ) -> None:
        self.approver = approver
        self.timeout = timeout
        self._sink = sink
        self._operator = operator
        self._workers = workers
        self.grace = grace

    async def ask(self, question: Question) -> Answer | None:
        """The approver's answer; None when there is no approver, it fails, or it gives no answer."""
        self.tell_asked(question)
        given: Any = None
        if self.approver is not None:
            from toolcrib.toolbox.deadline import DeadlinePassed
            from toolcrib.toolbox.foreign import ForeignCall

            try:
                given = await ForeignCall(self._reply(self.approver, question), self.timeout, self.grace)
            except DeadlinePassed:
                pass
            except Exception as problem:
                self._operator.problem("the approver failed; the answer is no", traceback_text(problem))
        answer = parse_answer(given)
        if given is not None and answer is None:
            shown = f"{type(given).__name__} {str(given)[:60]!r}"
            what = f"the approver gave {shown}, which allows nothing"
            self._operator.problem_once("the approver's answers", what, WANTED)
        self.tell_answered(question, answer)
        return answer

    def tell_asked(self, question: Question) -> None:
        """Tell whoever listens that a question waits for an answer."""
        if self._sink:
            self._sink.emit(question.key.run, QuestionAsked(question))

    def tell_answered(self, question: Question, answer: Answer | None) -> None:
        if self._sink:
            said = (answer.verdict.value, answer.message, answer.by) if answer else ("", "", "")
            self._sink.emit(question.key.run, QuestionAnswered(question.key, *said))

    async def _reply(self, approver: Approver, question: Question) -> object:
        """What the approver gives. A sync one may wait for a person, so it runs on a thread and not in the loop."""
        import asyncio
        import inspect

        if inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(type(approver).__call__):
            reply: object = approver(question)
        else:
            job = self._workers.submit(approver, (question,), asyncio.get_running_loop())
            try:
                await job.wait()
            except BaseException:
                job.withdraw()
                job.abandon()
                raise
            reply = job.result()
        return await reply if inspect.isawaitable(reply) else reply


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
