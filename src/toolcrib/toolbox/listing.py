"""Making the list of tools that a model is shown in a turn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from toolcrib.call import CallKey
from toolcrib.compiling.definition import Definition
from toolcrib.context import Context, Host
from toolcrib.errors import ToolDefinitionError, belongs_to_caller
from toolcrib.spec import ToolSpec
from toolcrib.toolbox.closing import close_tool
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.operator_log import OperatorLog
from toolcrib.toolbox.policy import Policy
from toolcrib.toolbox.registry import Entry, Registry, made
from toolcrib.toolbox.runs import Runs
from toolcrib.toolbox.tool_list import ToolList

__all__ = ["ToolLists"]

SLICE = 50  # tools that are compiled at a time; then other work of the event loop goes on
DESCRIBING = 30.0  # seconds that a tool may take to say how it is described now


class ToolLists:
    """Makes the list of each turn. Without dynamic tools the same list is given again until something changes."""

    def __init__(
        self, registry: Registry, decider: Decider, host: Host, operator: OperatorLog, runs: Runs
    ) -> None:
        self._runs = runs
        self._registry = registry
        self._decider = decider
        self._host = host
        self._operator = operator
        self._last: tuple[tuple[int, ...], Policy, ToolList] | None = None

    async def current(self, run: str, deps: Any) -> ToolList:
        """The tools that the policy shows. Tools that cannot be compiled or described are set aside with a warning."""
        version, policy = self._registry.version, self._decider.policy
        if self._last is not None and self._last[0] == version and self._last[1] is policy:
            return self._last[2]
        ctx: Context[Any] = Context(deps, key=CallKey(run, 0, 0), host=self._host)
        described = self._runs.described(run)
        tool_list = await _made(self._registry, policy.shows, ctx, described)
        tool_list.why_hidden = getattr(policy, "why_hidden", None)
        if run and described:
            self._runs.keep_described(run, described)
        for name, reason in tool_list.broken.items():
            entry = self._registry.known(name)
            self._operator.set_aside(run, name, reason, entry and entry.supplied)
        self._last = None if tool_list.dynamic else (version, policy, tool_list)
        return tool_list


async def _made(
    registry: Registry, shows: Callable[[Any], bool], ctx: Context[Any], described: dict[Any, Definition]
) -> ToolList:
    """List the tools with their descriptions as of now. A tool that cannot be compiled or described is set aside.

    `described` keeps what the factories made earlier in the run, so that they are called once to be described.
    """
    tool_list = ToolList()
    names = await registry.names(tool_list.broken)
    tool_list.dynamic = bool(tool_list.broken)  # a toolset that could not be listed may be there next turn
    entries, specs, at_hand = tool_list.entries, tool_list.specs, registry.entries_at_hand()
    takes_partials, newly_compiled = False, 0
    for name in names:
        try:
            entry = at_hand.get(name) or await registry.entry(name)
            if entry is None:
                continue
            definition = entry.compiled
            if definition is None:
                newly_compiled += 1
                if newly_compiled % SLICE == 0:
                    import asyncio

                    await asyncio.sleep(0)
                definition = entry.definition()
            if definition is None:  # a factory, whose tool may be another one in the next run
                tool_list.dynamic = True
                definition = described.get(entry)
            if definition is None or definition.dynamic:
                tool_list.dynamic = True
                spec = await _described_now(tool_list, entry, shows, ctx, described)
                if spec is None:
                    continue
            elif definition.unavailable is not None and await _is_unavailable(
                tool_list, entry, definition, ctx
            ):
                continue
            elif shows(definition.facts):
                spec = definition.known_spec or definition.spec
                if spec.name != name:
                    spec = spec.renamed(name)
            else:
                continue
        except BaseException as problem:
            if belongs_to_caller(problem):
                raise
            tool_list.broken[name] = str(problem) or type(problem).__name__
            continue
        entries[name] = entry
        if entry.compiled is None or entry.compiled.on_partial is not None:
            takes_partials = True
        if not spec.deferred:
            specs.append(spec)
    tool_list.takes_partials = takes_partials
    return tool_list


async def _described_now(
    tool_list: ToolList,
    entry: Entry,
    shows: Callable[[Any], bool],
    ctx: Context[Any],
    described: dict[Any, Definition],
) -> ToolSpec | None:
    """The spec of a tool that a factory makes, or that has a dynamic description or schema; None to hide it."""
    tool, definition = await made(entry, ctx)
    if entry.definition() is None:
        described[entry] = definition
    try:
        if shows(definition.facts) and not (definition.unavailable and definition.unavailable(tool)):
            return await _dynamic_spec(tool_list, entry, tool, definition, ctx)
        return None
    finally:
        if entry.owned:
            await close_tool(entry, tool)


async def _is_unavailable(
    tool_list: ToolList, entry: Entry, definition: Definition, ctx: Context[Any]
) -> bool:
    """Whether the tool says that it is unavailable. It is asked each turn, because that may change."""
    tool_list.dynamic = True
    tool, _ = await made(entry, ctx)
    try:
        return bool(definition.unavailable and definition.unavailable(tool))
    finally:
        if entry.owned:
            await close_tool(entry, tool)


async def _dynamic_spec(
    tool_list: ToolList, entry: Entry, tool: Any, definition: Definition, ctx: Context[Any]
) -> ToolSpec:
    from toolcrib.dataclass import replace
    from toolcrib.toolbox.foreign import ForeignCall

    name, grace = entry.name, entry.grace

    spec = definition.spec
    describe, narrow = definition.hooks.get("dynamic_description"), definition.hooks.get("dynamic_schema")
    description, schema = spec.description, spec.input_schema
    if describe is not None:
        said = describe(tool, ctx)
        if inspect.isawaitable(said):
            said = await ForeignCall(said, DESCRIBING, grace)
        if said is not None and not isinstance(said, str):
            raise ToolDefinitionError(
                f"tool {name!r}: dynamic_description gives a text or None, got {said!r}"
            )
        description = said if said is not None else description
    if narrow is not None:
        from copy import deepcopy

        shaped = narrow(tool, deepcopy(schema), ctx)
        if inspect.isawaitable(shaped):
            shaped = await ForeignCall(shaped, DESCRIBING, grace)
        if not isinstance(shaped, dict):
            raise ToolDefinitionError(f"tool {name!r}: dynamic_schema gives the schema, got {shaped!r}")
        if shaped != schema:
            from toolcrib.compiling.schema_params import SchemaParams
            from toolcrib.schema.narrower import widening

            if wider := widening(schema, shaped):
                raise ToolDefinitionError(
                    f"tool {name!r}: dynamic_schema may only narrow the declared schema, and {wider}"
                )
            tool_list.turn_schemas[name] = SchemaParams(shaped, tool=name)
            schema = tool_list.turn_schemas[name].schema
    return replace(spec, name=name, description=description, input_schema=schema, _dialects={})
