"""`new_task`: hands a task to another agent, and waits for its result or goes on meanwhile."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from toolcrib.agent.delegation.background_tasks import BackgroundTasks, CallThatEnds
from toolcrib.agent.delegation.delegates import Delegates
from toolcrib.context import Context
from toolcrib.effect import Effect
from toolcrib.function import FunctionTool, tool

__all__ = ["new_task"]

DEFAULT_TIMEOUT = 120
MAX_TIMEOUT = 600
MAX_TASK = 100_000  # characters
WORDS = """Hand a task to another agent, which works on it by itself with its own tools and gives back its result.

Use it for a part of the work that stands on its own: a search, a review, a change in another place. Do small steps
yourself. The agent sees nothing of this conversation."""
AT_ONCE = "[Done at once: this run may end to wait for a person's answer, and leaves nothing running then.]\n"


def new_task(delegates: Delegates, *, background: bool) -> FunctionTool[..., Any]:
    """The tool for these agents; with `background`, a task may go on after its call."""
    worst, open_world = delegates.worst()

    async def new_task(
        agent: Annotated[str, Field(min_length=1)],
        task: Annotated[str, Field(min_length=1, max_length=MAX_TASK)],
        ctx: Context[Any],
        timeout: Annotated[int, Field(ge=1, le=MAX_TIMEOUT)] = DEFAULT_TIMEOUT,
        background: bool = False,
    ) -> str:
        """Hand a task to another agent.

        Args:
            agent: Which agent to delegate to.
            task: What is to be done, with all that has to be known for it: nothing else is passed on.
            timeout: Seconds that the agent has. The time in which a person is asked does not count.
            background: Go on at once with a task_id, by which task_check, task_cancel and task_message know the task.
        """
        if background and not ctx._connected().suspends(ctx):
            tasks = ctx.of_run(BackgroundTasks)
            tasks.check_room()
            work = delegates.begin(agent, task, CallThatEnds(ctx), timeout)
            id = tasks.start(agent, work)
            return (
                f"The agent {agent} works on the task in the background: task_id {id}. You will be told when it has "
                f"ended; task_check(task_id={id!r}) waits for its result."
            )
        work = delegates.begin(agent, task, ctx, timeout)
        with ctx._deadline.paused():
            text = await work.text()
        return f"{AT_ONCE}{text}" if background else text

    def narrowed(schema: dict[str, Any], ctx: Context[Any]) -> dict[str, Any]:
        if not background:
            del schema["properties"]["background"]
        return delegates.narrowed(schema)

    def effect_for(params: dict[str, Any]) -> Effect:
        return delegates.effect_of(params["agent"], worst)

    return tool(
        new_task, effect=worst, secrets=(), open_world=open_world, delegates=True, title="Task", category="delegation",
        description=WORDS, approval_ignores=("timeout",), unavailable=delegates.unavailable, effect_for=effect_for,
        dynamic_description=lambda ctx: delegates.described(WORDS), dynamic_schema=narrowed,
    )  # fmt: skip
