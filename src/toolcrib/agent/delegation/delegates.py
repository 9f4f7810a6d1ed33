"""The agents that a model may hand tasks to, as they are at the moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.agent.agent import Agent
from toolcrib.agent.delegated_run import DelegatedRun, worst_of
from toolcrib.agent.unreachable import Unreachable
from toolcrib.dataclass import dataclass, replace
from toolcrib.effect import Effect
from toolcrib.errors import ToolError

__all__ = ["Delegate", "Delegates"]

MAX_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Delegate:
    """An agent that can be handed tasks, and what it can be asked to do, in words for the model that hands them out."""

    agent: Agent[Any]
    description: str

    def __post_init__(self) -> None:
        if not isinstance(self.agent, Agent):
            raise TypeError(f"a Delegate has an Agent, got {self.agent!r}")
        if not isinstance(self.description, str) or not self.description.strip():
            raise TypeError("a Delegate has a description: say what the agent can be asked to do")


class Delegates:
    """Agents by their names. The mapping may change at any time: a model is shown the agents of the moment.

    An agent is at most `max_depth` agents below the outermost.
    """

    def __init__(self, agents: Mapping[str, Delegate], max_depth: int = MAX_DEPTH) -> None:
        given: Any = agents
        if not isinstance(given, Mapping):
            example = "{'keeper': Delegate(agent, description)}"
            raise TypeError(f"agents must map names to Delegates, as in {example}; got {given!r}")
        for name, delegate in agents.items():
            if not isinstance(name, str) or not name:
                raise TypeError(f"the name of an agent must be a non-empty text, got {name!r}")
            if not isinstance(delegate, Delegate):
                raise TypeError(
                    f"agent {name!r}: expected Delegate(agent, 'what it can be asked to do'), got {delegate!r}"
                )
        if not isinstance(max_depth, int) or max_depth < 1:
            raise TypeError(f"max_depth must be a whole number from 1, got {max_depth!r}")
        self._agents = Unreachable(agents)
        self._max_depth = max_depth

    @property
    def names(self) -> list[str]:
        return sorted(self._agents.value)

    def worst(self) -> tuple[Effect, bool]:
        """The worst effect of an agent, and whether one is open to the world. Agents added later may do no more."""
        each = [worst_of(delegate.agent.toolbox) for delegate in self._agents.value.values()]
        if not each:
            return Effect.DESTRUCTIVE, True
        return max(effect for effect, _ in each), any(open_world for _, open_world in each)

    def effect_of(self, name: str, most: Effect) -> Effect:
        """The worst that the agent of this name may do; `most` where there is none."""
        delegate = self._agents.value.get(name)
        return most if delegate is None else min(most, worst_of(delegate.agent.toolbox)[0])

    def begin(self, name: str, task: str, within: Any, seconds: float) -> DelegatedRun:
        """The run of an agent for a task. Raises ToolError where there is none, or it may not have the task."""
        delegate = self._agents.value.get(name)
        if delegate is None:
            raise ToolError(f"There is no agent {name!r}. Available: {', '.join(self.names) or 'none'}.")
        settings = replace(delegate.agent._settings_for(None), name=name)
        return DelegatedRun(settings, task, within, seconds=seconds, max_depth=self._max_depth)

    # -- what a model is told

    def unavailable(self) -> str | None:
        return None if self._agents.value else "there is no agent at the moment"

    def described(self, words: str) -> str:
        """The description of a tool, with the agents of the moment."""
        agents = self._agents.value
        listed = "\n".join(f"- {name}: {agents[name].description.strip()}" for name in self.names)
        return f"{words}\n\nAgents:\n{listed}"

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of a tool, whose parameter `agent` takes the names of the agents of the moment."""
        names = self.names
        agent = schema["properties"]["agent"]
        agent["enum"] = names
        agent["description"] = f"Which agent to delegate to. Available: {', '.join(names)}"
        return schema
