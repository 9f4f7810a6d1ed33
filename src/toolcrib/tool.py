"""What a tool is: its facts, the class form, and what a model is told of it.

A tool is a leaf: it knows nothing of registries, providers, policies or loops, and reaches up only
through the `Context` that it is handed.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypedDict, TypeVar, get_args, get_origin

from toolcrib.errors import ToolError

if TYPE_CHECKING:
    from typing import Unpack

    from toolcrib.access import Access
    from toolcrib.call import Doubt, Preview
    from toolcrib.context import Context
    from toolcrib.definition import Definition

P = TypeVar("P")
R = TypeVar("R")

VARARGS = 0x04  # of a code object: it takes *args
NAME = re.compile(
    r"[A-Za-z0-9_.\-]{1,128}\Z"
)  # what MCP allows; codecs map what their provider does not take


class Effect(IntEnum):
    """The worst that running a tool can do; ordered, so that the worse of two is `max(a, b)`."""

    READ = 0
    WRITE = 1
    DESTRUCTIVE = 2

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently a failed call of an idempotent tool is tried again.

    `attempts` counts the first one; the delay starts at `delay` seconds and grows by `factor` up to
    `max_delay`, with up to `jitter` of it taken off at random; a failure's own `retry_after` wins, capped
    alike. Transient are a `ToolError(transient=True)` and the exceptions of `on`. All attempts share one
    deadline and one `ctx.idempotency_key`.
    """

    attempts: int = 3
    delay: float = 0.2
    factor: float = 2.0
    max_delay: float = 30.0
    jitter: float = 0.3
    on: tuple[type[BaseException], ...] = (ConnectionError, TimeoutError)
    declares_idempotent: bool = False

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts counts the first one, so it is at least 1; got {self.attempts!r}")

    @classmethod
    def idempotent_transport(cls, attempts: int = 3, **named: Any) -> Retry:
        """Retry lost connections, and declare with it that running the tool twice is the same as once."""
        return cls(attempts=attempts, declares_idempotent=True, **named)

    def is_transient(self, error: BaseException) -> bool:
        return isinstance(error, self.on) or (isinstance(error, ToolError) and error.transient)

    def delay_after(self, attempt: int, error: BaseException, random: float) -> float:
        """Seconds to wait after the failed `attempt` (from 1); `random` is in [0, 1)."""
        asked = getattr(error, "retry_after", None)
        if isinstance(asked, int | float) and asked >= 0:
            return min(float(asked), self.max_delay)
        return min(self.delay * self.factor ** (attempt - 1), self.max_delay) * (1 - self.jitter * random)


@dataclass(frozen=True, slots=True)
class MaxOutput:
    """How much of a text result a model is shown: characters in bytes of UTF-8, and lines."""

    bytes: int = 50_000
    lines: int = 2_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a tool without looking at its types.

    `effect` and `secrets` have no default anywhere a tool is declared: both are decisions of its author.
    `timeout` is in seconds (None: the box's); `examples` are sample inputs; `deferred` tools are not listed
    to a model until they are searched for; `server` names the server that a foreign tool comes from; `extras`
    (by provider name) go into that provider's declaration of the tool as they are, such as
    `{"anthropic": {"cache_control": {"type": "ephemeral"}}}`.
    """

    name: str
    effect: Effect
    secrets: frozenset[str]
    title: str = ""
    description: str = ""
    version: str = ""
    idempotent: bool = False
    retry: Retry | None = None
    open_world: bool = True
    timeout: float | None = None
    category: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()
    max_output: MaxOutput | None = None
    deferred: bool = False
    inline: bool = False
    server: str = ""
    extras: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def annotations(self) -> dict[str, Any]:
        """The facts as MCP's tool annotations, one to one."""
        hints: dict[str, Any] = {
            "readOnlyHint": self.effect is Effect.READ,
            "destructiveHint": self.effect is Effect.DESTRUCTIVE,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {"title": self.title, **hints} if self.title else hints


class OptionalFacts(TypedDict, total=False):
    """The facts that may be left out of a declaration; `Facts` says what they mean."""

    title: str
    description: str
    version: str
    idempotent: bool
    retry: Retry | None
    open_world: bool
    timeout: float | None
    category: str
    tags: Collection[str]
    examples: Collection[Mapping[str, Any]]
    max_output: MaxOutput | int | None
    deferred: bool
    inline: bool
    server: str
    extras: Mapping[str, Mapping[str, Any]]


FACT_TYPES: dict[str, Any] = {
    "title": str,
    "description": str,
    "version": str,
    "category": str,
    "server": str,
    "idempotent": bool,
    "open_world": bool,
    "deferred": bool,
    "inline": bool,
    "extras": Mapping,
    "retry": (Retry, type(None)),
    "timeout": (int, float, type(None)),
    "max_output": (MaxOutput, int, type(None)),
}


def _type_words(wanted: Any) -> str:
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    return " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)


def make_facts(
    name: str, effect: Effect, secrets: Collection[str], known: Collection[str] | None, given: OptionalFacts
) -> Facts:
    """The facts of a declaration, checked; `known` are the parameters' names, None where any name may come.

    Raises TypeError for what cannot be right: it is raised where the tool is defined.
    """
    if not isinstance(effect, Effect):
        raise TypeError(f"tool {name!r}: effect must be Effect.READ, WRITE or DESTRUCTIVE, got {effect!r}")
    if not isinstance(name, str) or not NAME.match(name):
        raise TypeError(
            f"tool name {name!r}: a name is 1 to 128 ASCII letters, digits, '_', '-' or '.'; give one with name="
        )
    if isinstance(secrets, str):
        raise TypeError(f"tool {name!r}: secrets must be a collection of names, got the string {secrets!r}")
    if secrets and known is not None and (unknown := sorted(set(secrets) - set(known))):
        raise TypeError(f"tool {name!r}: secrets names {unknown}, but its parameters are {sorted(known)}")
    named: dict[str, Any] = dict(given)
    for fact, value in named.items():
        wanted = FACT_TYPES.get(fact)
        if wanted is not None and (not isinstance(value, wanted) or (value is True and wanted is not bool)):
            raise TypeError(f"tool {name!r}: {fact} must be {_type_words(wanted)}, got {value!r}")
    if (named.get("timeout") or 1) <= 0:
        raise TypeError(f"tool {name!r}: timeout must be more than 0 seconds, got {named['timeout']!r}")
    retry = named.get("retry")
    if retry is not None:
        if retry.declares_idempotent:
            named["idempotent"] = True
        elif not named.get("idempotent"):
            raise TypeError(
                f"tool {name!r}: a retry runs the tool again, so it needs idempotent=True "
                "(or Retry.idempotent_transport(), which declares it)"
            )
    for plural in ("tags", "examples"):
        if plural in named:
            if isinstance(named[plural], str | Mapping):
                raise TypeError(
                    f"tool {name!r}: {plural} must be a list of them, got the one {named[plural]!r}"
                )
            named[plural] = tuple(named[plural])
    if isinstance(named.get("max_output"), int):
        named["max_output"] = MaxOutput(bytes=named["max_output"])
    try:
        return Facts(name, effect, frozenset(secrets), **named)
    except TypeError as problem:
        raise TypeError(
            f"tool {name!r}: {str(problem).replace('Facts.__init__()', 'the declaration')}"
        ) from None


@dataclass(slots=True, eq=False)
class ToolSpec:
    """What a model is told of a tool. `input_schema` and `output_schema` are canonical JSON Schemas."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    category: str = ""
    version: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()
    deferred: bool = False
    extras: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _dialects: dict[str, tuple[dict[str, Any], bool]] = field(default_factory=dict, repr=False)

    def in_dialect(self, name: str) -> dict[str, Any]:
        """The input schema as that dialect takes it; worked out once."""
        return self._lowered(name)[0]

    def fits(self, name: str) -> bool:
        """Whether every value that the input schema allows can be said in that dialect."""
        return self._lowered(name)[1]

    def _lowered(self, name: str) -> tuple[dict[str, Any], bool]:
        known = self._dialects.get(name)
        if known is None:
            from toolcrib.schema import to_dialect

            schema, losses = to_dialect(self.input_schema, name)
            known = self._dialects[name] = (schema, not any(loss.narrows for loss in losses))
        return known

    def fingerprint(self) -> str:
        """A sha256 over what identifies the tool to a model: name, version, description and schemas."""
        from toolcrib.call import fingerprint

        return fingerprint(
            self.name,
            [self.version, self.description, self.input_schema, self.output_schema, self.annotations],
        )

    def renamed(self, name: str) -> ToolSpec:
        return replace(self, name=name, _dialects=self._dialects)


class _class_property:
    """A property of the class, so that `EditFile.spec` needs no instance."""

    def __init__(self, read: Callable[[Any], ToolSpec]) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    def __get__(self, instance: object, owner: type[Any]) -> ToolSpec:
        return self._read(owner)


class Tool(Generic[P, R]):
    """A tool as a class: its params `P`, what it gives back `R`, and its facts as class keywords.

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
        cls, *, name: str, effect: Effect, secrets: Collection[str], **facts: Unpack[OptionalFacts]
    ) -> None:
        super().__init_subclass__()
        if cls.execute is Tool.execute:
            raise TypeError(f"tool {name!r}: class {cls.__name__} must define execute(self, params, ctx)")
        code = getattr(cls.execute, "__code__", None)
        if code is not None and code.co_argcount < 3 and not code.co_flags & VARARGS:
            raise TypeError(f"tool {name!r}: execute must take (self, params, ctx)")
        cls.facts = make_facts(name, effect, secrets, _field_names(params_type(cls)), facts)
        cls._definition = None

    def execute(
        self, params: P, ctx: Context[Any], /
    ) -> R | Awaitable[R] | AsyncIterator[Any] | Iterator[Any]:
        """Do the work. What is returned goes to the model; `ctx.report(...)` goes to the person."""
        raise NotImplementedError

    def precheck(self, params: P, /) -> str | None:
        """A pure, cheap refusal: the words for the model, or None to go on."""
        return None

    def effect_for(self, params: P, /) -> Effect:
        """The effect of one call; it may be lower than the declared one, never higher."""
        return self.facts.effect

    def resources(self, params: P, /) -> Iterable[str] | None:
        """What one call touches, as names; calls of one turn that are disjoint run side by side. None: anything."""
        return None

    def accesses(self, params: P, /) -> Iterable[Access] | None:
        """What one call reaches (files, commands, hosts), for the policy's rules; pure. None: nobody knows."""
        return None

    def preview(self, params: P, /) -> Preview | None:
        """What a person is shown of a call before they say yes, and a digest of what that rests on. May read,
        on a worker thread; called only when a question is asked, and never shown to the model."""
        return None

    def doubt(self, params: P, /) -> Doubt | None:
        """Why one call should be looked at; said in the question, and reason to ask one if it `must_ask`. Pure."""
        return None

    def with_secrets(self, params: P, values: Mapping[str, str], /) -> P:
        """The params of a call that names secrets, for a tool that takes the values elsewhere than in their place."""
        return params

    def unavailable(self) -> str | None:
        """Why the tool can do nothing now: it is not offered to a model, and not run. Asked each turn and call."""
        return None

    def on_partial(self, partial: Any, ctx: Context[Any], /) -> None:
        """Called as the arguments stream in, unvalidated, on the object that will execute: report, never act."""

    async def dynamic_description(self, ctx: Context[Any], /) -> str | None:
        """The description as the world is now, once a turn; None for the declared one."""
        return None

    async def dynamic_schema(self, schema: dict[str, Any], ctx: Context[Any], /) -> dict[str, Any]:
        """The input schema as the world is now, once a turn: a narrower copy of `schema`. Calls must fit both."""
        return schema

    async def aclose(self) -> None:
        """Called once after the call, on tools that were given as a class or a factory."""

    @classmethod
    def definition(cls) -> Definition:
        """The compiled tool: params, description, output; worked out at first use.

        Raises ToolDefinitionError, naming the parameter that cannot be compiled.
        """
        compiled = cls.__dict__.get("_definition")
        if compiled is None:
            from toolcrib.definition import define_class

            compiled = cls._definition = define_class(cls)
        return compiled

    @_class_property
    def spec(cls) -> ToolSpec:
        """What a model is told of the tool."""
        return cls.definition().spec

    @classmethod
    def check(cls) -> None:
        """Compile now, so that a broken definition is found in a test and not in a run."""
        cls.definition()

    def __repr__(self) -> str:
        return f"<Tool {self.facts.name}>"


HOOKS = (
    "precheck",
    "effect_for",
    "resources",
    "accesses",
    "preview",
    "doubt",
    "with_secrets",
    "unavailable",
    "on_partial",
    "dynamic_description",
    "dynamic_schema",
    "aclose",
)


def params_type(cls: type[Any]) -> Any:
    """The `P` that a tool class was given, wherever in its ancestry."""
    for ancestor in cls.__mro__:
        for base in ancestor.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Tool:
                return get_args(base)[0]
    raise TypeError(f"class {cls.__name__}: write the types of params and result, as in Tool[MyParams, str]")


def result_type(cls: type[Any]) -> Any:
    """The `R` that a tool class was given."""
    for ancestor in cls.__mro__:
        for base in ancestor.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Tool:
                return get_args(base)[1]
    return Any


def _field_names(kind: Any) -> set[str] | None:
    """The parameters of a model, dataclass or TypedDict, from its annotations: types are not resolved yet."""
    if isinstance(kind, TypeVar):
        return None
    names: set[str] = set()
    for ancestor in getattr(kind, "__mro__", ()):
        names.update(ancestor.__dict__.get("__annotations__", ()))  # noqa: RUF063 - cheap, and of this class alone
    return names or None
