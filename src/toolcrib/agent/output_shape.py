"""An OutputType compiled: attempt_completion in its shape, and the reading of answers that are text.

The arguments of the call, and the text of an answer, are one JSON object. A type that is an object is that object;
any other stands in its field `result`; of several alternatives, `result` says which one it is and has its value.
"""

from __future__ import annotations

import collections.abc
import copy
import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from inspect import cleandoc, getdoc, isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

from toolcrib.agent.completion import COMPLETION
from toolcrib.agent.output_functions import Function, WrongAnswer, called, validator_of
from toolcrib.agent.output_items import ItemParams, ItemsSoFar, OutputItem
from toolcrib.compiling.signature import Signature, read_signature
from toolcrib.effect import Effect
from toolcrib.errors import ToolDefinitionError, ToolError
from toolcrib.facts import Facts, MaxOutput

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.context import Context

__all__ = ["OutputShape", "Source"]

FINISH = "Finish the task: give the answer. Call it once, alone, when everything is done or nothing more can be done."
QUOTES = "toolcrib.agent.quotes"  # a program that has no Quote has not loaded it
WRAP = "result"  # the field of what is no object
MAX_OUTPUT = MaxOutput(bytes=50_000_000, lines=10_000_000)  # an answer is not cut
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
        self._wrapped = False
        self._functions: dict[str, Function] = {}
        self._tagged = len(output.types) > 1
        self._text: Any = None  # the constraint of an answer that is a text and needs no JSON
        self._item: OutputShape | None = None
        self.ladders: dict[tuple[str, bool], Any] = {}  # the ways to ask for it, by server
        self._has_quotes = QUOTES in sys.modules and _mentions_quotes(output.types)
        self._validators = tuple(validator_of(fn) for fn in output.validators)
        try:
            kind, doc = self._kind()
            self.definition = self._compiled(kind, doc)
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
        return (WRAP, "value") if self._tagged else (WRAP,) if self._wrapped else ()

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

        decoded = decode("", {WRAP: raw} if self._wrapped else raw, self.definition, None)
        if not isinstance(decoded, tuple):
            raise WrongAnswer(decoded.text)
        return self.checked(decoded[0])

    @property
    def constraints(self) -> tuple[Any, ...]:
        """The constraints that a server can be asked to enforce on an answer's text, the best first."""
        from toolcrib.guided import JsonSchema

        described = JsonSchema(self.schema, description=self.output.description)
        return (described,) if self._text is None or self._tagged else (self._text, described)

    @property
    def is_grammar(self) -> bool:
        """Whether no JSON Schema expresses the answer's form: a server that enforces the schema then promises less."""
        return type(self._text).__name__ == "Grammar"

    @property
    def needs_call(self) -> bool:
        """Whether it can only be answered by a call: where functions of the user need a call to run in."""
        return bool(self._functions) or any(validator.wants_context for validator in self._validators)

    # -- compiling

    def _kind(self) -> tuple[Any, str]:
        """The params of the answer's object, and what its type says of itself."""
        types = [self._known(given) for given in self.output.types]
        if not self._tagged:
            (given,) = types
            if isinstance(given, Signature | Mapping) or _is_object(given):
                return given, _doc(self.output.types[0])
            self._wrapped = True
            return _fields({WRAP: given}), _doc(self.output.types[0])
        if any(isinstance(given, Mapping) for given in types):
            raise ToolDefinitionError("a JSON Schema cannot be one of several alternatives")
        self._wrapped = True
        variants: list[Any] = []
        for name, given, source in zip(self._names(), types, self.output.types, strict=True):
            value = _of_signature(given) if isinstance(given, Signature) else given
            kinds: Any = Literal[name]
            variants.append(_fields({"kind": kinds, "value": value}, _doc(source)))
        from pydantic import Field

        several: Any = Union[tuple(variants)]  # noqa: UP007 - of a tuple
        union: Any = typing.Annotated[several, Field(discriminator="kind")]
        return _fields({WRAP: union}), ""

    def _known(self, given: Any) -> Any:
        """One alternative as a type that can be compiled: of a function, the type of its parameters."""
        if type(given).__module__.startswith("toolcrib.guided."):
            return self._constraint(type(given).__name__, given)
        given = getattr(given, "fn", given) if hasattr(given, "facts") else given
        if isinstance(given, Mapping):
            return self._schema(given)
        if inspect.isroutine(given) or (callable(given) and type(given).__name__ in ("partial", "method")):
            signature = read_signature(given, COMPLETION, None)
            key = getattr(given, "__name__", "answer")
            self._functions[key] = Function(
                given, signature.caller(given), bool(signature.contexts), iscoroutinefunction(given)
            )
            return signature
        return given

    def _constraint(self, name: str, given: Any) -> Any:
        if name == "Choice":
            self._text = given
            return Literal[tuple(given.options)]
        if name == "JsonSchema":
            return self._schema(given.schema)
        if name in ("Regex", "Grammar"):
            self._text = given
            return _text_type(name, given)
        raise ToolDefinitionError(f"a {name} says how an answer is written, not what it is")

    def _schema(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """A JSON Schema of an object: another one stands in the field `result`."""
        kind = raw.get("type")
        if kind == "object" or (kind is None and ("properties" in raw or "$ref" in raw)):
            return raw
        self._wrapped = True
        inner = {key: value for key, value in raw.items() if key not in ("$defs", "$schema", "definitions")}
        shared = {key: raw[key] for key in ("$defs", "definitions") if key in raw}
        outer = {"type": "object", "properties": {WRAP: inner}, "required": [WRAP]}
        return {**outer, "additionalProperties": False, **shared}

    def _names(self) -> list[str]:
        """A name for each alternative, by which the model says which one it gives."""
        names: list[str] = []
        for number, given in enumerate(self.output.types, 1):
            name = getattr(given, "__name__", "") if not typing.get_origin(given) else ""
            names.append(name if name and name not in names else f"answer_{number}")
        return names

    def _compiled(self, kind: Any, doc: str) -> Definition:
        from toolcrib.compiling.compile import compile_class
        from toolcrib.compiling.definition import Definition
        from toolcrib.compiling.signature_params import signature_params

        needs_async = bool(self._functions or self._validators)
        effects = [given.facts.effect for given in self.output.types if hasattr(given, "facts")]
        said = self.output.description or doc
        facts = Facts(
            COMPLETION, max(effects, default=Effect.READ), frozenset(),
            description=f"{FINISH}\n\n{said}" if said else FINISH,
            open_world=bool(self._functions), idempotent=not self._functions, inline=True, max_output=MAX_OUTPUT,
        )  # fmt: skip
        if isinstance(kind, Signature):
            params = signature_params(kind, COMPLETION)
        else:
            params = compile_class(
                facts, execute=_execute_inline, kind=kind, returns=str, doc="", hooks=()
            ).params
        if needs_async:
            return Definition(facts, facts.description, params, _execute, "async", {}, str, True)
        return Definition(facts, facts.description, params, _execute_inline, "inline", {}, str, True)

    # -- reading

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
        if not self._wrapped or self._tagged:
            return []
        from toolcrib.json_text.lenient_grammar import Unreadable
        from toolcrib.json_text.lenient_reader import read_json

        readings: list[Any] = []
        try:
            readings.append(read_json(text).value)
        except Unreadable:
            pass
        if self._text is not None:
            readings.append(text.strip())
        return [{WRAP: value} for value in readings]

    def value_of(self, params: Any) -> tuple[str, Any]:
        """The alternative that was given ("" if there is only one), and its value."""
        value = params[WRAP] if self._wrapped else params
        if self._tagged:
            return value["kind"], value["value"]
        return next(iter(self._functions), ""), value

    def checked(self, params: Any) -> Any:
        """The value of params, without calling validators. Raises WrongAnswer for a text that does not match."""
        value = self.value_of(params)[1]
        if self._text is not None and not self._tagged:
            from toolcrib.guided.checking import check
            from toolcrib.toolbox.model_messages import invalid_arguments

            if wrong := check(self._text, value):
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
        function = self._functions.get(name)
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


def _execute(tool: Any, params: Any, ctx: Any) -> Any:
    return tool.execute(params, ctx)


def _execute_inline(tool: Any, params: Any, ctx: Any) -> Any:
    return tool.execute_inline(params, ctx)


def _is_object(kind: Any) -> bool:
    """Whether a type has named fields: a model (but no RootModel), a dataclass or a TypedDict, also of a generic."""
    origin = typing.get_origin(kind) or kind
    if not isinstance(origin, type):
        return False
    if hasattr(origin, "model_fields"):
        return not getattr(origin, "__pydantic_root_model__", False)
    return dataclasses.is_dataclass(origin) or hasattr(origin, "__total__")


def _text_type(name: str, given: Any) -> Any:
    """A text that a model is told the rule of: as a pattern of its schema, or a grammar in words."""
    from pydantic import Field

    if name == "Regex":
        from toolcrib.guided.regex_tree import regex_text, regex_tree

        return typing.Annotated[str, Field(pattern=f"^({regex_text(regex_tree(given.pattern))})$")]
    told = f"A text of this grammar, and nothing else:\n{given.text}"
    return typing.Annotated[str, Field(description=told)]


def _mentions_quotes(kinds: tuple[Any, ...]) -> bool:
    from toolcrib.agent.quotes import mentions_quotes

    return mentions_quotes(kinds)


def _of_items(output: OutputWish, kind: Any) -> OutputWish:
    """The output type of one item."""
    made = copy.copy(output)
    made.types, made.validators, made.itemwise = (kind,), (), False
    return made


def _fields(fields: dict[str, Any], doc: str = "") -> Any:
    """A TypedDict of these fields, which takes no others."""
    import typing_extensions

    build: Any = typing_extensions.TypedDict
    made = build("Answer", fields)
    made.__pydantic_config__ = {"extra": "forbid"}
    made.__doc__ = doc or None
    return made


def _of_signature(signature: Signature) -> Any:
    import typing_extensions

    return _fields(
        {
            parameter.name: parameter.hint
            if parameter.required
            else typing_extensions.NotRequired[parameter.hint]
            for parameter in signature.parameters
        }
    )


def _doc(given: Any) -> str:
    """What the author says of a type or function; "" for what Python writes itself."""
    fn = getattr(given, "fn", None) if hasattr(given, "facts") else None
    given = fn or given
    own = inspect.isroutine(given) or (isinstance(given, type) and given.__module__ not in ("builtins",))
    text = (given.__doc__ if isinstance(given, type) else getdoc(given)) if own else ""
    if not text or (isinstance(given, type) and text.startswith(f"{given.__name__}(")):
        return ""
    from toolcrib.compiling.docstring import parse_docstring

    return parse_docstring(cleandoc(text))[0]
