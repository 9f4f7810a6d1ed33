"""`task_message`: tells the agent of a task in the background something more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import OWN
from toolcrib.agent.delegation.background_tasks import BackgroundTasks
from toolcrib.effect import Effect
from toolcrib.tool import Tool

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

__all__ = ["TaskMessage"]

MAX_MESSAGE = 20_000  # characters


class TaskMessageParams(BaseModel):
    task_id: str = Field(description="The task, as new_task named it.")
    message: str = Field(
        min_length=1, max_length=MAX_MESSAGE, description="What its agent should know, or do otherwise."
    )


class TaskMessage(
    Tool[TaskMessageParams, str],
    name="task_message",
    effect=Effect.READ,
    secrets=(),
    title="Message to a task",
    category="delegation",
):
    """Tell the agent of a task in the background something more. It reads that before its next step."""

    def accesses(self, params: TaskMessageParams) -> tuple[()]:
        return ()

    def resources(self, params: TaskMessageParams) -> list[str]:
        return [f"{OWN}task/{params.task_id}"]

    async def execute(self, params: TaskMessageParams, ctx: Context[Any]) -> str:
        task = ctx.of_run(BackgroundTasks).get(params.task_id)
        task.send(params.message)
        return f"The agent of task {task.id} reads it before its next step."
