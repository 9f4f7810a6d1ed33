"""Compiles the types of an output to a tool definition: the model answers with the tool's arguments."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Mapping
from inspect import cleandoc, getdoc, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, Union

from toolcrib.agent.completion import COMPLETION
from toolcrib.agent.output_functions import Function
from toolcrib.compiling.signature import Signature, read_signature
from toolcrib.effect import Effect
from toolcrib.errors import ToolDefinitionError
from toolcrib.facts import Facts, MaxOutput

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition

__all__ = ["WRAP", "CompiledOutput"]

FINISH = "Finish the task: give the answer. Call it once, alone, when everything is done or nothing more can be done."
WRAP = "result"  # the field that holds an answer whose type is no object
MAX_OUTPUT = MaxOutput(bytes=50_000_000, lines=10_000_000)  # an answer is not cut


class CompiledOutput:
    """The types of an output compiled to `definition`, whose parameters are the fields of the answer's JSON object.

    `wrapped`: the value stands in the field `result`. `tagged`: the value is one of several alternatives. `functions`
    are the user's output functions by name. `text` is the constraint of an answer that is plain text, if it has one.
    Raises ToolDefinitionError for a type that cannot be the output of a run.
    """

    def __init__(self, types: tuple[Any, ...], description: str, *, validated: bool) -> None:
        self.types = types
        self.wrapped = False
        self.tagged = len(types) > 1
        self.functions: dict[str, Function] = {}
        self.text: Any = None
        kind, doc = self._kind()
        self.definition = self._compiled(kind, description or doc, validated)

    def _kind(self) -> tuple[Any, str]:
        """The type of the answer's object, and its description."""
        types = [self._compilable(given) for given in self.types]
        if not self.tagged:
            (given,) = types
            if isinstance(given, Signature | Mapping) or _is_object(given):
                return given, _doc(self.types[0])
            self.wrapped = True
            return _fields({WRAP: given}), _doc(self.types[0])
        if any(isinstance(given, Mapping) for given in types):
            raise ToolDefinitionError("a JSON Schema cannot be one of several alternatives")
        self.wrapped = True
        variants: list[Any] = []
        for name, given, source in zip(self._names(), types, self.types, strict=True):
            value = _of_signature(given) if isinstance(given, Signature) else given
            kinds: Any = Literal[name]
            variants.append(_fields({"kind": kinds, "value": value}, _doc(source)))
        from pydantic import Field

        several: Any = Union[tuple(variants)]  # noqa: UP007 - of a tuple
        union: Any = typing.Annotated[several, Field(discriminator="kind")]
        return _fields({WRAP: union}), ""

    def _compilable(self, given: Any) -> Any:
        """One alternative in a form that can be compiled: a type, a JSON Schema, or the signature of a function."""
        if type(given).__module__.startswith("toolcrib.guided."):
            return self._constraint(type(given).__name__, given)
        given = getattr(given, "fn", given) if hasattr(given, "facts") else given
        if isinstance(given, Mapping):
            return self._schema(given)
        if inspect.isroutine(given) or (callable(given) and type(given).__name__ in ("partial", "method")):
            signature = read_signature(given, COMPLETION, None)
            key = getattr(given, "__name__", "answer")
            self.functions[key] = Function(
                given, signature.caller(given), bool(signature.contexts), iscoroutinefunction(given)
            )
            return signature
        return given

    def _constraint(self, name: str, given: Any) -> Any:
        if name == "Choice":
            self.text = given
            return Literal[tuple(given.options)]
        if name == "JsonSchema":
            return self._schema(given.schema)
        if name in ("Regex", "Grammar"):
            self.text = given
            return _text_type(name, given)
        raise ToolDefinitionError(
            f"{name} cannot be an output: it constrains how an answer is written, and has no value"
        )

    def _schema(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """A JSON Schema of an object: the given one, or an object with the given one as its field `result`."""
        kind = raw.get("type")
        if kind == "object" or (kind is None and ("properties" in raw or "$ref" in raw)):
            return raw
        self.wrapped = True
        inner = {key: value for key, value in raw.items() if key not in ("$defs", "$schema", "definitions")}
        shared = {key: raw[key] for key in ("$defs", "definitions") if key in raw}
        outer = {"type": "object", "properties": {WRAP: inner}, "required": [WRAP]}
        return {**outer, "additionalProperties": False, **shared}

    def _names(self) -> list[str]:
        """A name for each alternative, by which the model says which one it gives."""
        names: list[str] = []
        for number, given in enumerate(self.types, 1):
            name = getattr(given, "__name__", "") if not typing.get_origin(given) else ""
            names.append(name if name and name not in names else f"answer_{number}")
        return names

    def _compiled(self, kind: Any, described: str, validated: bool) -> Definition:
        from toolcrib.compiling.compile import compile_class
        from toolcrib.compiling.definition import Definition
        from toolcrib.compiling.signature_params import signature_params

        effects = [given.facts.effect for given in self.types if hasattr(given, "facts")]
        facts = Facts(
            COMPLETION, max(effects, default=Effect.READ), frozenset(),
            description=f"{FINISH}\n\n{described}" if described else FINISH,
            open_world=bool(self.functions), idempotent=not self.functions, inline=True, max_output=MAX_OUTPUT,
        )  # fmt: skip
        if isinstance(kind, Signature):
            params = signature_params(kind, COMPLETION)
        else:
            params = compile_class(
                facts, execute=_execute_inline, kind=kind, returns=str, doc="", hooks=()
            ).params
        if self.functions or validated:  # functions of the user, which may be async
            return Definition(facts, facts.description, params, _execute, "async", {}, str, True)
        return Definition(facts, facts.description, params, _execute_inline, "inline", {}, str, True)


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
    """The type of a text with its constraint in the schema: a regex as `pattern`, a grammar in the description."""
    from pydantic import Field

    if name == "Regex":
        from toolcrib.guided.regex_tree import regex_text, regex_tree

        return typing.Annotated[str, Field(pattern=f"^({regex_text(regex_tree(given.pattern))})$")]
    told = f"A text of this grammar, and nothing else:\n{given.text}"
    return typing.Annotated[str, Field(description=told)]


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
    """The description in the docstring of a type or function; "" if its author wrote none."""
    fn = getattr(given, "fn", None) if hasattr(given, "facts") else None
    given = fn or given
    own = inspect.isroutine(given) or (isinstance(given, type) and given.__module__ not in ("builtins",))
    text = (given.__doc__ if isinstance(given, type) else getdoc(given)) if own else ""
    if not text or (isinstance(given, type) and text.startswith(f"{given.__name__}(")):
        return ""
    from toolcrib.compiling.docstring import parse_docstring

    return parse_docstring(cleandoc(text))[0]
