"""Reads answers for one OutputType, from calls of attempt_completion and from texts.

The arguments of the call, and the text of an answer, are one JSON object. A type that is an object is that object;
any other stands in its field `result`; of several alternatives, `result` says which one it is and has its value.
"""

from __future__ import annotations

import collections.abc
import copy
import sys
import typing
from collections.abc import Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.agent.completion import COMPLETION
from toolcrib.agent.output_definition import WRAP, CompiledOutput
from toolcrib.agent.output_functions import WrongAnswer, called, validator_of
from toolcrib.agent.output_items import ItemParams, ItemsSoFar, OutputItem
from toolcrib.errors import ToolDefinitionError, ToolError

if TYPE_CHECKING:
    from toolcrib.context import Context

__all__ = ["OutputShape", "Source"]

QUOTES = "toolcrib.agent.quotes"  # a program that has no Quote has not loaded it
LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable)
MAX_WORDS = 1_000  # characters of what a validator says


Source = Callable[[], str]


class OutputWish(Protocol):
    """What an OutputType says."""

    types: tuple[Any, ...]
    validators: tuple[Callable[..., Any], ...]
    description: str
    retries: int
    retry_tokens: int | None
    rung: Any
    itemwise: bool


class OutputShape:
    """What the answers of a run have to be: `schema`, the object's JSON Schema, and `definition`, the tool's."""

    def __init__(self, output: OutputWish) -> None:
        self.output = output
        self._item: OutputShape | None = None
        self.ladders: dict[tuple[str, bool], Any] = {}  # the ways to ask for it, by server
        self._has_quotes = QUOTES in sys.modules and _mentions_quotes(output.types)
        self._validators = tuple(validator_of(fn) for fn in output.validators)
        try:
            self._compiled = CompiledOutput(
                output.types, output.description, validated=bool(self._validators)
            )
            self.definition = self._compiled.definition
            if output.itemwise:
                self.item_shape()
                self.definition.params = ItemParams(self.definition.params, WRAP)
        except ToolDefinitionError as problem:
            words = str(problem).partition(f"tool {COMPLETION!r}: ")[2] or str(problem)
            words = words.removeprefix(f"parameter {WRAP!r}: ")
            raise ToolDefinitionError(f"{output!r} cannot be the output of a run: {words}") from problem
        self.schema: dict[str, Any] = self.definition.params.schema

    @property
    def prefix(self) -> tuple[str, ...]:
        """Where the value stands in the object that the model writes."""
        return (WRAP, "value") if self._compiled.tagged else (WRAP,) if self._compiled.wrapped else ()

    def item_shape(self) -> OutputShape:
        """The shape of the items of a list. TypeError for an output that is no list of one type."""
        types: Any = self.output.types
        arguments = typing.get_args(types[0])
        if len(types) > 1 or typing.get_origin(types[0]) not in LISTS or len(set(arguments) - {...}) != 1:
            itemwise = ", and only a list can be itemwise" if self.output.itemwise else ""
            raise TypeError(
                f"only a list has items, as in output=list[Invoice]{itemwise}; the output is {self.output!r}"
            )
        if self._item is None:
            self._item = OutputShape(_of_items(self.output, arguments[0]))
        return self._item

    def read_item(self, index: int, attempt: int, raw: Any) -> Any:
        """One item of a list, validated by itself."""
        try:
            value = self.read_value(raw)
        except WrongAnswer as wrong:
            return OutputItem(index, attempt, raw, wrong.message)
        return OutputItem(index, attempt, raw, _value=value)

    def read_value(self, raw: Any) -> Any:
        """The value of JSON data. Raises WrongAnswer where it does not fit."""
        from toolcrib.toolbox.decode import decode

        decoded = decode("", {WRAP: raw} if self._compiled.wrapped else raw, self.definition, None)
        if not isinstance(decoded, tuple):
            raise WrongAnswer(decoded.text)
        return self.checked(decoded[0])

    @property
    def constraints(self) -> tuple[Any, ...]:
        """The constraints that a server can be asked to enforce on an answer's text, the best first."""
        from toolcrib.guided import JsonSchema

        described = JsonSchema(self.schema, description=self.output.description)
        text = None if self._compiled.tagged else self._compiled.text
        return (described,) if text is None else (text, described)

    @property
    def is_grammar(self) -> bool:
        """Whether no JSON Schema expresses the answer's form: a server that enforces the schema then promises less."""
        return type(self._compiled.text).__name__ == "Grammar"

    @property
    def needs_call(self) -> bool:
        """Whether it can only be answered by a call: where functions of the user need a call to run in."""
        return bool(self._compiled.functions) or any(
            validator.wants_context for validator in self._validators
        )

    def read_text(self, text: str, items: ItemsSoFar, source: Source = str) -> Any:
        """The value of an answer that is text. Raises WrongAnswer, with words for the model, where it does not fit."""
        from toolcrib.toolbox.decode import decode

        decoded = decode("", text, self.definition, None)
        if not isinstance(decoded, tuple):
            for other in self._other_readings(text):
                again = decode("", other, self.definition, None)
                if isinstance(again, tuple):
                    return self.accepted(again[0], items, source)
            raise WrongAnswer(decoded.text)
        return self.accepted(decoded[0], items, source)

    def _other_readings(self, text: str) -> list[dict[str, Any]]:
        """Other forms in which models write an answer: the value of `result` alone, the bare text of a choice."""
        if not self._compiled.wrapped or self._compiled.tagged:
            return []
        from toolcrib.json_text.lenient_grammar import Unreadable
        from toolcrib.json_text.lenient_reader import read_json

        readings: list[Any] = []
        try:
            readings.append(read_json(text).value)
        except Unreadable:
            pass
        if self._compiled.text is not None:
            readings.append(text.strip())
        return [{WRAP: value} for value in readings]

    def value_of(self, params: Any) -> tuple[str, Any]:
        """The alternative that was given ("" if there is only one), and its value."""
        value = params[WRAP] if self._compiled.wrapped else params
        if self._compiled.tagged:
            return value["kind"], value["value"]
        return next(iter(self._compiled.functions), ""), value

    def checked(self, params: Any) -> Any:
        """The value of params, without calling validators. Raises WrongAnswer for a text that does not match."""
        value = self.value_of(params)[1]
        if self._compiled.text is not None and not self._compiled.tagged:
            from toolcrib.guided.checking import check
            from toolcrib.toolbox.model_messages import invalid_arguments

            if wrong := check(self._compiled.text, value):
                raise WrongAnswer(invalid_arguments("", wrong).text)
        return value

    def accepted(self, params: Any, items: ItemsSoFar, source: Source = str) -> Any:
        """The value of params. Raises WrongAnswer where items of a list do not fit, while they may be sent back."""
        if not self.output.itemwise:
            value = self.checked(params)
            self._check_quotes(value, source)
            return value
        items.take(self.value_of(params)[1], self.item_shape().read_item)
        if items.problems and items.answers <= self.output.retries:
            raise WrongAnswer(items.words())
        self._check_quotes(items.values, source)
        return items.values

    def _check_quotes(self, value: Any, source: Source) -> None:
        """Raises WrongAnswer where a Quote does not stand in what the run was given."""
        if self._has_quotes:
            from toolcrib.agent.quotes import unfound_quotes
            from toolcrib.toolbox.model_messages import invalid_arguments

            if wrong := unfound_quotes(value, source()):
                raise WrongAnswer(invalid_arguments("", wrong).text)

    async def finished(
        self, params: Any, ctx: Context[Any] | None, items: ItemsSoFar, source: Source = str
    ) -> Any:
        """The output: the value, or what the output function returns for it, after the validators."""
        name, value = self.value_of(params)[0], self.accepted(params, items, source)
        function = self._compiled.functions.get(name)
        if function is not None:
            value = await called(function, value, ctx)
        return await self.validated(value, ctx)

    async def validated(self, value: Any, ctx: Context[Any] | None) -> Any:
        """The value as the validators leave it. WrongAnswer where one of them refuses it."""
        for validator in self._validators:
            try:
                given = validator.call(value, None, ctx)
                if isawaitable(given):
                    given = await given
            except ToolError as refusal:
                raise WrongAnswer(refusal.message) from refusal
            except (ValueError, AssertionError) as problem:
                raise WrongAnswer(f"The answer was refused: {self._words(problem)}") from problem
            value = value if given is None else given
        return value

    def _words(self, problem: ValueError | AssertionError) -> str:
        from pydantic_core import ValidationError

        if isinstance(problem, ValidationError):  # its own text has names of Python
            errors = (f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in problem.errors())
            return "; ".join(errors)[:MAX_WORDS]
        return " ".join(str(problem).split())[:MAX_WORDS] or "it is not valid"


def _mentions_quotes(kinds: tuple[Any, ...]) -> bool:
    from toolcrib.agent.quotes import mentions_quotes

    return mentions_quotes(kinds)


def _of_items(output: OutputWish, kind: Any) -> OutputWish:
    """The output type of one item."""
    made = copy.copy(output)
    made.types, made.validators, made.itemwise = (kind,), (), False
    return made
