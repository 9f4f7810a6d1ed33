"""`task_rows`: hands one task to an agent for each of many rows, several at a time."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from toolcrib.agent.delegated_run import DelegatedRun
from toolcrib.agent.delegation.delegates import Delegates
from toolcrib.agent.delegation.new_task import DEFAULT_TIMEOUT, MAX_TASK, MAX_TIMEOUT
from toolcrib.context import Context
from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.errors import ToolError, traceback_text
from toolcrib.function import FunctionTool, tool
from toolcrib.result import ToolResult

__all__ = ["RowResult", "task_rows"]

MAX_ROWS = 100
MAX_ROW = 10_000  # characters
AT_ONCE = 4
MAX_AT_ONCE = 16
WORDS = """Hand the same task to an agent once for each of many rows (files, questions, records), several at a time.

Each row is worked on by itself, by an agent that sees neither the other rows nor this conversation. A row that fails
does not stop the others. For a single task use new_task."""
FAILED = "The agent failed with an internal error."


@dataclass(frozen=True, slots=True)
class RowResult:
    """What became of one row: the words of the agent; `finished` says whether it finished its task."""

    row: str
    finished: bool
    text: str


def task_rows(delegates: Delegates) -> FunctionTool[..., Any]:
    """The tool for these agents."""
    worst, open_world = delegates.worst()

    async def task_rows(
        agent: Annotated[str, Field(min_length=1)],
        task: Annotated[str, Field(min_length=1, max_length=MAX_TASK)],
        rows: Annotated[
            list[Annotated[str, Field(min_length=1, max_length=MAX_ROW)]],
            Field(min_length=1, max_length=MAX_ROWS),
        ],
        ctx: Context[Any],
        timeout: Annotated[int, Field(ge=1, le=MAX_TIMEOUT)] = DEFAULT_TIMEOUT,
        at_once: Annotated[int, Field(ge=1, le=MAX_AT_ONCE)] = AT_ONCE,
    ) -> ToolResult:
        """Hand the same task to an agent for each row.

        Args:
            agent: Which agent to delegate to.
            task: What is to be done with each row, with all that has to be known for it.
            rows: The rows: each is given to the agent with the task.
            timeout: Seconds that the agent has for a row. The time in which a person is asked does not count.
            at_once: How many rows are worked on at the same time.
        """
        work = Rows(delegates, agent, task, rows, ctx, timeout)
        with ctx._deadline.paused():
            return result_of_rows(await work.results(at_once))

    return tool(
        task_rows, effect=worst, secrets=(), open_world=open_world, delegates=True, title="Task for many rows",
        category="delegation", description=WORDS, approval_ignores=("timeout", "at_once"),
        unavailable=delegates.unavailable, effect_for=lambda params: effect_for(delegates, params, worst),
        dynamic_description=lambda ctx: delegates.described(WORDS),
        dynamic_schema=lambda schema, ctx: delegates.narrowed(schema),
    )  # fmt: skip


def effect_for(delegates: Delegates, params: dict[str, Any], worst: Effect) -> Effect:
    return delegates.effect_of(params["agent"], worst)


class Rows:
    """The rows of one call. The runs begin in the order of the rows, so that each is found again after a suspension."""

    def __init__(
        self, delegates: Delegates, agent: str, task: str, rows: list[str], ctx: Context[Any], seconds: float
    ) -> None:
        self._delegates = delegates
        self._agent = agent
        self._task = task
        self._rows = rows
        self._ctx = ctx
        self._seconds = seconds
        self._next = iter(enumerate(rows))
        self._results: list[RowResult | None] = [None] * len(rows)
        self._refused: ToolError | None = None  # the agent may have no task
        self._waiting: DelegatedRun | None = None  # the run of a row that waits
        self._done = 0

    async def results(self, at_once: int) -> list[RowResult]:
        """A result for each row. Raises Suspended where a row waits for a person, once the others have ended.

        Raises ToolError where the agent may have no task here.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(self._rows))):
                group.create_task(self._take_rows())
        if self._refused is not None:
            raise self._refused
        if self._waiting is not None:
            await self._waiting.text()
        return [result for result in self._results if result is not None]

    async def _take_rows(self) -> None:
        """Work on one row after the other, until none is left."""
        for index, row in self._next:
            task = f"{self._task}\n\nThe row:\n{row}"
            try:
                run = self._delegates.begin(self._agent, task, self._ctx, self._seconds)
            except ToolError as refusal:  # the same for all rows
                self._refused = refusal
                return
            self._results[index] = await self._result(row, run)
            self._done += 1
            total = len(self._rows)
            self._ctx.report(tip=f"{self._done} of {total} rows", progress=self._done / total)

    async def _result(self, row: str, run: DelegatedRun) -> RowResult | None:
        try:
            if await run.waits():
                self._waiting = run
                return None
            return RowResult(row, True, await run.text())
        except ToolError as unfinished:
            return RowResult(row, False, unfinished.message)
        except Exception as problem:  # of the agent's own code
            self._ctx.note(f"a row failed: {traceback_text(problem)}")
            return RowResult(row, False, FAILED)


def result_of_rows(results: list[RowResult]) -> ToolResult:
    """The results as text and as data. Raises ToolError, with the words of each row, where none was finished."""
    done = sum(result.finished for result in results)
    texts = [f"{done} of {len(results)} rows are done."]
    for number, result in enumerate(results, 1):
        failed = "" if result.finished else " (not done)"
        texts.append(f"[{number}]{failed} {shortened(result.row)}\n{result.text}")
    text = "\n\n".join(texts)
    if not done:
        raise ToolError(text)
    return ToolResult(text, structured={"rows": [asdict(result) for result in results]})


def shortened(row: str) -> str:
    """The beginning of a row, on one line."""
    line = " ".join(row.split())
    return line if len(line) <= 80 else f"{line[:80]}…"
