"""`todo_write`: shows the person the plan of the work, and how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from toolcrib.effect import Effect
from toolcrib.tool import Tool
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

MAX_STEPS = 50
MAX_CHARACTERS = 300  # of one step
MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


class TodoStep(BaseModel):
    content: str = Field(
        min_length=1, max_length=MAX_CHARACTERS, description="What is to be done, in one line."
    )
    status: Literal["pending", "in_progress", "completed", "cancelled"] = Field(
        "pending", description="How far it is. A step that failed is not completed."
    )


class TodoWriteParams(BaseModel):
    todos: list[TodoStep] = Field(
        max_length=MAX_STEPS, description="The whole plan, in order: it replaces the one before."
    )


class TodoWrite(
    Tool[TodoWriteParams, str],
    name="todo_write",
    effect=Effect.READ,
    secrets=(),
    title="Plan",
    category="planning",
    idempotent=True,
    open_world=False,
):
    """Show the user the plan of the work and how far it is. Nothing else changes.

    Use it for work of three steps or more: before the first step, and whenever a step begins, ends, is added or is
    dropped. Not for a single step, and not to ask something.
    """

    def accesses(self, params: TodoWriteParams) -> tuple[()]:
        return ()

    def resources(self, params: TodoWriteParams) -> list[str]:
        return ["plan"]  # the last plan of a turn is the one that stays

    def execute(self, params: TodoWriteParams, ctx: Context[Any]) -> str:
        steps = params.todos
        done = sum(step.status == "completed" for step in steps)
        left = [step for step in steps if step.status in ("pending", "in_progress")]
        total = len(left) + done
        now = [on_one_line(step.content) for step in steps if step.status == "in_progress"]
        tip = f"{done} of {total} done" if total else "no steps"
        ctx.report(
            tip=": ".join([tip, *now[:1]]),
            progress=done / total if total else None,
            result={
                "todos": [step.model_dump() for step in steps],
                "output": "\n".join(f"{MARKS[step.status]} {on_one_line(step.content)}" for step in steps),
            },
        )
        if not left:
            return f"The plan is shown: {tip}. Nothing is left to do."
        if not now:
            return f"The plan is shown: {tip}. Next: {on_one_line(left[0].content)}"
        return f"The plan is shown: {tip}. In progress: {'; '.join(now)}"
