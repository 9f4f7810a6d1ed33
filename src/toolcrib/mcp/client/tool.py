"""A tool of a server as a tool of ours."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.effect import Effect
from toolcrib.errors import ToolcribError
from toolcrib.facts import Facts
from toolcrib.function import FunctionTool
from toolcrib.hooks import FunctionHooks
from toolcrib.mcp.client.definitions import RemoteDefinition
from toolcrib.mcp.client.errors import DefinitionChanged
from toolcrib.mcp.client.pins import JudgedTool, Pins, PinState, definition_hash
from toolcrib.question import Preview
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.context import Context
    from toolcrib.mcp.client.server import ServerHandle
    from toolcrib.mcp.config import McpServer

__all__ = ["RemoteTool", "facts_of"]

LONGER = 5.0  # seconds by which the toolbox's deadline is later than that of the call
MAX_DESCRIPTION = 16_000  # characters
MAX_TITLE = 200
MAX_LINES = 200  # of a definition, or of its difference, in a question
VERSION = 16  # digits of a hash that an approval of a call is bound to


class RemoteTool(FunctionTool[..., Any]):
    """A tool of a server. It is compiled at its first use; what is wrong with its result schema is a warning.

    `judged` says what a model may be shown of its definition, and why a person must be asked; see `pins`, where
    the definition is pinned when a call of it runs.
    """

    def __init__(
        self,
        name: str,
        judged: JudgedTool,
        server: ServerHandle,
        pins: Pins,
    ) -> None:
        self.remote = judged.definition
        self.server = server
        self.judged = judged
        self._pins = pins
        self._pinned = judged.state is PinState.APPROVED
        facts = facts_of(name, self.remote, server.config, judged.shown)
        super().__init__(self._call, facts, judged.shown.input_schema, self._hooks(), None)

    def _hooks(self) -> FunctionHooks[Any]:
        """The hooks that make a call ask, if the definition is suspicious or has changed."""
        doubt, judged = self.judged.doubt, self.judged
        if doubt is None:
            return {}
        return {
            "doubt": lambda params: doubt,
            "preview": lambda params: Preview(judged.difference(MAX_LINES)),
        }

    async def _call(self, arguments: dict[str, Any], ctx: Context[Any]) -> Any:
        from toolcrib.mcp.client.calling import call_remote

        if self.server.identities is None:
            return await call_remote(ctx, self.server, self.remote, arguments, self._admit)
        async with self.server.identities.caller_of(ctx) as caller:
            return await call_remote(ctx, caller, self.remote, arguments, self._admit)

    async def _admit(self) -> None:
        """Pin the tool's definition right before an allowed call is sent.

        Raises DefinitionChanged if the server has another definition by now: it may have changed while it did not run.
        """
        now = await self.server.definition_now(self.remote.name)
        if now is None or (now is not self.remote and definition_hash(now) != self.judged.hash):
            raise DefinitionChanged
        if not self._pinned:
            if self._pins.stored:
                await asyncio.to_thread(self._pin)
            else:
                self._pin()

    def _pin(self) -> None:
        """Pin the definition that this call was decided on."""
        try:
            self._pins.approve(self.server.config, self.remote)
            self._pinned = True
        except ToolcribError as problem:
            self.server.warn(f"that tool {self.remote.name!r} is approved cannot be kept: {problem}")

    def definition(self) -> Definition:
        """The compiled tool. Raises ToolDefinitionError if its input schema cannot be used."""
        if self._definition is None:
            from toolcrib.compiling.definition import Definition
            from toolcrib.compiling.schema_params import SchemaParams

            params = SchemaParams(self.judged.shown.input_schema, tool=self.facts.name)
            description = self.facts.description
            hooks = {name: _of_params(hook) for name, hook in self._hooks().items()}
            self._definition = Definition(
                self._checked(), description, params, _start, "async", hooks, Any, True
            )
        return self._definition

    def _checked(self) -> Facts:
        """The facts, without a schema of results that cannot be used."""
        from toolcrib.compiling.output import Output
        from toolcrib.dataclass import replace
        from toolcrib.errors import ToolDefinitionError

        if self.facts.output_schema is None:
            return self.facts
        try:
            Output(Any, self.facts.name, self.facts.output_schema)
        except ToolDefinitionError as problem:
            self.server.warn(f"{problem}; its results are not checked")
            self.facts = replace(self.facts, output_schema=None)
        return self.facts

    def __repr__(self) -> str:
        return f"<RemoteTool {self.facts.name}>"


def _of_params(hook: Any) -> Callable[[Any, Any], Any]:
    """A hook of the function form as a definition calls it: with the tool."""
    return lambda tool, params: hook(params)


def _start(tool: Any, params: Any, ctx: Any) -> Any:
    return tool._call(params, ctx)


def facts_of(
    name: str, remote: RemoteDefinition, server: McpServer, shown: RemoteDefinition | None = None
) -> Facts:
    """The facts of a remote tool. `shown` is what a model may read of it, if that is not its definition.

    What a server says of the effects of its tools is a claim. As the protocol wants it, a tool of which nothing is said
    is destructive and reaches the open world, and the claims count only for servers that are `trusted`. `effects` of
    the configuration comes before both.
    """
    claims: Mapping[str, bool] = remote.annotations if server.trusted else {}
    effect = server.effect_of(remote.name)
    if effect is None:
        effect = _claimed(claims)
    read = shown or remote
    description = read.description or read.title or remote.name
    if len(description) > MAX_DESCRIPTION:
        description = description[:MAX_DESCRIPTION] + " […]"
    return Facts(
        name,
        effect,
        frozenset(),
        title=on_one_line(read.title, MAX_TITLE),
        description=description,
        idempotent=claims.get("idempotentHint", False) or effect is Effect.READ,
        open_world=claims.get("openWorldHint", True),
        timeout=server.start_timeout + server.max_timeout + LONGER,
        server=server.name,
        output_schema=read.output_schema,
        version=_version(remote, server),
    )


def effect_from(remote: RemoteDefinition, server: McpServer) -> str:
    """What gives the effect of a tool: "effects" (in the configuration), "annotations" (if trusted), "" (nothing)."""
    if server.effect_of(remote.name) is not None:
        return "effects"
    says = server.trusted and not {"readOnlyHint", "destructiveHint"}.isdisjoint(remote.annotations)
    return "annotations" if says else ""


def _version(remote: RemoteDefinition, server: McpServer) -> str:
    """A hash of a definition and of the server that gives it: an approval holds for both."""
    both = definition_hash(remote) + server.config_hash()
    return hashlib.sha256(both.encode()).hexdigest()[:VERSION]


def _claimed(claims: Mapping[str, bool]) -> Effect:
    """The effect that annotations claim."""
    if claims.get("readOnlyHint", False):
        return Effect.READ
    return Effect.DESTRUCTIVE if claims.get("destructiveHint", True) else Effect.WRITE
