"""attempt_completion in the shape of a typed answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.agent.completion import COMPLETION
from toolcrib.agent.output_functions import WrongAnswer
from toolcrib.agent.output_items import ItemsSoFar
from toolcrib.call import CallKey
from toolcrib.result import ToolResult

if TYPE_CHECKING:
    from toolcrib.agent.output_shape import OutputShape, Source
    from toolcrib.compiling.definition import Definition
    from toolcrib.context import Context

__all__ = ["CompletionTool", "json_text"]

NO_ITEMS = ItemsSoFar()


class CompletionTool:
    """attempt_completion for the runs of one OutputShape. It keeps the output of each call until the run takes it."""

    aclose = None

    def __init__(self, shape: OutputShape) -> None:
        self.shape = shape
        self.facts = shape.definition.facts
        self.outputs: dict[CallKey, Any] = {}
        self._items: dict[str, ItemsSoFar] = {}
        self._sources: dict[str, Source] = {}
        self._answering: set[str] = set()  # runs whose answer a function of the user was called with

    def begin(self, run: str, source: Source) -> None:
        """Called when a run begins. `source` gives all texts that it has read so far, to check quotes against."""
        self._sources[run] = source

    def source_of(self, run: str) -> Source:
        """The function that gives the texts that a run has read."""
        return self._sources.get(run, str)

    def items_of(self, run: str) -> ItemsSoFar:
        """The items of a run so far."""
        return self._items.setdefault(run, ItemsSoFar())

    def forget(self, run: str) -> ItemsSoFar:
        """The run is over: drop what was kept for it."""
        for key in [key for key in self.outputs if key.run == run]:
            del self.outputs[key]
        self._sources.pop(run, None)
        self._answering.discard(run)
        return self._items.pop(run, None) or ItemsSoFar()

    def definition(self) -> Definition:
        """The compiled tool."""
        return self.shape.definition

    async def execute(self, params: Any, ctx: Context[Any]) -> ToolResult:
        """Call the user's functions with the answer. Raises ToolError with words for the model where they refuse it."""
        run = ctx.key.run
        if run in self._answering:
            raise WrongAnswer(f"The answer was given already: {COMPLETION} is called once.")
        if self.shape.needs_call:  # no function of the user's runs twice for one answer
            self._answering.add(run)
        try:
            value = await self.shape.finished(params, ctx, self.items_of(run), self.source_of(run))
        except BaseException:
            self._answering.discard(run)
            raise
        self.outputs[ctx.key] = value
        return _result(value)

    def execute_inline(self, params: Any, ctx: Context[Any]) -> ToolResult:
        """Take the answer as it is."""
        shape = self.shape
        items = self.items_of(ctx.key.run) if shape.output.itemwise else NO_ITEMS
        value = self.outputs[ctx.key] = shape.accepted(params, items, self.source_of(ctx.key.run))
        return _result(value)


def json_text(value: Any) -> str:
    """A value as JSON text, for transcripts and outer models."""
    from pydantic_core import to_json

    return to_json(value, inf_nan_mode="constants", serialize_unknown=True).decode()


def _result(value: Any) -> ToolResult:
    return ToolResult.of(json_text(value))
