"""A tool as a function: `@tool(...)`, or `tool(fn, ...)` at run time."""

from __future__ import annotations

import functools
import re
import reprlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from toolcrib.effect import Effect
from toolcrib.facts import NOT_OF_CLASSES, NOT_WRITTEN, FactOptions, make_facts
from toolcrib.hooks import HOOKS, FunctionHooks, check_not_async
from toolcrib.parameter_names import field_names, function_parameters, spellings

if TYPE_CHECKING:
    from typing import Unpack

    from toolcrib.compiling.definition import Definition
    from toolcrib.facts import Facts
    from toolcrib.spec import ToolSpec

__all__ = ["FunctionTool", "ToolOptions", "tool"]

A = ParamSpec("A")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
P = TypeVar("P")


class ToolOptions(FactOptions, FunctionHooks[P], Generic[P], total=False):
    """The options of `@tool` besides effect, secrets and params: a name, the facts that have defaults, and hooks."""

    name: str


class FunctionTool(Generic[A, R_co]):
    """A tool made from a function. Calling it calls the function, so that it can be unit-tested alone."""

    aclose = None

    def __init__(
        self,
        fn: Callable[A, R_co],
        facts: Facts,
        params: Any,
        hooks: FunctionHooks[Any],
        local_names: Mapping[str, Any] | None,
    ) -> None:
        self.fn = fn
        self.facts = facts
        self.params = params
        self.hooks = hooks
        self._local_names = local_names
        self._definition: Definition | None = None
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: A.args, **kwargs: A.kwargs) -> R_co:
        return self.fn(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[Any, R_co]:
        """Make a decorated method a tool of its object, without `self` among the parameters."""
        if instance is None:
            return self
        if isinstance(instance, type):  # below @classmethod, as Python up to 3.12 calls it
            raise TypeError(f"tool {self.facts.name!r}: {NOT_OF_CLASSES}")
        bound: FunctionTool[Any, R_co] = FunctionTool(
            self.fn.__get__(instance, owner),
            self.facts,
            self.params,
            self.hooks,
            self._local_names,
        )
        try:
            instance.__dict__[self.fn.__name__] = bound
        except AttributeError:  # an object with slots: a new tool at each access
            pass
        return bound

    def definition(self) -> Definition:
        """The compiled tool, made at the first use. Raises ToolDefinitionError with the name of the parameter."""
        if self._definition is None:
            from toolcrib.compiling.compile import compile_function

            hooks: dict[str, Any] = dict(self.hooks)
            self._definition = compile_function(
                self.facts,
                self.fn,
                kind=self.params,
                hooks=hooks,
                params_hooks=_params_hooks(),
                local_names=self._local_names,
            )
            self._local_names = None
        return self._definition

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of the tool."""
        return self.definition().spec

    def check(self) -> None:
        """Compile now, so that a test finds a broken definition before a run does."""
        self.definition()

    def __repr__(self) -> str:
        return f"<FunctionTool {self.facts.name}>"


@overload
def tool(
    fn: Callable[A, R],
    /,
    *,
    effect: Effect,
    secrets: Collection[str],
    params: type[P],
    **options: Unpack[ToolOptions[P]],
) -> FunctionTool[A, R]: ...
@overload
def tool(
    fn: Callable[A, R],
    /,
    *,
    effect: Effect,
    secrets: Collection[str],
    params: Mapping[str, Any] | None = None,
    **options: Unpack[ToolOptions[dict[str, Any]]],
) -> FunctionTool[A, R]: ...
@overload
def tool(
    *, effect: Effect, secrets: Collection[str], params: type[P], **options: Unpack[ToolOptions[P]]
) -> Callable[[Callable[A, R]], FunctionTool[A, R]]: ...
@overload
def tool(
    *,
    effect: Effect,
    secrets: Collection[str],
    params: Mapping[str, Any] | None = None,
    **options: Unpack[ToolOptions[dict[str, Any]]],
) -> Callable[[Callable[A, R]], FunctionTool[A, R]]: ...
def tool(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = NOT_WRITTEN,
    secrets: Collection[str] = NOT_WRITTEN,
    params: Any = None,
    **options: Unpack[ToolOptions[Any]],
) -> Any:
    """Make a function a tool. Its signature and docstring give the name, description, schema and parser.

    `effect` and `secrets` must be given; `ToolOptions` lists the other options. `params=` replaces the
    signature by a Pydantic model, a dataclass, a TypedDict or a raw JSON Schema; the function then takes
    `(params)` or `(params, ctx)`, never their fields. A parameter annotated `Context` is handed the context and
    is not shown to the model. Raises TypeError for a declaration that cannot be right. Types are looked at when
    the tool is first used, or by `check()`.

    >>> @tool(effect=Effect.READ, secrets=())
    ... def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> add(1, 2), add
    (3, <FunctionTool add>)
    """
    locals_ = sys._getframe(1).f_locals
    if fn is None:
        return lambda fn: _make(fn, effect, secrets, params, options, locals_)
    return _make(fn, effect, secrets, params, options, locals_)


def _make(
    fn: Any,
    effect: Effect,
    secrets: Collection[str],
    params: Any,
    options: ToolOptions[Any],
    locals_: Mapping[str, Any],
) -> FunctionTool[..., Any]:
    given: dict[str, Any] = dict(options)
    if isinstance(fn, str):
        raise TypeError(f"tool({fn!r}): a name is an option: @tool(name={fn!r}, effect=..., secrets=...)")
    name = given.pop("name", None)
    if name is None:
        name = _name_of(fn)
    hooks: dict[str, Any] = {hook: given.pop(hook) for hook in HOOKS if hook in given}
    for hook, value in hooks.items():
        if not callable(value):
            raise TypeError(f"tool {name!r}: {hook} must be a function, got {value!r}")
    check_not_async(name, hooks)
    if not callable(fn):
        hint = f": {NOT_OF_CLASSES}" if isinstance(fn, classmethod) else ""
        raise TypeError(f"tool {name!r}: expected a function, got {reprlib.repr(fn)}{hint}")
    if isinstance(fn, type) and (why := _why_no_function(fn)):
        raise TypeError(f"tool {name!r}: expected a function, got the class {fn.__name__}: {why}")
    if params is not None:
        from toolcrib.compiling.params_argument import check_params_argument

        check_params_argument(fn, params, name, locals_)
    known = function_parameters(fn) if params is None else field_names(params)
    facts = make_facts(name, effect, secrets, known, given, spellings(params))
    inner = "<locals>" in getattr(fn, "__qualname__", "")
    return FunctionTool(fn, facts, params, hooks, locals_ if inner else None)  # type: ignore[arg-type] # HOOKS are its keys


def _why_no_function(cls: type) -> str:
    """Why a class is no function of a tool, and what to write instead; "" where a call may make an object of it."""
    from toolcrib.tool import Tool

    if issubclass(cls, Tool):
        return "it is a tool without @tool, whose effect and secrets are class keywords"
    if callable(getattr(cls, "execute", None)):
        return "derive it from Tool[Params, Result], and write effect and secrets as class keywords"
    if "__call__" in vars(cls):
        return f"hand in an object of it, as in tool({cls.__name__}(), effect=..., secrets=...)"
    return ""


def _name_of(fn: Any) -> str:
    """The name of a function, of a partial's function, or of a callable object's class in snake case."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__name__", None)
    if isinstance(name, str):
        if name == "<lambda>":
            raise TypeError("a lambda has no name of its own: pass name=...")
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(fn).__name__).lower()


@functools.cache
def _params_hooks() -> frozenset[str]:
    """The hooks that take the params, as the methods of `Tool` declare them."""
    import inspect

    from toolcrib.tool import Tool

    return frozenset(hook for hook in HOOKS if "params" in inspect.signature(getattr(Tool, hook)).parameters)
