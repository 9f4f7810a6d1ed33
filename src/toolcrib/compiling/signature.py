"""A function's signature: which arguments the model gives, which the toolbox fills in, how the call is made."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from toolcrib.compiling.annotations import annotations_of, innermost, signature_of
from toolcrib.context import Context
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolDefinitionError

__all__ = ["Parameter", "Signature", "is_context", "is_nullable", "read_signature", "unresolvable"]

Kind = inspect._ParameterKind
POSITIONAL_ONLY, VAR_POSITIONAL, VAR_KEYWORD = Kind.POSITIONAL_ONLY, Kind.VAR_POSITIONAL, Kind.VAR_KEYWORD
MISSING: Any = inspect.Parameter.empty


@dataclass(slots=True)
class Parameter:
    """One parameter that a model gives; `default` is MISSING when there is none."""

    name: str
    hint: Any
    default: Any
    kind: Kind

    @property
    def required(self) -> bool:
        """Whether every call must give it."""
        return self.default is MISSING and self.kind not in (VAR_POSITIONAL, VAR_KEYWORD)

    @property
    def is_field(self) -> bool:
        """Whether the default is written as a pydantic `Field(...)`; pydantic itself may not be loaded."""
        return self.default is not None and hasattr(self.default, "get_default")


@dataclass(slots=True)
class Signature:
    """A function's parameters that a model gives, the names of those that take the context, and its result.

    `order` has all of these parameters in the order of the signature.
    """

    parameters: list[Parameter]
    contexts: tuple[str, ...]
    returns: Any
    order: list[Parameter]

    def defaults(self) -> dict[str, Any]:
        """The defaults of the parameters that a model may leave out, without those of a pydantic `Field`."""
        return {p.name: p.default for p in self.parameters if p.default is not MISSING and not p.is_field}

    def caller(self, fn: Callable[..., Any]) -> Callable[[Any, dict[str, Any], Any], Any]:
        """A function of (tool, validated arguments, context) that calls `fn`; made once per tool."""
        made = {
            p.name: functools.partial(p.default.get_default, call_default_factory=True)
            for p in self.parameters
            if p.is_field
        }
        call = self._plain_caller(fn)
        if not made:
            return call
        return lambda _, values, ctx: call(
            _, {**{name: make() for name, make in made.items()}, **values}, ctx
        )

    def _plain_caller(self, fn: Callable[..., Any]) -> Callable[[Any, dict[str, Any], Any], Any]:
        contexts = self.contexts
        if any(p.kind in (POSITIONAL_ONLY, VAR_POSITIONAL) for p in self.order):
            return functools.partial(_call_placed, fn, self.order, contexts)
        if not contexts:
            return lambda _, values, ctx: fn(**values)
        if len(contexts) == 1:
            context = contexts[0]
            return lambda _, values, ctx: fn(**values, **{context: ctx})
        return lambda _, values, ctx: fn(**values, **dict.fromkeys(contexts, ctx))


def _call_placed(
    fn: Callable[..., Any],
    order: list[Parameter],
    contexts: tuple[str, ...],
    _: Any,
    values: dict[str, Any],
    ctx: Any,
) -> Any:
    """Call a function with positional-only parameters and *args in their places."""
    args: list[Any] = []
    named = {**values, **dict.fromkeys(contexts, ctx)}
    rest = any(p.kind is VAR_POSITIONAL and named.get(p.name) for p in order)
    gap = False  # whether a positional parameter was left out: those after it must be named
    for p in order:
        if p.kind is VAR_POSITIONAL:
            args.extend(named.pop(p.name, ()))
        elif p.kind is POSITIONAL_ONLY or (rest and p.kind is Kind.POSITIONAL_OR_KEYWORD):
            if p.name in named and not gap:
                args.append(named.pop(p.name))
            elif p.default is not MISSING:
                args.append(named.pop(p.name, p.default))
            else:
                gap = True
    return fn(*args, **named)


def read_signature(fn: Callable[..., Any], tool: str, local_names: Mapping[str, Any] | None) -> Signature:
    """The signature of any callable: function, bound method, partial, callable object.

    `local_names` are the names where the function was defined, for annotations that are strings.
    Raises ToolDefinitionError if an annotation cannot be resolved.
    """
    try:
        signature = signature_of(fn)
        inner, filled = innermost(fn)
    except Exception as problem:
        raise ToolDefinitionError(f"tool {tool!r}: its signature cannot be read: {problem}") from None
    hints = _hints(inner, tool, local_names)
    parameters: list[Parameter] = []
    order: list[Parameter] = []
    contexts: list[str] = []
    for name, parameter in signature.parameters.items():
        if name in filled:
            continue
        hint = hints.get(name, Any)
        if is_context(hint):
            contexts.append(name)
            order.append(Parameter(name, hint, MISSING, parameter.kind))
            continue
        given = Parameter(name, hint, parameter.default, parameter.kind)
        if given.required and is_nullable(hint):
            given.default = None
        parameters.append(given)
        order.append(given)
    return Signature(parameters, tuple(contexts), hints.get("return", Any), order)


def _hints(fn: Any, tool: str, local_names: Mapping[str, Any] | None) -> dict[str, Any]:
    """The resolved annotations of a function, also those that use names of an enclosing function."""
    function = getattr(fn, "__func__", fn)
    local = dict(local_names or {})
    for cell_name, cell in zip(
        getattr(getattr(function, "__code__", None), "co_freevars", ()),
        getattr(function, "__closure__", None) or (),
        strict=False,
    ):
        try:
            local[cell_name] = cell.cell_contents
        except ValueError:  # a name that is bound only later
            continue
    try:
        return typing.get_type_hints(function, localns=local or None, include_extras=True)
    except Exception as problem:
        culprit = unresolvable(function, local)
        where = (
            "its result"
            if culprit == "return"
            else f"parameter {culprit!r}"
            if culprit
            else "its annotations"
        )
        raise ToolDefinitionError(f"tool {tool!r}: {where} cannot be resolved: {problem}") from problem


def unresolvable(annotated: Any, names: Mapping[str, Any] | None = None) -> str:
    """The first parameter of a function or class whose annotation cannot be resolved, or ""."""
    scope = getattr(annotated, "__globals__", None)
    if scope is None:
        scope = vars(sys.modules.get(getattr(annotated, "__module__", ""), typing))
    for name, annotation in annotations_of(annotated).items():
        single = type("single", (), {"__annotations__": {name: annotation}})
        try:
            typing.get_type_hints(single, scope, dict(names or {}), include_extras=True)
        except Exception:
            return str(name)
    return ""


def is_context(hint: Any) -> bool:
    """Whether an annotation is Context, Context[Deps], a subclass, or one of these in a union."""
    origin = get_origin(hint) or hint
    if origin in (Union, UnionType):
        return any(is_context(arg) for arg in get_args(hint))
    if origin is typing.Annotated:
        return is_context(get_args(hint)[0])
    return isinstance(origin, type) and issubclass(origin, Context)


def is_nullable(hint: Any) -> bool:
    """Whether a type includes None: `X | None`, `Optional[X]`, also inside Annotated."""
    origin = get_origin(hint)
    if origin is typing.Annotated:
        return is_nullable(get_args(hint)[0])
    if origin in (Union, UnionType):
        return any(arg is type(None) or is_nullable(arg) for arg in get_args(hint))
    return hint is None or hint is type(None)
