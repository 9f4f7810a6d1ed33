"""An agent as a tool of another agent."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict
from weakref import WeakKeyDictionary

from toolcrib.agent.outcome import Outcome, Reason
from toolcrib.agent.run import Run
from toolcrib.agent.settings import AgentSettings
from toolcrib.context import Context
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.facts import Facts, MaxOutput
from toolcrib.function import FunctionTool, tool

if TYPE_CHECKING:
    from toolcrib.models.model import Model
    from toolcrib.toolbox import Toolbox

__all__ = ["AgentToolOptions", "agent_tool"]

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
}
OTHER = "it stopped before it was done"
TOLD = (Reason.TURN_LIMIT, Reason.BUDGET, Reason.PAUSED)  # whose detail is meant for a model too


class ModelPlace:
    """Stands for the model of an agent in the agent's tool.

    A Context leads to all tools, by references, and a model leads to its key: so no tool leads to a model.
    """

    __slots__ = ("__weakref__",)


MODELS: WeakKeyDictionary[ModelPlace, Model] = WeakKeyDictionary()


class AgentToolOptions(TypedDict, total=False):
    """The facts of a tool that an author may give for an agent; `Facts` says what they mean."""

    title: str
    timeout: float | None
    max_output: MaxOutput | int | None


def agent_tool(
    settings: AgentSettings, name: str, description: str, options: AgentToolOptions
) -> FunctionTool[..., Any]:
    """A tool whose call is a run of an agent with these settings. `Agent.as_tool` says what holds for it."""
    if not isinstance(description, str) or not description.strip():
        raise TypeError(f"tool {name!r}: say in description what the agent can be asked to do")
    effect, open_world = worst_of(settings.toolbox)
    place, model = ModelPlace(), settings.model
    MODELS[place] = model
    without_model: Any = None
    settings = replace(settings, name=name, model=without_model)

    async def run_agent(task: str, ctx: Context[Any]) -> str:
        """Hand a task to an agent.

        Args:
            task: What is to be done, with all that has to be known for it: nothing else is passed on.
        """
        patient = nullcontext() if options.get("timeout") else ctx._deadline.paused()
        with patient:
            run = Run(replace(settings, model=MODELS[place]), task, within=ctx)
            outcome = await run
        masking = run.box.masking
        if masking is not None:  # the secrets of its toolbox are not known to the outer one
            outcome = replace(outcome, text=masking.mask(outcome.text), detail=masking.mask(outcome.detail))
        return result_text(outcome)

    return tool(
        run_agent, name=name, description=description, effect=effect, secrets=(), open_world=open_world,
        delegates=True, **options,
    )  # fmt: skip


def result_text(outcome: Outcome) -> str:
    """The words of a run for the model that began it. Raises ToolError if the run did not finish its task."""
    if outcome.finished:
        return outcome.text or NOTHING
    why = (
        outcome.detail if outcome.reason in TOLD and outcome.detail else UNFINISHED.get(outcome.reason, OTHER)
    )
    words = f"The task was not finished: {why}."
    if outcome.text:
        words += f" Its last words: {outcome.text}"
    raise ToolError(words)


def worst_of(box: Toolbox[Any]) -> tuple[Effect, bool]:
    """The worst effect of the tools that the toolbox's policy shows, and whether one of them is open to the world.

    Toolsets and factories supply tools later: the worst that the policy would show counts for them.
    """
    shows = box.policy.shows
    known, more = box.registry.given_facts()
    if more:
        known = [*known, *(Facts("", effect, frozenset()) for effect in Effect)]
    shown = [facts for facts in known if shows(facts)]
    worst = max((facts.effect for facts in shown), default=Effect.READ)
    return worst, any(facts.open_world or facts.server for facts in shown)
