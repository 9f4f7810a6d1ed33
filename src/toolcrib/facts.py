"""What is known of a tool without looking at its types: the facts of its declaration, and their checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from toolcrib.effect import Effect
from toolcrib.errors import ToolError

__all__ = ["FactOptions", "Facts", "MaxOutput", "Retry", "make_facts"]

NAME = re.compile(
    r"[A-Za-z0-9_.\-]{1,128}\Z"
)  # what MCP allows; codecs map what their provider does not take


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


class FactOptions(TypedDict, total=False):
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
    name: str,
    effect: Effect,
    secrets: Collection[str],
    known: Collection[str] | None,
    given: Mapping[str, Any],
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
