"""The registered tools: the caller's, the built-in ones, and those of toolsets."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from toolcrib.compiling.definition import Definition
from toolcrib.context import Context
from toolcrib.errors import ToolDefinitionError
from toolcrib.facts import Facts
from toolcrib.function import FunctionTool
from toolcrib.prepared import ResolvedTool
from toolcrib.tool import Tool
from toolcrib.toolbox.operator_log import Mask, log_failure, unmasked
from toolcrib.toolset import ToolFactory, ToolLike, Toolset, check_constructor, name_of, unwrapped

__all__ = ["Entry", "Registry", "made"]

T = TypeVar("T")

MAKING = 60.0  # seconds that a factory may take to make the object of a call


class Entry:
    """One registered tool under its shown name.

    `make` gives the object of a call, which is closed after the call where it is `owned`; `steps` are the middleware of
    the toolsets that the tool comes from.
    """

    __slots__ = (
        "brief", "compiled", "grace", "large", "make", "mask", "name", "owned", "resolved", "steps", "supplied",
    )  # fmt: skip

    def __init__(self, name: str, supplied: ToolLike, grace: float, mask: Mask = unmasked) -> None:
        self.name, self.mask = name, mask
        self.grace = grace  # seconds that making or closing an object may go on after it was cancelled
        inner, self.steps = unwrapped(supplied)
        self.supplied = inner
        # Known definitions are taken now, because making a long list looks into each entry.
        self.compiled: Definition | None = inner._definition if type(inner) is FunctionTool else None
        self.resolved: ResolvedTool | None = None  # for an instance: the same for all its calls
        self.make: Callable[[Context[Any]], Any] | None = None
        self.owned = False
        self.brief = True  # whether its last run on a worker thread ended at once
        self.large = False  # whether its last result was a large one
        if isinstance(inner, ToolFactory):
            self.make, self.owned = inner.build, True
        elif isinstance(inner, type) and issubclass(inner, Tool):
            check_constructor(supplied)
            self.make, self.owned = (lambda _: inner()), True

    def definition(self) -> Definition | None:
        """The compiled tool; None for a factory, whose tool is known only when it was made."""
        if self.compiled is None and not isinstance(self.supplied, ToolFactory):
            self.compiled = self.supplied.definition()
        return self.compiled

    def log_failure(self, hook: str) -> None:
        """Log that a hook of the tool raised, without secrets."""
        log_failure(f"{hook} of tool {self.name} failed", self.mask)


async def made(entry: Entry, ctx: Context[Any]) -> tuple[Any, Definition]:
    """The object of one call and its compiled definition."""
    if entry.make is None:
        return entry.supplied, entry.definition()  # type: ignore[return-value]
    tool = entry.make(ctx)
    if inspect.isawaitable(tool):
        from toolcrib.toolbox.foreign import ForeignCall

        tool = await ForeignCall(tool, MAKING, entry.grace)
    definition = getattr(tool, "definition", None)
    if definition is None or isinstance(tool, type):
        what = f"its factory gave {tool!r}, which is not a tool: give a Tool object or a @tool function"
        raise ToolDefinitionError(f"tool {entry.name!r}: {what}")
    return tool, definition()


class Registry:
    """The caller's tools, which come before built-in ones, and toolsets, which are asked when needed.

    Names are looked up in a dict, and toolsets list only when their version changed, so that ten thousand tools cost
    a call nothing.
    """

    def __init__(self, *, override: bool, grace: float, mask: Mask = unmasked) -> None:
        self._override = override
        self.grace, self.mask = grace, mask
        self._tools: dict[str, Entry] = {}
        self._builtin: dict[str, Entry] = {}
        self._toolsets: list[Toolset] = []
        self.lent: dict[str, Entry] = {}  # toolsets' tools, which may change at any time
        self._changes = 0
        # Tools that calls resolved without asking a toolset or a factory. A new dict after each change.
        self.at_hand: dict[str, ResolvedTool] = {}

    def add(self, supplied: ToolLike, *, override: bool = False, builtin: bool = False) -> None:
        """Register a tool; ValueError when the caller has one of that name and does not override it."""
        name = name_of(supplied)
        place = self._builtin if builtin else self._tools
        if name in place and not (override or self._override):
            raise ValueError(f"two tools are named {name!r}; rename one or pass override=True")
        place[name] = Entry(name, supplied, self.grace, self.mask)
        self.changed()

    def add_toolset(self, toolset: Toolset) -> None:
        self._toolsets.append(toolset)
        self.changed()

    def remove(self, name: str) -> None:
        """Remove a tool of the caller's; KeyError when there is none."""
        del self._tools[name]
        self.changed()

    def changed(self) -> None:
        """Note that other tools may stand behind the names."""
        self._changes += 1
        self.at_hand = {}

    def has(self, name: str) -> bool:
        """Whether a tool of this name was given, by the caller or as a built-in one; no toolset is asked."""
        return name in self._tools or name in self._builtin

    def builtin(self, name: str) -> ToolLike | None:
        """The built-in tool of this name."""
        return self._builtin[name].supplied if name in self._builtin else None

    def given_facts(self) -> tuple[list[Facts], bool]:
        """The facts of the tools that were given; and whether toolsets and factories may supply more."""
        supplied = [entry.supplied for entry in {**self._builtin, **self._tools}.values()]
        known = [tool.facts for tool in supplied if not isinstance(tool, ToolFactory)]
        return known, bool(self._toolsets) or len(known) < len(supplied)

    @property
    def toolsets(self) -> tuple[Toolset, ...]:
        return tuple(self._toolsets)

    @property
    def version(self) -> tuple[int, ...]:
        return (self._changes, *(toolset.version for toolset in self._toolsets))

    async def names(self, broken: dict[str, str] | None = None) -> list[str]:
        """All names in a stable order; ValueError when two of the caller's sources claim one name.

        A toolset that cannot list is left out, and named in `broken` with the reason.
        """
        if not self._toolsets:
            return sorted({**self._builtin, **self._tools})  # not a set: its order is nearly sorted
        names = dict.fromkeys(self._tools)
        for toolset in self._toolsets:
            try:
                listed = await self._asked(toolset.names())
            except Exception as problem:
                if broken is not None:
                    broken[f"toolset {type(toolset).__name__}"] = f"it cannot be listed: {problem}"
                continue
            for name in listed:
                if name in names and not self._override:
                    clash = f"two tools are named {name!r}; prefix or filter one, or pass override=True"
                    if not getattr(toolset, "remote", False):  # servers rename tools at any time
                        raise ValueError(clash)
                    if broken is not None:
                        broken[f"{name} of {type(toolset).__name__}"] = clash
                names[name] = None
        return sorted({**names, **dict.fromkeys(self._builtin)})

    async def _asked(self, answer: Awaitable[T]) -> T:
        """What a toolset answers. Raises its errors, and only the caller's own cancellation."""
        from toolcrib.toolbox.foreign import ForeignCall

        return await ForeignCall(answer, None, self.grace)

    async def all_names(self) -> list[str]:
        """All names for suggestions; name clashes and failing toolsets are ignored."""
        try:
            return await self.names()
        except ValueError:
            return sorted(self._tools.keys() | self._builtin.keys())

    def entries_at_hand(self) -> dict[str, Entry]:
        """The entries that `known` finds, by their names."""
        if not self._toolsets:
            return {**self._builtin, **self._tools}
        return {} if self._override else self._tools

    def known(self, name: str) -> Entry | None:
        """The entry of a name that is found without asking a toolset; None where a toolset has to be asked."""
        if not self._toolsets:
            return self._tools.get(name) or self._builtin.get(name)
        return None if self._override else self._tools.get(name)

    async def entry(self, name: str) -> Entry | None:
        """The entry of any tool; the same object as long as the same tool stands behind the name."""
        known = self.known(name)
        if known is not None:
            return known
        for toolset in reversed(self._toolsets):
            supplied = await self._asked(toolset.get(name))
            if supplied is not None:
                entry = self.lent.get(name)
                inner, steps = unwrapped(supplied)
                if entry is None or entry.supplied is not inner or entry.steps != steps:
                    entry = self.lent[name] = Entry(name, supplied, self.grace, self.mask)
                return entry
        self.lent.pop(name, None)
        return self._tools.get(name) or self._builtin.get(name)
