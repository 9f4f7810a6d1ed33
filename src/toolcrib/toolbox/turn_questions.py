"""The questions of one turn: one after the other, or those that wait at the same time together.

An approver that has a method `ask_all` is given all questions that wait at the same time, and gives an answer to each.
Any other approver is asked one by one. Each answer stays bound to its own question either way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from toolcrib.call import CallKey
from toolcrib.question import Answer, Question, Verdict
from toolcrib.toolbox.approver import Approving

__all__ = ["TurnQuestions"]


class WaitingQuestion(NamedTuple):
    """A question that waits for its answer; `covered` says whether an earlier "always" answers it by now."""

    question: Question
    covered: Callable[[], bool]
    answer: asyncio.Future[Answer | None]


class TurnQuestions:
    """Puts the questions of a turn's calls to the approver."""

    def __init__(self, approving: Approving) -> None:
        self._approving = approving
        self._asking = asyncio.Lock()
        self._waiting: list[WaitingQuestion] = []
        self._expected: set[CallKey] = set()
        self._all_here = asyncio.Event()

    def expect(self, key: CallKey) -> None:
        """A call begins that will probably ask at once: others wait for its question, so that it is put with theirs."""
        self._expected.add(key)
        self._all_here.clear()

    def no_longer_expect(self, key: CallKey) -> None:
        """A call asks now, or will not ask."""
        self._expected.discard(key)
        if not self._expected:
            self._all_here.set()

    async def ask(self, question: Question, covered: Callable[[], bool]) -> Answer | None:
        """The approver's answer; a yes where an "always" covers the call that came while this question waited."""
        mine = WaitingQuestion(question, covered, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self.no_longer_expect(question.key)
        try:
            async with self._asking:
                if not mine.answer.done():
                    await self._put(mine)
            return mine.answer.result()
        finally:
            self._waiting = [other for other in self._waiting if other is not mine]

    async def _put(self, mine: WaitingQuestion) -> None:
        """Put a question to the approver, and with it all that wait now if the approver takes several."""
        together = [mine]
        if self._approving.takes_several:
            await self._all_here.wait()
            waiting = [one for one in self._waiting if not one.answer.done()]
            together = sorted(waiting, key=lambda one: one.question.key.index)
        to_ask = []
        for one in together:
            if one.covered():
                one.answer.set_result(Answer(Verdict.YES, by="always"))
            else:
                to_ask.append(one)
        answers = await self._approving.ask_all([one.question for one in to_ask]) if to_ask else []
        for one, answer in zip(to_ask, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)
