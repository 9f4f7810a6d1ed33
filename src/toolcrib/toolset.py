"""Toolsets list and supply tools: the protocol, and functions that filter, rename, prefix and combine toolsets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from types import MethodType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolDefinitionError
from toolcrib.facts import NOT_OF_CLASSES, Facts
from toolcrib.middleware import ExecuteStep, PrepareStep, Steps, as_steps
from toolcrib.parameter_names import constructor_needs

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from toolcrib.context import Context
    from toolcrib.function import FunctionTool
    from toolcrib.tool import Tool

__all__ = [
    "AnyTool",
    "Renamed",
    "StaticToolset",
    "ToolFactory",
    "ToolLike",
    "ToolWithSteps",
    "Toolset",
    "as_toolset",
    "combined",
    "filtered",
    "is_tool",
    "is_toolset",
    "name_of",
    "prefixed",
    "renamed",
    "reporters",
    "unwrapped",
    "with_middleware",
]

A_TOOLBOX = "a toolbox is handed in as toolbox=, as in Agent(model, toolbox=box)"

AnyTool: TypeAlias = "Tool[Any, Any] | FunctionTool[..., Any]"
"""A tool, in class form or in function form."""
ToolLike: TypeAlias = "AnyTool | type[Tool[Any, Any]] | ToolFactory | Renamed | ToolWithSteps"
"""What can be given as a tool: a tool, or a class or factory that makes one for each call."""


@dataclass(frozen=True, slots=True)
class ToolFactory:
    """Makes a tool for each call: `build(ctx)`, sync or async, gives a Tool that is closed after the call.

    In a run it is called once more: for the description that the model is shown.
    """

    name: str
    build: Callable[[Context[Any]], AnyTool | Awaitable[AnyTool]]

    def __post_init__(self) -> None:
        if not callable(self.build):
            raise TypeError(f"tool {self.name!r}: build must be a function of (ctx), got {self.build!r}")

    def __repr__(self) -> str:
        return f"<ToolFactory {self.name}>"


@dataclass(frozen=True, slots=True)
class Renamed:
    """A tool under another name."""

    name: str
    tool: ToolLike

    def __repr__(self) -> str:
        return f"<Renamed {self.name}>"


@dataclass(frozen=True, slots=True)
class ToolWithSteps:
    """A tool with middleware around its calls."""

    name: str
    tool: ToolLike
    steps: Steps

    def __repr__(self) -> str:
        return f"<ToolWithSteps {self.name}>"


def unwrapped(supplied: ToolLike) -> tuple[Any, Steps | None]:
    """The tool itself, without the names that toolsets gave it; and the middleware of the toolsets, if any."""
    steps = None
    while isinstance(supplied, Renamed | ToolWithSteps):
        if isinstance(supplied, ToolWithSteps):
            steps = supplied.steps if steps is None else supplied.steps.within(steps)
        supplied = supplied.tool
    return supplied, steps


def name_of(supplied: ToolLike) -> str:
    """The name under which a tool is registered. Raises TypeError for anything else than a tool."""
    if isinstance(supplied, ToolFactory | Renamed | ToolWithSteps):
        return supplied.name
    facts = getattr(supplied, "facts", None)
    # What decorates a tool has its facts, by functools.wraps, and a method below @classmethod those of its function.
    if isinstance(facts, Facts) and hasattr(supplied, "definition") and not isinstance(supplied, MethodType):
        return facts.name
    raise TypeError(
        f"expected a Tool class or instance, a @tool function or a ToolFactory, got {supplied!r}{_instead(supplied)}"
    )


def _instead(given: Any) -> str:
    """A hint in brackets that says what to hand in instead of this object, which is no tool; "" if that is unknown."""
    if isinstance(getattr(given, "facts", None), Facts):
        of_class = isinstance(given, MethodType)
        return f" ({NOT_OF_CLASSES if of_class else 'put @tool above the other decorators, which hide the tool'})"
    if hasattr(given, "call_turn"):
        return f" ({A_TOOLBOX})"
    if hasattr(given, "cr_frame"):
        return " (a call of an async function: hand in the function itself)"
    if hasattr(given, "as_tool"):
        return " (hand in agent.as_tool(name, description))"
    if isinstance(given, list | tuple):
        return " (put * before a list of tools: [*tools, other])"
    return " (decorate it with @tool(effect=..., secrets=...))" if callable(given) else ""


def check_constructor(supplied: ToolLike) -> None:
    """Raises ToolDefinitionError for a Tool class whose constructor needs arguments: a call makes an object of it."""
    inner, _ = unwrapped(supplied)
    if isinstance(inner, type) and (needed := constructor_needs(inner)):
        raise ToolDefinitionError(
            f"tool {name_of(supplied)!r}: class {inner.__name__} cannot be made without {', '.join(needed)}: supply an "
            f"instance, as in {inner.__name__}({', '.join(f'{name}=...' for name in needed)}), or a ToolFactory"
        )


@runtime_checkable
class Toolset(Protocol):
    """Lists tools and supplies them by name. It is entered before its first use, and left at the end.

    `version` changes whenever the list changes, so that a toolbox knows when to list again.
    """

    @property
    def version(self) -> int:
        """A number that changes whenever the list of tools changes."""
        ...

    async def names(self) -> list[str]:
        """The names of its tools."""
        ...

    async def get(self, name: str) -> ToolLike | None:
        """The tool of this name; None where it has none."""
        ...

    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *exc: object) -> None: ...


def is_tool(value: object) -> TypeGuard[ToolLike]:
    """Whether this is a Tool class or instance, a `@tool` function, a ToolFactory or a renamed tool."""
    return isinstance(value, ToolFactory | Renamed) or isinstance(getattr(value, "facts", None), Facts)


def is_toolset(tools: ToolLike | Toolset) -> TypeIs[Toolset]:
    """Whether this is a toolset, and not a single tool."""
    return not hasattr(tools, "facts") and isinstance(tools, Toolset)


class StaticToolset:
    """A toolset of given tools."""

    def __init__(self, tools: Iterable[ToolLike]) -> None:
        self._changes = 0
        self._tools: dict[str, ToolLike] = {}
        for supplied in tools:
            self.add(supplied)

    def add(self, supplied: ToolLike) -> None:
        """Add a tool. Raises ValueError if its name is taken."""
        name = name_of(supplied)
        check_constructor(supplied)
        if name in self._tools:
            raise ValueError(f"two tools are named {name!r}; rename one or pass override=True to the toolbox")
        self._tools[name] = supplied
        self._changes += 1

    def remove(self, name: str) -> None:
        """Remove a tool. Raises KeyError if there is none of that name."""
        del self._tools[name]
        self._changes += 1

    @property
    def version(self) -> int:
        return self._changes

    async def names(self) -> list[str]:
        return list(self._tools)

    async def get(self, name: str) -> ToolLike | None:
        return self._tools.get(name)

    async def __aenter__(self) -> StaticToolset:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None


class _RenamingToolset:
    """A toolset under other names: `outer(inner name)` gives the shown name, or None to hide the tool."""

    def __init__(self, inner: Toolset, outer: Callable[[str], str | None]) -> None:
        self._inner = inner
        self._outer = outer
        self._shown: dict[str, str] = {}
        self._shown_version = -1

    @property
    def version(self) -> int:
        return self._inner.version

    async def names(self) -> list[str]:
        if self._shown_version != self._inner.version:
            shown: dict[str, str] = {}
            for name in await self._inner.names():
                outer = self._outer(name)
                if outer is None:
                    continue
                if outer in shown:
                    raise ValueError(f"two tools would be named {outer!r}: {shown[outer]!r} and {name!r}")
                shown[outer] = name
            self._shown, self._shown_version = shown, self._inner.version
        return list(self._shown)

    async def get(self, name: str) -> ToolLike | None:
        if self._shown_version != self._inner.version:
            await self.names()
        inner = self._shown.get(name)
        if inner is None:
            return None
        supplied = await self._inner.get(inner)
        return supplied if supplied is None or inner == name else Renamed(name, supplied)

    async def __aenter__(self) -> _RenamingToolset:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._inner.__aexit__(*exc)


def as_toolset(tools: Toolset | Iterable[ToolLike]) -> Toolset:
    """A toolset unchanged, or a new toolset of the given tools."""
    given: Any = tools
    if not isinstance(given, Toolset | Iterable):
        hint = f": write [{given!r}]" if is_tool(given) else ""
        raise TypeError(f"expected a list of tools or a toolset; got {given!r}{hint}")
    return tools if isinstance(tools, Toolset) else StaticToolset(tools)


def filtered(tools: Toolset | Iterable[ToolLike], keep: Callable[[str], bool]) -> Toolset:
    """The tools whose name `keep` accepts."""
    if not callable(keep):
        raise TypeError(f"keep must be a function of one name, such as {keep!r}.__contains__, got {keep!r}")
    return _RenamingToolset(as_toolset(tools), lambda name: name if keep(name) else None)


def renamed(tools: Toolset | Iterable[ToolLike], names: Mapping[str, str]) -> Toolset:
    """The tools under other names: `names` maps old to new; the others keep theirs."""
    if not isinstance(names, Mapping):
        raise TypeError(f"names must map old names to new ones, got {names!r}")
    return _RenamingToolset(as_toolset(tools), lambda name: names.get(name, name))


def prefixed(tools: Toolset | Iterable[ToolLike], prefix: str) -> Toolset:
    """The tools with a prefix before their names."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be a text, got {prefix!r}")
    return _RenamingToolset(as_toolset(tools), lambda name: prefix + name)


class _ToolsetWithMiddleware(_RenamingToolset):
    """The same tools with middleware around their calls."""

    def __init__(self, inner: Toolset, steps: Steps) -> None:
        super().__init__(inner, lambda name: name)
        self._steps = steps

    async def get(self, name: str) -> ToolLike | None:
        supplied = await super().get(name)
        return None if supplied is None else ToolWithSteps(name, supplied, self._steps)


def reporters(toolset: Toolset) -> Iterator[Any]:
    """The toolsets within this one, or this one itself, that report to runs what happens to them.

    Such a toolset has a method `for_run(emit)`, which gives an object that a run owns (`toolbox.owned.OwnedByRun`): it
    emits events of the run, and has news for the model.
    """
    if hasattr(toolset, "for_run"):
        yield toolset
    elif isinstance(toolset, _RenamingToolset):
        yield from reporters(toolset._inner)
    elif isinstance(toolset, _CombinedToolset):
        for inner in toolset._toolsets:
            yield from reporters(inner)


def with_middleware(
    tools: Toolset | Iterable[ToolLike],
    *,
    around_prepare: Iterable[PrepareStep] = (),
    around_execute: Iterable[ExecuteStep] = (),
) -> Toolset:
    """The same tools with steps around the preparation and the execution of their calls; see `toolcrib.middleware`.

    The steps of the toolbox stand outside of these, and so do the steps of a toolset that wraps this one.
    """
    return _ToolsetWithMiddleware(as_toolset(tools), as_steps(around_prepare, around_execute))


class _CombinedToolset:
    """Several toolsets as one. A name is looked up in their order."""

    def __init__(self, toolsets: list[Toolset]) -> None:
        self._toolsets = toolsets
        self._stack = AsyncExitStack()

    @property
    def version(self) -> int:
        return sum(toolset.version for toolset in self._toolsets)

    async def names(self) -> list[str]:
        seen: dict[str, None] = {}
        for toolset in self._toolsets:
            for name in await toolset.names():
                if name in seen:
                    raise ValueError(
                        f"two toolsets supply a tool named {name!r}; prefix or filter one of them"
                    )
                seen[name] = None
        return list(seen)

    async def get(self, name: str) -> ToolLike | None:
        for toolset in self._toolsets:
            supplied = await toolset.get(name)
            if supplied is not None:
                return supplied
        return None

    async def __aenter__(self) -> _CombinedToolset:
        async with AsyncExitStack() as stack:
            for toolset in self._toolsets:
                await stack.enter_async_context(toolset)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()


def combined(*tools: Toolset | Iterable[ToolLike]) -> Toolset:
    """Several toolsets as one. Listing raises ValueError if two of them supply the same name."""
    return _CombinedToolset([as_toolset(item) for item in tools])
