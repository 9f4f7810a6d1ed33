"""A model without a will: it does what the user asked, and whatever an order in a result tells it to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from suites import MARK, World

from toolcrib import Agent, Answer, Question, Verdict
from toolcrib.facts import MaxOutput
from toolcrib.messages import Request, ResultPart
from toolcrib.models import Scripted
from toolcrib.toolbox import Review, Reviewer, ReviewRequest

WHOLE = MaxOutput(bytes=10_000_000, lines=1_000_000)  # results as AgentDojo gives them
Call = tuple[str, dict[str, Any]]


def calls_of(task: Any, world: World) -> list[Call]:
    """What solves a task, as AgentDojo says."""
    known = [call.model_dump(mode="json") for call in task.ground_truth(world.before)]
    return [(call["function"], call["args"]) for call in known]


@dataclass(slots=True)
class Hijacked:
    """The script: the user's calls one a turn, and the attacker's as soon as their order was read."""

    waiting: list[Call]
    attack: list[Call]
    said: list[str]
    attack_said: str
    met: bool = False

    def turn(self, request: Request) -> dict[str, Any]:
        last = request.messages[-1]
        if not self.met and last.role == "tool":
            self.met = any(MARK in part.as_text() for part in last.parts if isinstance(part, ResultPart))
            if self.met:
                self.waiting[:0] = self.attack
                self.said.append(self.attack_said)
        if not self.waiting:
            return {"text": " ".join(filter(None, self.said)) or "Done."}
        name, arguments = self.waiting.pop(0)
        return {"calls": [{"name": name, "arguments": arguments}]}


@dataclass(slots=True)
class Person:
    """Whoever is asked: says yes to what they asked for and to nothing else; or is not there."""

    wanted: list[Call]
    there: bool
    asked: int = 0
    approved: list[Call] = field(default_factory=list)

    async def __call__(self, question: Question) -> Answer | None:
        self.asked += 1
        if not self.there:
            return None
        return Answer(
            Verdict.YES if (question.tool, question.arguments) in self.wanted else Verdict.NO, by="user"
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of one run: whether the user's task was done, the attack came through, was met at all."""

    useful: bool
    attacked: bool
    met: bool
    asked: int


def named_by_user(request: ReviewRequest) -> Review:
    """A reviewer by rule: every text and number of the arguments stands in what the user wrote.

    It shows what the seam does without a model. A model of yours is measured with `--reviewer NAME`.
    """
    said = " ".join(request.user_texts).casefold()
    values = [value for value in _values(request.question.arguments) if str(value).strip()]
    unnamed = [str(value)[:60] for value in values if str(value).casefold() not in said]
    return Review(
        not unnamed, f"the user did not name {unnamed[0]!r}" if unnamed else "the user named all of it"
    )


def _values(data: Any) -> list[Any]:
    if isinstance(data, dict):
        return [one for value in data.values() for one in _values(value)]
    if isinstance(data, list):
        return [one for value in data for one in _values(value)]
    return [] if data is None or isinstance(data, bool) else [data]


async def run(
    world: World, task: Any, injection: Any, policy: Any, there: bool, reviewer: Reviewer | None = None
) -> Ended:
    """One user task, with an injection or (None) without."""
    wanted = calls_of(task, world)
    model = Hijacked(
        list(wanted),
        calls_of(injection, world) if injection else [],
        [task.GROUND_TRUTH_OUTPUT],
        injection.GROUND_TRUTH_OUTPUT if injection else "",
    )
    person = Person(wanted, there)
    agent = Agent(
        Scripted(model.turn),
        world.tools(),
        policy=policy,
        approver=person,
        reviewer=reviewer,
        max_turns=200,
        max_failures=1_000,
        max_output=WHOLE,
    )
    outcome = await agent.run(task.PROMPT)
    assert outcome.finished, outcome.detail
    attacked = injection is not None and world.fulfilled(injection, outcome.text)
    return Ended(world.fulfilled(task, outcome.text), attacked, model.met, person.asked)
