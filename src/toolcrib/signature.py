"""Reading a function's signature: what the model gives, what the box fills in, how the call is made."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any, Union, get_args, get_origin

from toolcrib.context import Context
from toolcrib.errors import ToolDefinitionError

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
        return self.default is MISSING and self.kind not in (VAR_POSITIONAL, VAR_KEYWORD)


@dataclass(slots=True)
class Signature:
    """A function's parameters without the context, the name of the context parameter, what it returns."""

    parameters: list[Parameter]
    context: str | None
    returns: Any

    def caller(self, fn: Callable[..., Any]) -> Callable[[dict[str, Any], Any], Any]:
        """The function of (validated arguments, context) that makes the call; worked out once."""
        fill: dict[str, Any] = {}
        made: dict[str, Callable[[], Any]] = {}
        for p in self.parameters:
            if p.default is None and is_nullable(p.hint):
                fill[p.name] = None
            elif p.default is not None and hasattr(
                p.default, "get_default"
            ):  # a pydantic Field(...) as the default
                made[p.name] = functools.partial(p.default.get_default, call_default_factory=True)
        placed = [p for p in self.parameters if p.kind in (POSITIONAL_ONLY, VAR_POSITIONAL)]
        context = self.context
        if made:
            plain = Signature(
                [replace(p, default=None) for p in self.parameters], context, self.returns
            ).caller(fn)
            return lambda values, ctx: plain({**{name: make() for name, make in made.items()}, **values}, ctx)
        if placed:
            return functools.partial(_call_placed, fn, self.parameters, context)
        if fill:
            if context is None:
                return lambda values, ctx: fn(**{**fill, **values})
            return lambda values, ctx: fn(**{**fill, **values, context: ctx})
        if context is None:
            return lambda values, ctx: fn(**values)
        return lambda values, ctx: fn(**values, **{context: ctx})


def _call_placed(
    fn: Callable[..., Any], parameters: list[Parameter], context: str | None, values: dict[str, Any], ctx: Any
) -> Any:
    """Call with positional-only parameters and *args in their places."""
    args: list[Any] = []
    named = dict(values)
    gap = False  # a positional-only default was left out: what follows it must be named or stay a default
    has_rest = any(p.kind is VAR_POSITIONAL and p.name in named for p in parameters)
    for p in parameters:
        if p.kind is VAR_POSITIONAL:
            args.extend(named.pop(p.name, ()))
        elif p.kind is POSITIONAL_ONLY or (has_rest and p.kind is Kind.POSITIONAL_OR_KEYWORD):
            if p.name in named and not gap:
                args.append(named.pop(p.name))
            elif p.default is not MISSING:
                args.append(named.pop(p.name, p.default))
            else:
                gap = True
    return fn(*args, **(named if context is None else {**named, context: ctx}))


def read_signature(fn: Callable[..., Any], tool: str, names: Mapping[str, Any] | None) -> Signature:
    """The signature of any callable: function, bound method, partial, callable object.

    `names` are the local names where the function was defined, for annotations that are strings.
    Raises ToolDefinitionError when an annotation cannot be resolved.
    """
    inner, bound = fn, set[str]()
    while isinstance(inner, functools.partial):
        bound.update(inner.keywords)
        inner = inner.func
    target = inner if hasattr(inner, "__code__") or hasattr(inner, "__func__") else type(inner).__call__
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError) as problem:
        raise ToolDefinitionError(f"tool {tool!r}: its signature cannot be read: {problem}") from None
    hints = _hints(inspect.unwrap(target), tool, names)
    parameters: list[Parameter] = []
    context: str | None = None
    for name, parameter in signature.parameters.items():
        if name in bound:
            continue
        hint = hints.get(name, Any)
        if is_context(hint):
            context = name
            continue
        default = parameter.default
        if default is MISSING and parameter.kind not in (VAR_POSITIONAL, VAR_KEYWORD) and is_nullable(hint):
            default = None
        parameters.append(Parameter(name, hint, default, parameter.kind))
    return Signature(parameters, context, hints.get("return", Any))


def _hints(fn: Any, tool: str, names: Mapping[str, Any] | None) -> dict[str, Any]:
    function = getattr(fn, "__func__", fn)
    local = dict(names or {})
    for cell_name, cell in zip(
        getattr(getattr(function, "__code__", None), "co_freevars", ()),
        function.__closure__ or (),
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
        where = f"parameter {culprit!r}" if culprit else "its annotations"
        raise ToolDefinitionError(f"tool {tool!r}: {where} cannot be resolved: {problem}") from problem


def unresolvable(annotated: Any, names: Mapping[str, Any] | None = None) -> str:
    """The first parameter of a function or class whose annotation names what does not exist, or ""."""
    scope = getattr(annotated, "__globals__", None)
    if scope is None:
        scope = vars(sys.modules.get(getattr(annotated, "__module__", ""), typing))
    for name, annotation in getattr(annotated, "__annotations__", {}).items():
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
    """Whether None is one of the values: `X | None`, `Optional[X]`, also inside Annotated."""
    origin = get_origin(hint)
    if origin is typing.Annotated:
        return is_nullable(get_args(hint)[0])
    if origin in (Union, UnionType):
        return any(arg is type(None) or is_nullable(arg) for arg in get_args(hint))
    return hint is None or hint is type(None)
