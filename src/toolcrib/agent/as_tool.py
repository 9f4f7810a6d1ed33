"""An agent as a tool of another agent."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, TypedDict

from toolcrib.agent.delegated_run import DelegatedRun, worst_of
from toolcrib.agent.settings import AgentSettings
from toolcrib.agent.unreachable import Unreachable
from toolcrib.context import Context
from toolcrib.dataclass import replace
from toolcrib.facts import MaxOutput
from toolcrib.function import FunctionTool, tool

__all__ = ["AgentToolOptions", "agent_tool"]


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
    given = Unreachable(replace(settings, name=name))

    async def run_agent(task: str, ctx: Context[Any]) -> str:
        """Hand a task to an agent.

        Args:
            task: What is to be done, with all that has to be known for it: nothing else is passed on.
        """
        seconds = options.get("timeout")
        patient = nullcontext() if seconds else ctx._deadline.paused()
        with patient:  # the run counts `seconds` itself: a call that goes on has a new deadline
            return await DelegatedRun(given.value, task, ctx, seconds=seconds or None).text()

    return tool(
        run_agent, name=name, description=description, effect=effect, secrets=(), open_world=open_world,
        delegates=True, **options,
    )  # fmt: skip
