"""What is known of a tool without looking at its types: the facts of its declaration, and their checks.

`Facts` is the one declaration. `FactOptions` is its form for type checkers, with the wider types that an author
may write; the checks at definition, `ToolSpec` and the table in the documentation follow from these two.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType, UnionType
from typing import Any, TypedDict, Union, get_args, get_origin, get_type_hints

from toolcrib.dataclass import dataclass, field
from toolcrib.effect import Effect
from toolcrib.errors import check_seconds
from toolcrib.hooks import HOOKS
from toolcrib.retry import Retry

__all__ = ["FactOptions", "Facts", "ListedFacts", "MaxOutput", "make_facts"]

# What MCP allows; codecs map what their provider does not take.
NAME = re.compile(r"[A-Za-z0-9_.\-]{1,128}\Z")
NOT_OF_CLASSES = (
    "a @classmethod cannot be decorated: after the class, write tool(Class.method, effect=..., secrets=...)"
)

NOT_WRITTEN: Any = object()  # stands for a fact that must be written and was left out


@dataclass(frozen=True, slots=True)
class MaxOutput:
    """How much of a text result a model is shown: bytes of UTF-8, and lines."""

    bytes: int = 50_000
    lines: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedFacts:
    """The facts that `Facts` and `ToolSpec` share: a list of tools for a model can carry them.

    Attributes:
        title: A name for people.
        category: For filters and for spans of telemetry.
        version: For filters and for spans of telemetry; a part of the tool's fingerprint.
        tags: For filters.
        examples: Sample inputs, shown in prompts and tried by `check_tool`.
        deferred: The tool is not listed to a model; it can be called by name.
        extras: Keys for the declaration of the tool, by provider, as they are:
            `{"anthropic": {"cache_control": {"type": "ephemeral"}}}`. A tool with one parameter, a text, that is
            declared with `{"openai": {"type": "custom"}}` takes that text as the model writes it, without JSON. A
            type of the provider's own, such as `{"anthropic": {"type": "memory_20250818", "name": "memory"}}`,
            declares the provider's tool in place of description and schema; other providers get a plain function.
    """

    title: str = ""
    category: str = ""
    version: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()
    deferred: bool = False
    extras: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def listed(self) -> dict[str, Any]:
        """These facts by name."""
        return {fact.name: getattr(self, fact.name) for fact in fields(ListedFacts)}


@dataclass(frozen=True, slots=True)
class Facts(ListedFacts):
    """The facts of a tool. `effect` and `secrets` have no default anywhere: its author decides on them.

    Attributes:
        name: 1 to 128 ASCII letters, digits, `_`, `-` or `.`. A function tool has its function's name if
            none is given.
        effect: The worst that running the tool can do.
        secrets: The parameters in which a secret may be referred to.
        description: What the model reads; without it the docstring.
        idempotent: Running it twice with the same arguments is the same as once.
        retry: How a failed call is tried again; needs `idempotent`.
        open_world: It reaches beyond what we control, as the web does; say `False` where it does not.
        timeout: Seconds that a call may take; without it the toolbox's.
        max_output: How much of a text result a model is shown: bytes, or a `MaxOutput(bytes, lines)`; without
            it the toolbox's.
        inline: A sync function runs on the event loop, not on a worker thread.
        server: The server that a foreign tool comes from.
        approval_ignores: The parameters that a remembered approval does not depend on, such as a timeout: an
            "always" holds for the same call with another value of them.
        delegates: All that it changes, it changes by calls that are decided on by themselves (`agent.run(within=ctx)`,
            `ctx.call`), so that calling it needs no approval of its own, and it can be called under `read_only`.
        output_schema: What the tool returns: a JSON Schema, or a type; without it the return annotation says so.
            Results are checked against it. It is sent to providers that take one (OpenAI Responses, Gemini).
    """

    name: str
    effect: Effect
    secrets: frozenset[str]
    description: str = ""
    idempotent: bool = False
    retry: Retry | None = None
    open_world: bool = True
    timeout: float | None = None
    max_output: MaxOutput | None = None
    inline: bool = False
    server: str = ""
    approval_ignores: tuple[str, ...] = ()
    delegates: bool = False
    output_schema: Any = None

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
    """The facts that have a default, as an author may write them; `Facts` says what they mean."""

    title: str
    category: str
    version: str
    tags: Collection[str]
    examples: Collection[Mapping[str, Any]]
    deferred: bool
    extras: Mapping[str, Mapping[str, Any]]
    description: str
    idempotent: bool
    retry: Retry | None
    open_world: bool
    timeout: float | None
    max_output: MaxOutput | int | None
    inline: bool
    server: str
    approval_ignores: Collection[str]
    delegates: bool
    output_schema: object  # a JSON Schema, or a type, also one such as list[int]


def make_facts(
    name: str,
    effect: Effect,
    secrets: Collection[str],
    parameters: Collection[str] | None,
    options: Mapping[str, Any],
    spellings: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Facts:
    """The facts of a declaration, checked. `parameters` are the names that `secrets` may use; None: any.

    `spellings`: the names under which an argument may come, for parameters with an alias. The facts have these names.

    Raises TypeError, where the tool is defined, for what cannot be right.
    """
    if missing := [
        fact for fact, value in (("effect", effect), ("secrets", secrets)) if value is NOT_WRITTEN
    ]:
        raise TypeError(
            f"tool {name!r}: {' and '.join(missing)} must be written, as in @tool(effect=Effect.READ, secrets=()): the "
            "worst that running it can do, and the parameters that may be given a secret"
        )
    if not isinstance(effect, Effect):
        raise TypeError(f"tool {name!r}: effect must be Effect.READ, WRITE or DESTRUCTIVE, got {effect!r}")
    if not isinstance(name, str) or not NAME.match(name):
        raise TypeError(
            f"tool name {name!r}: a name is 1 to 128 ASCII letters, digits, '_', '-' or '.'; give one with name="
        )
    if isinstance(secrets, str) or not isinstance(secrets, Collection):
        raise TypeError(
            f"tool {name!r}: secrets must be a collection of names, or () for none; got {secrets!r}"
        )
    if parameters is not None:
        parameters = {*parameters, *spellings}
    if secrets and parameters is not None and (unknown := sorted(set(secrets) - set(parameters))):
        raise TypeError(
            f"tool {name!r}: secrets names {unknown}, but its parameters are {sorted(parameters)}"
        )
    given = dict(options)
    for fact, value in given.items():
        _check_type(name, fact, value)
    check_seconds(f"tool {name!r}: ", timeout=given.get("timeout"))
    if isinstance(given.get("output_schema"), str | int | list | tuple):
        raise TypeError(
            f"tool {name!r}: output_schema must be a JSON Schema (a dict) or a type, got {given['output_schema']!r}"
        )
    retry = given.get("retry")
    if retry is not None:
        if retry.declares_idempotent:
            given["idempotent"] = True
        elif not given.get("idempotent"):
            raise TypeError(
                f"tool {name!r}: a retry runs the tool again, so it needs idempotent=True "
                "(or Retry.idempotent_transport(), which declares it)"
            )
    ignored = set(given.get("approval_ignores", ()))
    if parameters is not None and (unknown := sorted(ignored - set(parameters))):
        raise TypeError(
            f"tool {name!r}: approval_ignores names {unknown}, but its parameters are {sorted(parameters)}"
        )
    for collection in ("tags", "examples", "approval_ignores"):
        if collection in given:
            given[collection] = tuple(given[collection])
    if isinstance(given.get("max_output"), int):
        given["max_output"] = MaxOutput(bytes=given["max_output"])
    if ignored and spellings:
        given["approval_ignores"] = tuple(sorted(_as_written(ignored, spellings)))
    return Facts(name, effect, frozenset(_as_written(secrets, spellings)), **given)


def _as_written(names: Iterable[str], spellings: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The names under which arguments for these parameters may come."""
    for name in names:
        yield from spellings.get(name, (name,))


_TYPES: dict[str, tuple[type, ...]] = {}


def _check_type(tool: str, fact: str, value: Any) -> None:
    """Raise TypeError for a fact that does not exist, or whose value is not of the type in `FactOptions`."""
    if not _TYPES:
        _TYPES.update({name: _accepted(hint) for name, hint in get_type_hints(FactOptions).items()})
    types = _TYPES.get(fact)
    if types is None:
        from difflib import get_close_matches

        near = "".join(
            f"; do you mean {name!r}?" for name in get_close_matches(fact, (*_TYPES, *HOOKS), 1, 0.7)
        )
        raise TypeError(f"tool {tool!r}: there is no option {fact!r}{near}")
    right = isinstance(value, types)
    if isinstance(value, bool):  # a bool is an int in Python
        right = bool in types
    elif Collection in types and isinstance(value, str | Mapping):  # a single tag, a single example
        right = False
    if not right:
        words = " or ".join(_WORDS.get(kind, kind.__name__) for kind in types)
        raise TypeError(f"tool {tool!r}: {fact} must be {words}, got {value!r}")


_WORDS: dict[type, str] = {type(None): "None", Collection: "a list of them", Mapping: "a dict"}


def _accepted(hint: Any) -> tuple[type, ...]:
    """The types that an annotation accepts, for isinstance."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    plain = (get_origin(member) or member for member in members)
    return tuple(kind for member in plain for kind in ((int, float) if member is float else (member,)))
