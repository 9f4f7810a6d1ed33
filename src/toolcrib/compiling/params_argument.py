"""How a function takes params as one object: which argument they are, and which is the context.

Such a function is called with the object, whatever its arguments are named: one that wants the fields themselves
would run with the object in the place of its first. It is refused, when it is defined where that shows without
resolving its annotations, else when it is compiled.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import reprlib
import typing
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from toolcrib.compiling.annotations import annotations_of, signature_of
from toolcrib.compiling.signature import MISSING, Kind, Parameter, is_context, is_nullable
from toolcrib.context import Context
from toolcrib.errors import ToolDefinitionError
from toolcrib.parameter_names import field_names

__all__ = ["check_method", "check_params_argument", "params_argument"]

POSITIONAL = (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)
OF_A_METHOD = ("self", "cls")
NO_TYPES = (str, bytes, int, float, list, tuple, set)  # such a value is neither a type nor a JSON Schema


def params_argument(
    order: list[Parameter], kind: Any, tool: str, *, of_execute: bool = False
) -> tuple[Parameter, Parameter | None]:
    """The parameter that takes the params of this kind, and the one that takes the context, if any does.

    Raises ToolDefinitionError where a function has no such parameter, or has others that a call leaves empty.
    """
    variadic = (Kind.VAR_POSITIONAL, Kind.VAR_KEYWORD)
    context = next((p for p in order if is_context(p.hint)), None)
    needed = [p for p in order if p.default is MISSING and p.kind not in variadic and not is_context(p.hint)]
    if context is None and len(needed) == 2 and needed[1].hint is Any:
        context = needed.pop()
    if not needed:  # `Model | None` counts as an argument that may be left out
        needed = [p for p in order[:1] if is_nullable(p.hint)]
    fields = field_names(kind) or ()
    named_alike = [
        p
        for p in order
        if p.name in fields and not is_context(p.hint) and not (p in needed and p.hint == kind)
    ]
    if len(needed) != 1 or named_alike or not _agrees(needed[0].hint, kind):
        got = ", ".join(_written(p) for p in order)
        wanted = "dict" if isinstance(kind, Mapping) else getattr(kind, "__name__", "...")
        if of_execute:
            raise ToolDefinitionError(
                f"tool {tool!r}: execute takes (self, params, ctx), got (self, {got}). The params come as one object, "
                f"so write (self, params: {wanted}, ctx: Context) and read its fields."
            )
        raise ToolDefinitionError(
            f"tool {tool!r}: with params= its function takes (params) or (params, ctx), got ({got}). The params "
            f"come as one object, so write (params: {wanted}) or (params: {wanted}, ctx: Context) and read its "
            "fields; or leave params= out, so that the function's own arguments are the tool's."
        )
    return needed[0], context


def check_params_argument(fn: Callable[..., Any], kind: Any, tool: str, names: Mapping[str, Any]) -> None:
    """Raises ToolDefinitionError where it shows already that a function does not take its params as one object.

    `names` are those where the function is defined.
    """
    if isinstance(kind, NO_TYPES) or (not isinstance(kind, type) and field_names(type(kind))):
        raise ToolDefinitionError(
            f"tool {tool!r}: params must be a type, such as a Pydantic model, or a JSON Schema as a dict; "
            f"got {reprlib.repr(kind)}"
        )
    try:
        signature = signature_of(fn)
    except Exception:  # compiling says what is wrong with it
        return
    filled = fn.keywords if isinstance(fn, functools.partial) else {}
    order = [
        Parameter(p.name, _known(p.annotation, fn, names), p.default, p.kind)
        for p in signature.parameters.values()
        if p.name not in filled
    ]
    if (
        order
        and order[0].name in OF_A_METHOD
        and "." in getattr(fn, "__qualname__", "")
        and inspect.isfunction(fn)
    ):
        del order[0]  # a method that is decorated in its class
    params_argument(order, kind, tool)


def check_method(method: Callable[..., Any], kind: Any, tool: str) -> None:
    """The same for a method of (self, params, ctx), as far as its names and annotations show it."""
    code = getattr(method, "__code__", None)
    if code is None or code.co_argcount < 3 or kind is None or kind is type(None):
        return
    hints = annotations_of(method)
    params, context = (
        Parameter(name, _known(hints.get(name, MISSING), method, {}), MISSING, Kind.POSITIONAL_OR_KEYWORD)
        for name in code.co_varnames[1:3]
    )
    if context.hint is Any and context.name not in (field_names(kind) or ()):
        context.hint = Context
    params_argument([params, context], kind, tool, of_execute=True)


def _known(annotation: Any, fn: Any, names: Mapping[str, Any]) -> Any:
    """The annotation itself, or the type that its text names if that is a name defined by now; otherwise Any."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(annotation, str):
        return Any if annotation is MISSING else annotation
    if annotation.partition("[")[0].rpartition(".")[2] == "Context":
        return Context
    scope = getattr(inspect.unwrap(fn), "__globals__", {})
    return names.get(annotation, scope.get(annotation, vars(builtins).get(annotation, Any)))


def _agrees(hint: Any, kind: Any) -> bool:
    """Whether params of this kind may be handed to a parameter with this annotation; True where nobody can tell."""
    origin = get_origin(hint)
    if origin is typing.Annotated:
        return _agrees(get_args(hint)[0], kind)
    if origin in (Union, UnionType):
        return any(_agrees(member, kind) for member in get_args(hint))
    if hint is Any or hint == kind:
        return True
    wanted, given = origin or hint, get_origin(kind) or kind
    if isinstance(kind, Mapping) or typing.is_typeddict(given):
        given = dict
    if not isinstance(wanted, type) or not isinstance(given, type):
        return wanted not in (str, int, float, bool, bytes, list, None)
    if typing.is_typeddict(wanted):
        return given is dict
    try:
        return issubclass(given, wanted)
    except TypeError:  # a protocol that cannot be asked
        return True


def _written(parameter: Parameter) -> str:
    hint = parameter.hint
    if hint is Any:
        return parameter.name
    return f"{parameter.name}: {getattr(hint, '__name__', None) if isinstance(hint, type) else hint}"
