"""A tool's declared result: its JSON Schema, and the check of what the tool returns."""

from __future__ import annotations

import collections.abc as abc
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    LiteralString,
    Never,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from toolcrib.content import Json, Media, Text
from toolcrib.errors import ToolDefinitionError
from toolcrib.result import ToolResult

__all__ = ["Output", "yielded_type"]

MAX_EXPLAINED = 200_000  # characters of a result of which each failure is described
NOT_EXPLAINED = "the result does not fit the schema, and is too large to say where"
ANY_DICT = (dict, dict[str, Any])
ITERATORS = (abc.AsyncIterator, abc.AsyncGenerator, abc.AsyncIterable, abc.Iterator, abc.Generator)
SEVERAL = (list, tuple, abc.Iterable)
UNKNOWN = (Any, object, inspect.Parameter.empty)
UNSTRUCTURED = (
    Any,
    str,
    LiteralString,
    bytes,
    None,
    type(None),
    object,
    Never,
    NoReturn,
    inspect.Parameter.empty,
)


class Output:
    """A tool's declared result: its JSON Schema (None for plain text and content parts) and its check."""

    __slots__ = ("_adapter", "_joins_texts", "_validator", "fitting", "schema", "to_json")

    def __init__(self, returns: Any, tool: str, declared: Any = None, *, yields: bool = False) -> None:
        self.schema: dict[str, Any] | None = None
        self._joins_texts = yields
        self._adapter: Any = None
        self._validator: Any = None
        self.fitting: type | None = None  # a type whose values all fit: models are validated when made
        self.to_json: Callable[..., bytes] | None = None  # writes a value of the declared type
        if isinstance(declared, Mapping):
            self._of_schema(declared, tool)
            return
        hint = _delivered(returns if declared is None else declared)
        # A plain function must say that it gives texts.
        self._joins_texts = yields or not any(hint is unknown for unknown in UNKNOWN)
        if declared is None and not _is_structured(hint):
            return
        from toolcrib.compiling.core_schema import why_no_schema
        from toolcrib.schema.canonical import clean

        try:
            self._adapter, schema = _adapter(hint)
            self.schema = clean(schema)
        except Exception as problem:
            if declared is None and (yields or _is_generator(returns)):
                return  # its values are shown one by one, and may be of any type
            raise ToolDefinitionError(
                f"tool {tool!r}: its {'return annotation' if declared is None else 'output_schema'} {hint!r} "
                f"gives no schema: {why_no_schema(problem)}"
            ) from problem
        if declared is not None:  # what is returned may be of another type
            return
        if hint in ANY_DICT:
            self.fitting = dict
        elif isinstance(hint, type) and hasattr(hint, "model_fields"):
            self.fitting = hint
        self.to_json = getattr(self._adapter, "to_json", self._adapter.serializer.to_json)

    def of_items(self, items: list[Any]) -> Any:
        """What a generator yielded as one value: texts are joined, unless a list is declared; all else is a list."""
        is_list = self.schema is not None and self.schema.get("type") == "array"
        if self._joins_texts and not is_list and all(isinstance(item, str) for item in items):
            return "".join(items)
        return items

    def without_half_pairs(self, value: Any) -> bytes:
        """The JSON of a value with half a surrogate pair, which `to_json` refuses."""
        from pydantic_core import to_json

        from toolcrib.json_text.half_pairs import without_half_pairs

        data = self._adapter.serializer.to_python(
            without_half_pairs(value), mode="json", by_alias=True, warnings=False
        )
        return to_json(without_half_pairs(data), inf_nan_mode="null")

    def misfit(self, value: Any, text: str) -> str | None:
        """Why a value with the JSON `text` does not fit the declared type; None if it fits."""
        if type(value) is self.fitting:
            return None
        if self._adapter is None:
            return self._misfit_of_schema(text)
        validate = self._adapter.validator.validate_json
        try:
            validate(text, strict=True)
        except ValueError:
            try:
                validate(text)
            except ValueError as problem:
                return str(problem)
            return self._misfit_of_schema(text)  # the schema decides: "1" is no integer, 1.0 is one
        return None

    def _of_schema(self, declared: Mapping[str, Any], tool: str) -> None:
        from toolcrib.schema.canonical import clean
        from toolcrib.schema.validator import offline_validator, why_unusable

        try:
            self._validator = offline_validator(declared)
            self.schema = clean(declared)
        except Exception as problem:
            raise ToolDefinitionError(
                f"tool {tool!r}: its output_schema cannot be used: {why_unusable(problem)}"
            ) from problem

    def _misfit_of_schema(self, text: str) -> str | None:
        """Why a value does not fit; None also where the schema has too many ways to apply to it."""
        from pydantic_core import from_json

        from toolcrib.schema.validator import TooManyChecks, offline_validator

        if self._validator is None:
            self._validator = offline_validator(self.schema or {})
        value = from_json(text)
        try:
            if self._validator.is_valid(value):
                return None
        except TooManyChecks:
            return None
        if len(text) > MAX_EXPLAINED:  # each failure has the text of what fails
            return NOT_EXPLAINED
        try:
            found = [
                f"{'/'.join(map(str, error.instance_path)) or 'the result'}: {error.message}"
                for error in self._validator.iter_errors(value)
            ]
        except TooManyChecks:
            return NOT_EXPLAINED
        return "\n".join(found)


class _PlainAdapter:
    """The used part of `TypeAdapter`, for a type that needs no real one."""

    def __init__(self, core: Any) -> None:
        from pydantic_core import SchemaSerializer, SchemaValidator

        # False: Pydantic's own validators of nested models, which do not have what was changed here, are not used.
        self.validator, self.serializer = SchemaValidator(core, None, False), SchemaSerializer(core)


def _adapter(hint: Any) -> tuple[Any, dict[str, Any]]:
    """Validates and writes values of a type; and its JSON Schema."""
    from toolcrib.compiling.plain_types import plain_type

    if (plain := plain_type(hint)) is not None:
        return _PlainAdapter(plain[0]), plain[1]
    from pydantic import TypeAdapter

    from toolcrib.compiling.core_schema import generators_as_lists, has_type
    from toolcrib.compiling.typed_dicts import modern

    made: Any = TypeAdapter(modern(hint))
    schema = made.json_schema(mode="serialization")
    if has_type(made.core_schema, "generator"):
        made = _PlainAdapter(generators_as_lists(made.core_schema))
        made.to_json = partial(made.serializer.to_json, fallback=list)  # a range, the values of a dict
    return made, schema


def _is_generator(hint: Any) -> bool:
    """Whether a return annotation is that of a generator."""
    if get_origin(hint) is Annotated:
        return _is_generator(get_args(hint)[0])
    return (get_origin(hint) or hint) in ITERATORS


def _delivered(hint: Any) -> Any:
    """The type of what a tool gives in the end, from its return annotation.

    That is the X of Awaitable[X] and Coroutine[..., X], and for a generator what `yielded_type` says.
    Annotated[X, ...] is kept only where the X has a schema, which its metadata then belong to.
    """
    origin = get_origin(hint) or hint
    if origin in (abc.Awaitable, abc.Coroutine):
        return _delivered((get_args(hint) or (Any,))[-1])
    if origin in ITERATORS:
        return yielded_type(hint)
    if origin is Annotated:
        inner, *metadata = get_args(hint)
        delivered = _delivered(inner)
        return Annotated[delivered, *metadata] if _is_structured(delivered) else delivered
    if origin in (Union, UnionType):
        return Union[tuple(map(_delivered, get_args(hint)))]  # noqa: UP007 - of as many as there are
    return hint


def yielded_type(hint: Any) -> Any:
    """The type of what a generator function with this return annotation gives in the end.

    That is the type of what it returns, if it returns something. Otherwise it is a text where it may yield texts, and
    an Iterable of what it yields.
    """
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        return _delivered(Annotated[yielded_type(arguments[0]), *arguments[1:]])
    if origin not in (*ITERATORS, abc.Iterable):
        return Any
    returned = arguments[2] if len(arguments) == 3 else None
    if returned not in (None, type(None)):
        return _delivered(returned) if not _may_be(type(None), returned) else Any
    several: Any = abc.Iterable
    return several[arguments[0]] if arguments and not _may_be(str, arguments[0]) else str


def _may_be(kind: type, hint: Any) -> bool:
    """Whether a value of a type may be of this kind; True where the type does not say."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_may_be(kind, member) for member in get_args(hint))
    if origin is Annotated:
        return _may_be(kind, get_args(hint)[0])
    if origin is Literal:
        return any(isinstance(value, kind) for value in get_args(hint))
    for inner in ("__supertype__", "__value__"):  # of a NewType and of a type alias
        if hasattr(hint, inner):
            return _may_be(kind, getattr(hint, inner))
    if hint is None:
        return kind is type(None)
    known = origin or hint
    return not isinstance(known, type) or issubclass(known, kind) or known is object


def _is_structured(hint: Any) -> bool:
    """Whether a result type has a schema that tells a model something: not text, bytes, parts, None, Any or Never."""
    if hint in UNSTRUCTURED or isinstance(hint, TypeVar):
        return False
    if isinstance(hint, type) and issubclass(hint, ToolResult | Text | Json | Media | str | bytes):
        return False
    arguments = [item for item in get_args(hint) if item is not type(None)]
    if arguments and get_origin(hint) in (*SEVERAL, Union, UnionType):
        return all(item is ... or _is_structured(item) for item in arguments) or (
            get_origin(hint) in SEVERAL and all(item in (str, ...) for item in arguments)
        )
    return True
