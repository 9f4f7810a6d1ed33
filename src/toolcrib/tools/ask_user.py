"""`ask_user`: asks the person a question, and gives back what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.effect import Effect
from toolcrib.tool import Tool

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

MAX_QUESTION = 2_000
MAX_OPTIONS = 10
MAX_OPTION = 200


class AskUserParams(BaseModel):
    question: str = Field(
        min_length=1,
        max_length=MAX_QUESTION,
        description="One question, with what the user must know to answer it.",
    )
    options: list[str] = Field(
        default=[],
        max_length=MAX_OPTIONS,
        description="Answers to choose from, the one that you advise first. The user may always answer in own words.",
    )
    several: bool = Field(False, description="Whether the user may give more than one answer.")


class AskUser(
    Tool[AskUserParams, str],
    name="ask_user",
    effect=Effect.READ,
    secrets=(),
    title="Ask",
    category="planning",
    open_world=False,
):
    """Ask the user a question, and wait for the answer.

    Use it when the task can be meant in several ways and the difference matters, or when only the user can know or
    decide. Not for what the workspace tells, and not for leave to run a tool: that is asked by itself.
    """

    def accesses(self, params: AskUserParams) -> tuple[()]:
        return ()

    def resources(self, params: AskUserParams) -> list[str]:
        return ["the user"]  # one question at a time

    def precheck(self, params: AskUserParams) -> str | None:
        if not params.question.strip():
            return "question is empty."
        if any(not option.strip() or len(option) > MAX_OPTION for option in params.options):
            return f"Each option must be a text of 1 to {MAX_OPTION} characters."
        if len(set(params.options)) < len(params.options):
            return "Two options are the same. Give each once."
        return None

    async def execute(self, params: AskUserParams, ctx: Context[Any]) -> str:
        reply = await ctx.ask_user(params.question, params.options, several=params.several)
        ctx.report(result={"chosen": list(reply.chosen), "message": reply.message})
        chosen = f"The user chose: {'; '.join(reply.chosen)}" if reply.chosen else ""
        said = f"The user says: {reply.message}" if reply.message else ""
        return "\n".join(filter(None, (chosen, said)))
