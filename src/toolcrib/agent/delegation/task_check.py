"""`task_check`: waits for a task in the background, and gives its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.access import OWN
from toolcrib.agent.delegation.background_tasks import BackgroundTask, BackgroundTasks
from toolcrib.effect import Effect
from toolcrib.errors import ErrorCode
from toolcrib.result import ToolResult
from toolcrib.tool import Tool

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

__all__ = ["TaskCheck"]

DEFAULT_WAIT = 60
MAX_WAIT = 600


class TaskCheckParams(BaseModel):
    task_id: str = Field(description="The task, as new_task named it.")
    timeout: int = Field(
        DEFAULT_WAIT, ge=0, le=MAX_WAIT, description="Seconds to wait for its end at most; 0 to look only."
    )


class TaskCheck(
    Tool[TaskCheckParams, ToolResult],
    name="task_check",
    effect=Effect.READ,
    secrets=(),
    title="Task in the background",
    category="delegation",
    timeout=MAX_WAIT + 30.0,
):
    """Wait for a task that runs in the background, and give its result; or say how far it is.

    A result can be read again.
    """

    def accesses(self, params: TaskCheckParams) -> tuple[()]:
        return ()

    def resources(self, params: TaskCheckParams) -> list[str]:
        return [f"{OWN}task/{params.task_id}"]

    async def execute(self, params: TaskCheckParams, ctx: Context[Any]) -> ToolResult:
        task = ctx.of_run(BackgroundTasks).get(params.task_id)
        if await task.in_its_loop(task.ended(params.timeout)):
            return result_of(task)
        return ToolResult.of(f"Task {task.id} is running: {task.progress}.")


def result_of(task: BackgroundTask) -> ToolResult:
    """The result of a task that has ended: an error if it was not finished."""
    task.end_is_known = task.read = True
    return task.as_result(task.text, code=ErrorCode.TOOL_ERROR if task.failed else None)
