"""A tool of a server as a tool of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.effect import Effect
from toolcrib.facts import Facts
from toolcrib.function import FunctionTool
from toolcrib.mcp.client.definitions import RemoteDefinition
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


class RemoteTool(FunctionTool[..., Any]):
    """A tool of a server. It is compiled at its first use; what is wrong with its result schema is a warning."""

    def __init__(self, name: str, remote: RemoteDefinition, server: ServerHandle) -> None:
        self.remote = remote
        self.server = server
        super().__init__(self._call, facts_of(name, remote, server.config), remote.input_schema, {}, None)

    async def _call(self, arguments: dict[str, Any], ctx: Context[Any]) -> Any:
        from toolcrib.mcp.client.calling import call_remote

        if self.server.identities is None:
            return await call_remote(ctx, self.server, self.remote, arguments)
        async with self.server.identities.caller_of(ctx) as caller:
            return await call_remote(ctx, caller, self.remote, arguments)

    def definition(self) -> Definition:
        """The compiled tool. Raises ToolDefinitionError if its input schema cannot be used."""
        if self._definition is None:
            from toolcrib.compiling.definition import Definition
            from toolcrib.compiling.schema_params import SchemaParams

            params = SchemaParams(self.remote.input_schema, tool=self.facts.name)
            description = self.facts.description
            self._definition = Definition(
                self._checked(), description, params, _start, "async", {}, Any, True
            )
        return self._definition

    def _checked(self) -> Facts:
        """The facts, without a schema of results that cannot be used."""
        from dataclasses import replace

        from toolcrib.compiling.output import Output
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


def _start(tool: Any, params: Any, ctx: Any) -> Any:
    return tool._call(params, ctx)


def facts_of(name: str, remote: RemoteDefinition, server: McpServer) -> Facts:
    """The facts of a remote tool.

    What a server says of the effects of its tools is a claim. As the protocol wants it, a tool of which nothing is said
    is destructive and reaches the open world, and the claims count only for servers that are `trusted`. `effects` of
    the configuration comes before both.
    """
    claims: Mapping[str, bool] = remote.annotations if server.trusted else {}
    effect = server.effect_of(remote.name)
    if effect is None:
        effect = _claimed(claims)
    description = remote.description or remote.title or remote.name
    if len(description) > MAX_DESCRIPTION:
        description = description[:MAX_DESCRIPTION] + " […]"
    return Facts(
        name,
        effect,
        frozenset(),
        title=on_one_line(remote.title, MAX_TITLE),
        description=description,
        idempotent=claims.get("idempotentHint", False) or effect is Effect.READ,
        open_world=claims.get("openWorldHint", True),
        timeout=server.start_timeout + server.max_timeout + LONGER,
        server=server.name,
        output_schema=remote.output_schema,
    )


def _claimed(claims: Mapping[str, bool]) -> Effect:
    """The effect that annotations claim."""
    if claims.get("readOnlyHint", False):
        return Effect.READ
    return Effect.DESTRUCTIVE if claims.get("destructiveHint", True) else Effect.WRITE
