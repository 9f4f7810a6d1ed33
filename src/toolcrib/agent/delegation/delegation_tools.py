"""The tools with which a model hands tasks to other agents, made for some agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.agent.delegation.delegates import MAX_DEPTH, Delegate, Delegates
from toolcrib.agent.delegation.new_task import new_task
from toolcrib.agent.delegation.task_cancel import TaskCancel
from toolcrib.agent.delegation.task_check import TaskCheck
from toolcrib.agent.delegation.task_message import TaskMessage
from toolcrib.agent.delegation.task_rows import task_rows
from toolcrib.toolset import AnyTool

__all__ = ["delegation_tools"]


def delegation_tools(
    agents: Mapping[str, Delegate],
    *,
    background: bool = True,
    rows: bool = False,
    max_depth: int = MAX_DEPTH,
) -> list[AnyTool]:
    """The tool `new_task` for these agents, and what goes with it.

    The mapping may change later: the model is shown the agents of the moment, and no tool while there is none. An agent
    that is added later may do no worse than the worst of those that were there.

    Args:
        agents: The agents by the names that the model is shown.
        background: A task may go on in the background: `task_check`, `task_cancel` and `task_message` are there.
        rows: One task can be handed out for many rows: `task_rows` is there.
        max_depth: How many agents below the outermost an agent may stand.

    >>> from toolcrib import Agent
    >>> from toolcrib.models import Scripted
    >>> tools = delegation_tools({"reader": Delegate(Agent(Scripted(["Done."])), "Reads long texts.")})
    >>> " ".join(tool.facts.name for tool in tools)
    'new_task task_check task_cancel task_message'
    """
    delegates = Delegates(agents, max_depth)
    tools: list[Any] = [new_task(delegates, background=background)]
    if background:
        tools += [TaskCheck(), TaskCancel(), TaskMessage()]
    if rows:
        tools.append(task_rows(delegates))
    return tools
