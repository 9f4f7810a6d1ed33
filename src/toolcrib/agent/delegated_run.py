"""A run of an agent for a task that the model of another run hands it, and its words for that model."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.agent.outcome import Outcome, Reason
from toolcrib.agent.run import Run
from toolcrib.agent.run_clock import RunClock
from toolcrib.agent.settings import AgentSettings
from toolcrib.dataclass import replace
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.facts import Facts
from toolcrib.toolbox.operator_log import Mask, mask_of
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox
    from toolcrib.toolbox.nested import NestedRun

__all__ = ["CallOfRun", "DelegatedRun", "worst_of"]

NOTHING = "It finished without a word."
# What the outer model is told of a run that did not finish its task.
UNFINISHED = {
    Reason.TURN_LIMIT: "it used up its turns",
    Reason.BUDGET: "its budget is used up",
    Reason.PAUSED: "a tool of it kept failing",
    Reason.CANCELLED: "it was cancelled",
    Reason.MODEL_ERROR: "its model could not be reached, or sent what cannot be read",
    Reason.TOO_LONG: "its conversation grew too long for its model; give it a smaller task",
    Reason.REFUSED: "its model declined, or its answer was cut off",
    Reason.INVALID_OUTPUT: "its answers did not have the form that was asked for",
}
OTHER = "it stopped before it was done"
TOLD = (Reason.TURN_LIMIT, Reason.BUDGET, Reason.PAUSED)  # their `detail` is meant for a model too


class CallOfRun(Protocol):
    """What a run needs of the call that it belongs to; a Context is one."""

    deps: Any

    def nested_run(self, box: Any) -> NestedRun: ...


class DelegatedRun:
    """A run of an agent within a call of another run. `text` gives its words for the model that made the call.

    `seconds` limit its time; the time that a person takes to answer does not count. With a `max_depth`, ToolError is
    raised where the agent would run further than that below the outermost one, or would work on a task that it handed
    out itself, directly or through others.
    """

    def __init__(
        self,
        settings: AgentSettings,
        task: str,
        within: Any,
        *,
        seconds: float | None = None,
        max_depth: int | None = None,
    ) -> None:
        self.run = Run(settings, task, within=within)
        self._clock = None if seconds is None else RunClock(seconds, self.run.cancel, self.run.seconds_before)
        if max_depth is not None and (refusal := self._refusal(settings, max_depth)):
            self.run.box.forget(self.run.id)
            raise ToolError(refusal)

    @property
    def mask(self) -> Mask:
        """Takes the secrets of the agent's own toolbox out of a text. The outer toolbox may not know them."""
        return mask_of(self.run.box.masking)

    def _refusal(self, settings: AgentSettings, max_depth: int) -> str:
        """Why this agent may not have the task here; "" if it may."""
        outer = self.run.account.outer
        above = [] if outer is None else outer.agents
        if len(above) > max_depth:
            return f"Max delegation depth reached ({max_depth}). Do this part of the task yourself."
        if settings.agent in above:
            return (
                f"The agent {settings.name!r} waits for the result of this task already: it would hand its task to "
                "itself. Do this part of the task yourself, or give it to another agent."
            )
        return ""

    async def waits(self) -> bool:
        """Let the run end; returns whether it ended at questions. The tool may go on with others before it is left."""
        clock = self._clock
        with ExitStack() as stack:
            if clock is not None:
                stack.enter_context(clock)
                stack.enter_context(self.run.box.paused_while_asking(self.run.id, clock))
            return (await self.run.ended()).reason is Reason.WAITING

    async def text(self) -> str:
        """The final text of the run. Raises ToolError if it did not finish its task, Suspended where it waits."""
        if self.run.outcome is None:
            await self.waits()
        outcome, clock = await self.run, self._clock
        why = ""
        if clock is not None and clock.over and outcome.reason is Reason.CANCELLED:
            why = f"its time of {counted(clock.seconds, 'second')} is over"
        return result_text(outcome, why, self.mask)


def result_text(outcome: Outcome[Any], why: str, mask: Mask) -> str:
    """The words of a run for the model that began it. Raises ToolError if the run did not finish its task."""
    if outcome.finished:
        return mask(outcome.text) or NOTHING
    if not why:
        told = outcome.detail if outcome.reason in TOLD else ""
        why = told or UNFINISHED.get(outcome.reason, OTHER)
    words = f"The task was not finished: {why}."
    if said := outcome.text or last_words(outcome):
        words += f" Its last words: {said}"
    raise ToolError(mask(words))


def last_words(outcome: Outcome[Any]) -> str:
    """What the model of a run said last, beside its calls."""
    said = (message.text for message in reversed(outcome.messages) if message.role == "assistant")
    return next((text for text in said if text), "")


def worst_of(box: Toolbox[Any]) -> tuple[Effect, bool]:
    """The worst effect of the tools that the toolbox's policy shows, and whether one of them is open to the world.

    Toolsets and factories supply tools later: the worst that the policy would show counts for them.
    """
    shows = box.policy.shows
    known, more = box.registry.given_facts()
    if more:
        known = [*known, *(Facts("", effect, frozenset()) for effect in Effect)]
    # A delegating tool counts by its effect only if the policy would show an ordinary tool of that effect.
    shown = [facts for facts in known if shows(replace(facts, delegates=False))]
    worst = max((facts.effect for facts in shown), default=Effect.READ)
    return worst, any(facts.open_world or facts.server for facts in shown)
