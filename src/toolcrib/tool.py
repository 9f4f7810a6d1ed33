"""A tool as a class.

A tool is a leaf: it knows nothing of registries, providers, policies or loops, and reaches up only
through the `Context` that it is handed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_origin

from toolcrib.effect import Effect
from toolcrib.facts import FactOptions, Facts, make_facts
from toolcrib.hooks import HOOKS, check_not_async, check_spelling
from toolcrib.parameter_names import field_names, spellings, takes_positional

if TYPE_CHECKING:
    from typing import Unpack

    from toolcrib.access import Access
    from toolcrib.compiling.definition import Definition
    from toolcrib.context import Context
    from toolcrib.question import Doubt, Preview
    from toolcrib.spec import ToolSpec

__all__ = ["Tool"]

P = TypeVar("P")
R = TypeVar("R")


class _class_property:
    """A property that is read on the class: `EditFile.spec` needs no instance."""

    def __init__(self, read: Callable[[Any], ToolSpec]) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    def __get__(self, instance: object, owner: type[Any]) -> ToolSpec:
        return self._read(owner)


class Tool(Generic[P, R]):
    """A tool as a class: `P` is the type of its params, `R` that of its result; its facts are class keywords.

    `P` is a Pydantic model, a dataclass or a TypedDict. `execute` may be sync (it then runs on a worker
    thread, unless `inline=True`), async, or a generator whose values stream as progress.

    >>> from pydantic import BaseModel
    >>> class Echo(BaseModel):
    ...     text: str
    >>> class Repeat(Tool[Echo, str], name="repeat", effect=Effect.READ, secrets=()):
    ...     "Say the text again."
    ...     async def execute(self, params: Echo, ctx: Context) -> str:
    ...         return params.text
    """

    facts: ClassVar[Facts]
    _definition: ClassVar[Definition | None]

    def __init_subclass__(
        cls, *, name: str, effect: Effect, secrets: Collection[str], **facts: Unpack[FactOptions]
    ) -> None:
        super().__init_subclass__()
        if cls.execute is Tool.execute:
            raise TypeError(f"tool {name!r}: class {cls.__name__} must define execute(self, params, ctx)")
        if not takes_positional(cls.execute, 3):
            raise TypeError(f"tool {name!r}: execute must take (self, params, ctx)")
        check_spelling(name, vars(cls))
        check_not_async(name, {hook: getattr(cls, hook) for hook in _own_hooks(cls)})
        from toolcrib.compiling.params_argument import check_method

        params = params_type(cls)
        check_method(cls.execute, params, name)
        cls.facts = make_facts(name, effect, secrets, field_names(params), facts, spellings(params))
        cls._definition = None

    def execute(
        self, params: P, ctx: Context[Any], /
    ) -> R | Awaitable[R] | AsyncIterator[Any] | Iterator[Any]:
        """Do the work. The model is told what this returns; the person is shown what `ctx.report(...)` is given."""
        raise NotImplementedError

    def precheck(self, params: P, /) -> str | None:
        """A pure, cheap refusal in words for the model; None to go on. Called after the policy's decision,
        before a person is asked."""
        return None

    def would_fail(self, params: P, permits: Callable[[Access], bool], /) -> str | None:
        """Why one call cannot succeed as the world is now, in words for the model; None where it may.

        Called on a worker thread before a person is asked. It may read what `permits` says, which is what may be read
        unasked; where it would have to read more, it must give None.
        """
        return None

    def effect_for(self, params: P, /) -> Effect:
        """The effect of one call. It may be lower than the declared one, never higher."""
        return self.facts.effect

    def resources(self, params: P, /) -> Iterable[str] | None:
        """Names of what one call touches; calls of one turn that share none run side by side. None: it may touch
        anything, except names that begin with "process://"."""
        return None

    def accesses(self, params: P, /) -> Iterable[Access] | None:
        """The files, commands and hosts that one call reaches, for the policy's rules. Pure. None: unknown."""
        return None

    def base_folder(self) -> str:
        """The absolute folder that relative paths of `accesses` lie in; "" where it has none on this machine. So
        rules with absolute paths also hold where an agent works in another folder, and a project's approvals do not."""
        return ""

    def preview(self, params: P, /) -> Preview | None:
        """What a person who is asked sees of one call, and a digest of the state that it shows. It may read.

        Called on a worker thread, only when a question is asked, and never shown to the model.
        """
        return None

    def doubt(self, params: P, /) -> Doubt | None:
        """Why a person should look at one call: a line of the question. With `must_ask` a person is asked even
        if the policy would allow the call. Pure."""
        return None

    def with_secrets(self, params: P, values: Mapping[str, str], /) -> P:
        """The params with the secrets that a call names. Override it where a secret must not simply replace its
        reference: to hand it over as a variable, for example."""
        return params

    def unavailable(self) -> str | None:
        """Why the tool can do nothing now (a device that is gone): it is neither offered nor run. Asked in each
        turn and before each call."""
        return None

    def on_partial(self, partial: Any, ctx: Context[Any], /) -> None:
        """Called while the arguments stream in, unvalidated, on the object that will execute: report, never
        act."""

    async def dynamic_description(self, ctx: Context[Any], /) -> str | None:
        """The description as the world is now, once a turn; None for the declared one."""
        return None

    async def dynamic_schema(self, schema: dict[str, Any], ctx: Context[Any], /) -> dict[str, Any]:
        """The input schema as the world is now, once a turn: a narrower copy of `schema`. Calls must fit both."""
        return schema

    async def aclose(self) -> None:
        """Close the tool. Called once after the call, if the toolbox was given a class or a factory.

        The call has its result by then. It runs in a task of its own, so that a cancelled caller does not cut it short,
        and is given the toolbox's `grace` in seconds.
        """

    @classmethod
    def definition(cls) -> Definition:
        """The compiled tool: params, description, output. Made at the first use.

        Raises ToolDefinitionError with the name of the parameter that cannot be compiled.
        """
        compiled = cls.__dict__.get("_definition")
        if compiled is None:
            from toolcrib.compiling.compile import compile_class

            compiled = cls._definition = compile_class(
                cls.facts,
                execute=cls.execute,
                kind=params_type(cls),
                returns=result_type(cls),
                doc=cls.__dict__.get("__doc__") or "",
                hooks=_own_hooks(cls),
            )
        return compiled

    @_class_property
    def spec(cls) -> ToolSpec:
        """What a model is told of the tool."""
        return cls.definition().spec

    @classmethod
    def check(cls) -> None:
        """Compile now, so that a test finds a broken definition before a run does."""
        cls.definition()

    def __repr__(self) -> str:
        return f"<Tool {self.facts.name}>"


def _own_hooks(cls: type[Any]) -> list[str]:
    """The names of the hooks that a tool class or one of its bases defines."""
    return [hook for hook in HOOKS if getattr(cls, hook) is not getattr(Tool, hook)]


def params_type(cls: type[Any]) -> Any:
    """The `P` that a tool class was given, wherever in its ancestry."""
    types = _types_of(cls)
    if types is None:
        raise TypeError(
            f"class {cls.__name__}: write the types of params and result, as in Tool[MyParams, str]"
        )
    return types[0]


def result_type(cls: type[Any]) -> Any:
    """The `R` that a tool class was given."""
    types = _types_of(cls)
    return Any if types is None else types[1]


def _types_of(cls: type[Any]) -> tuple[Any, ...] | None:
    """The types that a tool class gives for Tool's `P` and `R`. A base `Tool[...]` counts before its other bases.

    A generic class between it and Tool may have given them names of its own.
    """
    bases = cls.__dict__.get("__orig_bases__", cls.__bases__)
    for base in bases:
        if get_origin(base) is Tool:
            return get_args(base)
    for base in bases:
        origin, given = get_origin(base) or base, get_args(base)
        if isinstance(origin, type) and issubclass(origin, Tool) and (types := _types_of(origin)):
            named = dict(zip(getattr(origin, "__parameters__", ()), given, strict=False))
            return tuple(_filled(type_, named) for type_ in types)
    return None


def _filled(type_: Any, named: Mapping[Any, Any]) -> Any:
    """A type with its type variables replaced by what they stand for."""
    variables = getattr(type_, "__parameters__", ())
    if any(variable in named for variable in variables):
        return type_[tuple(named.get(variable, variable) for variable in variables)]
    return named.get(type_, type_) if isinstance(type_, TypeVar) else type_
