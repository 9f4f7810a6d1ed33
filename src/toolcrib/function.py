"""Tools from plain functions: `@tool(...)`, and `tool(fn, ...)` at run time."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypedDict, TypeVar, overload

from toolcrib.effect import Effect
from toolcrib.facts import OptionalFacts, make_facts
from toolcrib.tool import VARARGS

if TYPE_CHECKING:
    from typing import Unpack

    from toolcrib.context import Context
    from toolcrib.definition import Definition
    from toolcrib.facts import Facts
    from toolcrib.spec import ToolSpec

A = ParamSpec("A")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

VARKEYWORDS = 0x08  # of a code object: it takes **kwargs


class Hooks(TypedDict, total=False):
    """What a tool class overrides as methods, a function tool is given as functions of the same meaning.

    `params` is the dict of the validated arguments (or the params object, where `params=` gave a type).
    """

    precheck: Callable[[Any], str | None]
    effect_for: Callable[[Any], Effect]
    resources: Callable[[Any], Any]
    accesses: Callable[[Any], Any]
    preview: Callable[[Any], Any]
    doubt: Callable[[Any], Any]
    with_secrets: Callable[[Any, Mapping[str, str]], Any]
    unavailable: Callable[[], str | None]
    on_partial: Callable[[Any, Context[Any]], None]
    dynamic_description: Callable[[Context[Any]], Any]
    dynamic_schema: Callable[[dict[str, Any], Context[Any]], Any]


class Declaration(OptionalFacts, Hooks, total=False):
    """Everything that may be said of a function tool besides its effect and secrets."""

    name: str
    params: Any


class FunctionTool(Generic[A, R_co]):
    """A tool made of a function; calling it calls the function, so that it can be unit-tested alone."""

    aclose = None

    def __init__(
        self, fn: Callable[A, R_co], facts: Facts, params: Any, hooks: Hooks, names: Mapping[str, Any] | None
    ) -> None:
        self.fn = fn
        self.facts = facts
        self.params = params
        self.hooks = hooks
        self._names = names
        self._definition: Definition | None = None
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: A.args, **kwargs: A.kwargs) -> R_co:
        return self.fn(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[Any, R_co]:
        """A decorated method becomes a tool of its object, without `self` among the parameters."""
        if instance is None:
            return self
        bound: FunctionTool[Any, R_co] = FunctionTool(
            self.fn.__get__(instance, owner),
            self.facts,
            self.params,
            self.hooks,
            self._names,
        )
        try:
            instance.__dict__[self.fn.__name__] = bound
        except AttributeError:  # an object with slots: made anew at each access
            pass
        return bound

    def definition(self) -> Definition:
        """The compiled tool; worked out at first use. Raises ToolDefinitionError, naming the parameter."""
        if self._definition is None:
            from toolcrib.definition import define_function

            self._definition = define_function(self, self._names)
            self._names = None
        return self._definition

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of the tool."""
        return self.definition().spec

    def check(self) -> None:
        """Compile now, so that a broken definition is found in a test and not in a run."""
        self.definition()

    def __repr__(self) -> str:
        return f"<FunctionTool {self.facts.name}>"


@overload
def tool(
    fn: Callable[A, R], /, *, effect: Effect, secrets: Collection[str], **declaration: Unpack[Declaration]
) -> FunctionTool[A, R]: ...
@overload
def tool(
    *, effect: Effect, secrets: Collection[str], **declaration: Unpack[Declaration]
) -> Callable[[Callable[A, R]], FunctionTool[A, R]]: ...
def tool(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect,
    secrets: Collection[str],
    **declaration: Unpack[Declaration],
) -> Any:
    """Make a function a tool; name, description, schema and parser follow from its signature and docstring.

    `effect` and `secrets` must be given. `params=` replaces the signature by a Pydantic model, a dataclass,
    a TypedDict or a raw JSON Schema; the function then takes `(params)` or `(params, ctx)`. A parameter
    annotated `Context` is handed the context and not shown to the model. Raises TypeError for a declaration
    that cannot be right; types are looked at when the tool is first used, or by `check()`.

    >>> @tool(effect=Effect.READ, secrets=())
    ... def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> add(1, 2), add
    (3, <FunctionTool add>)
    """
    locals_ = sys._getframe(1).f_locals
    if fn is None:
        return lambda fn: _make(fn, effect, secrets, declaration, locals_)
    return _make(fn, effect, secrets, declaration, locals_)


def _make(
    fn: Any, effect: Effect, secrets: Collection[str], declaration: Declaration, locals_: Mapping[str, Any]
) -> FunctionTool[..., Any]:
    given: dict[str, Any] = dict(declaration)
    params = given.pop("params", None)
    name = given.pop("name", None)
    if name is None:
        name = _name_of(fn)
    hooks: dict[str, Any] = {hook: given.pop(hook) for hook in Hooks.__annotations__ if hook in given}
    for hook, value in hooks.items():
        if not callable(value):
            raise TypeError(f"tool {name!r}: {hook} must be a function, got {value!r}")
    if not callable(fn):
        raise TypeError(f"tool {name!r}: expected a function, got {fn!r}")
    facts = make_facts(name, effect, secrets, _parameter_names(fn, params), given)  # type: ignore[arg-type]
    inner = "<locals>" in getattr(fn, "__qualname__", "")
    return FunctionTool(fn, facts, params, hooks, locals_ if inner else None)  # type: ignore[arg-type]


def _name_of(fn: Any) -> str:
    """The function's own name, a partial's function's, or an object's class's in snake case."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__name__", None)
    if isinstance(name, str):
        if name == "<lambda>":
            raise TypeError("a lambda has no name of its own: pass name=...")
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(fn).__name__).lower()


def _parameter_names(fn: Any, params: Any) -> Collection[str] | None:
    """The names of the parameters, without resolving a type; None where any name may come."""
    if isinstance(params, Mapping):
        properties = params.get("properties")
        return list(properties) if isinstance(properties, Mapping) else None
    if params is not None:
        from toolcrib.tool import _field_names

        return _field_names(params)
    filled: set[str] = set()
    while isinstance(fn, functools.partial):
        filled.update(fn.keywords)
        fn = fn.func
    code = getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
    if code is None or code.co_flags & VARKEYWORDS:
        return None
    extra = 1 if code.co_flags & VARARGS else 0
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + extra]
    return [name for name in names if name not in filled]
