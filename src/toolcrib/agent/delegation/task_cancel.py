"""`task_cancel`: stops a task in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import OWN
from toolcrib.agent.delegation.background_tasks import BackgroundTasks
from toolcrib.effect import Effect
from toolcrib.result import ToolResult
from toolcrib.tool import Tool

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

__all__ = ["TaskCancel"]


class TaskCancelParams(BaseModel):
    task_id: str = Field(description="The task, as new_task named it.")


class TaskCancel(
    Tool[TaskCancelParams, ToolResult],
    name="task_cancel",
    effect=Effect.READ,
    secrets=(),
    title="End a task",
    category="delegation",
    idempotent=True,
):
    """Stop a task that runs in the background. What its agent has done stays done."""

    def accesses(self, params: TaskCancelParams) -> tuple[()]:
        return ()

    def resources(self, params: TaskCancelParams) -> list[str]:
        return [f"{OWN}task/{params.task_id}"]

    async def execute(self, params: TaskCancelParams, ctx: Context[Any]) -> ToolResult:
        task = ctx.of_run(BackgroundTasks).get(params.task_id)
        was_running = task.running
        await task.in_its_loop(task.cancel())
        task.end_is_known = task.read = True
        return task.as_result(
            f"Task {task.id} {'was stopped' if was_running else 'had ended before'}. {task.text}"
        )
