"""Putting a question to the approver, and reading the answer that it gives."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import replace
from toolcrib.errors import traceback_text
from toolcrib.events import QuestionAnswered, QuestionAsked
from toolcrib.hooks import is_async
from toolcrib.question import Answer, Question, Verdict
from toolcrib.sink import EventSink
from toolcrib.toolbox.operator_log import Mask, OperatorLog, shown_value
from toolcrib.toolbox.policy import Approver
from toolcrib.toolbox.threads import Workers

if TYPE_CHECKING:
    from toolcrib.prepared import Pending
    from toolcrib.toolbox.reviewer import Reviewer, Reviewing
    from toolcrib.toolbox.runs import Clock, Runs
    from toolcrib.toolbox.suspension import Suspension

__all__ = ["Approving", "as_reply", "parse_answer"]

WANTED = (
    "an approver gives Answer(Verdict.YES), Answer(Verdict.NO) or Answer(Verdict.ALWAYS), or in short a Verdict, "
    'True, False, "yes", "no" or "always"; None where nobody could be asked'
)
WANTED_OF_ALL = "ask_all gives a list with an answer for each question, in their order"


class Approving:
    """Puts questions to the approver, if there is one, and reads what it gives."""

    __slots__ = ("_operator", "_sink", "_workers", "approver", "clocks", "grace", "reviewing", "timeout")

    def __init__(
        self,
        approver: Approver | None,
        timeout: float | None,
        sink: EventSink,
        operator: OperatorLog,
        workers: Workers,
        grace: float,
        clocks: dict[str, Clock],
    ) -> None:
        self.approver = approver
        self.timeout = timeout
        self._sink = sink
        self._operator = operator
        self._workers = workers
        self.grace = grace
        self.clocks = clocks
        self.reviewing: Reviewing | None = None

    def use_reviewer(self, reviewer: Reviewer | None, runs: Runs, mask: Mask) -> None:
        """Let a reviewer look at the calls of these runs that would ask, secrets masked; None for no reviewer."""
        if reviewer is None:
            self.reviewing = None
            return
        from toolcrib.toolbox.reviewer import Reviewing

        if not callable(reviewer):
            raise TypeError(
                f"reviewer must be a function of a ReviewRequest, sync or async, got {reviewer!r}"
            )
        runs.reviewed = True
        self.reviewing = Reviewing(reviewer, self.call, self._sink, runs, self._operator, mask)

    async def reviewed(
        self, pending: Pending, suspension: Suspension | None
    ) -> tuple[Pending, Answer | None]:
        """The reviewer's yes to a call, if there is a reviewer and it gives one; else the call, to be asked about."""
        if self.reviewing is None:
            return pending, None
        return await self.reviewing.review(pending, suspension)

    @property
    def takes_several(self) -> bool:
        """Whether the approver has a method `ask_all`, which takes several questions at once."""
        return callable(getattr(self.approver, "ask_all", None))

    async def ask(self, question: Question) -> Answer | None:
        """The approver's answer; None when there is no approver, it fails, or it gives no answer."""
        self.tell_asked(question)
        with self._clocks_stopped(question.key.run):
            given = await self._given(self.approver, question, 1)
        return self._read(question, given)

    async def ask_all(self, questions: Sequence[Question]) -> list[Answer | None]:
        """The approver's answer to each question. It is given all of them at once if it takes several."""
        if len(questions) < 2 or not self.takes_several:
            return [await self.ask(question) for question in questions]
        for question in questions:
            self.tell_asked(question)
        all_at_once = getattr(self.approver, "ask_all", None)
        with self._clocks_stopped(questions[0].key.run):
            given = await self._given(all_at_once, tuple(questions), len(questions))
        if given is not None and not (isinstance(given, list | tuple) and len(given) == len(questions)):
            what = f"the approver was asked {len(questions)} questions and gave {shown_value(given)}: it allows nothing"
            self._operator.problem_once("the approver's answers", what, WANTED_OF_ALL)
            given = None
        answers = [None] * len(questions) if given is None else given
        return [self._read(question, one) for question, one in zip(questions, answers, strict=True)]

    @contextmanager
    def _clocks_stopped(self, run: str) -> Generator[None]:
        """Stop the clocks of a run and of those that it belongs to: the time that a person takes is not theirs."""
        with ExitStack() as stack:
            while self.clocks and run:
                if run in self.clocks:
                    stack.enter_context(self.clocks[run].paused())
                run = self._sink.parents.get(run, "")
            yield

    async def _given(self, approver: Callable[[Any], Any] | None, asked: Any, count: int) -> Any:
        """What the approver gives within the time for `count` questions; None if there is none, or it fails."""
        if approver is None:
            return None
        from toolcrib.toolbox.deadline import DeadlinePassed

        seconds = None if self.timeout is None else self.timeout * count
        try:
            return await self.call(approver, asked, seconds)
        except DeadlinePassed:
            return None
        except Exception as problem:
            self._operator.problem("the approver failed; the answer is no", traceback_text(problem))
            return None

    async def call(self, code: Callable[[Any], Any], asked: Any, seconds: float | None) -> Any:
        """The value of a user's code. Raises DeadlinePassed if it takes longer than `seconds`."""
        from toolcrib.toolbox.foreign import ForeignCall

        return await ForeignCall(self._reply(code, asked), seconds, self.grace)

    def _read(self, question: Question, given: Any) -> Answer | None:
        """What the approver gave, as an answer; listeners are told."""
        answer = parse_answer(given)
        if given is not None and answer is None:
            what = f"the approver gave {shown_value(given)}, which allows nothing"
            self._operator.problem_once("the approver's answers", what, WANTED)
        self.tell_answered(question, answer)
        return answer

    def tell_asked(self, question: Question) -> None:
        """Tell whoever listens that a question waits for an answer."""
        if self._sink:
            self._sink.emit(question.key.run, QuestionAsked(question))

    def tell_answered(self, question: Question, answer: Answer | None) -> None:
        if self._sink:
            event = QuestionAnswered(question.key, "")
            if answer is not None:
                said = (answer.verdict.value, answer.message, answer.by)
                event = QuestionAnswered(question.key, *said, chosen=answer.chosen)
            self._sink.emit(question.key.run, event)

    async def _reply(self, approver: Callable[[Any], Any], asked: Any) -> object:
        """What the approver gives. A sync one may wait for a person, so it runs on a thread and not in the loop."""
        import asyncio
        import inspect

        if is_async(approver):
            reply: object = approver(asked)
        else:
            job = self._workers.submit(approver, (asked,), asyncio.get_running_loop())
            try:
                await job.wait()
            except BaseException:
                job.withdraw()
                job.abandon()
                raise
            reply = job.result()
        return await reply if inspect.isawaitable(reply) else reply


def as_reply(question: Question, answer: Answer) -> Answer | None:
    """The reply to a question for input: options of the question (several only if it allows that), words, or values.

    None for an answer with none of these: an approver that says yes to everything has not replied. Raises
    ValueError, with what is expected, for values that do not fit the form.
    """
    if question.form and answer.allows:
        return _filled_in(question, answer)
    chosen = tuple(dict.fromkeys(option for option in answer.chosen if option in question.options))
    if not question.several:
        chosen = chosen[:1]
    if answer.allows and not chosen and not answer.message.strip():
        return None
    return replace(answer, chosen=chosen)


def _filled_in(question: Question, answer: Answer) -> Answer | None:
    """The reply to a form. Words or a choice are the value of its only field, where there are no values."""
    from toolcrib.forms import form_values

    values: Any = answer.values
    if values is None and len(question.form) == 1 and (said := list(answer.chosen) or answer.message):
        values = {question.form[0].name: said[0] if isinstance(said, list) and len(said) == 1 else said}
    if not isinstance(values, dict):
        return None
    return replace(answer, values=form_values(question.form, values), chosen=())


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
