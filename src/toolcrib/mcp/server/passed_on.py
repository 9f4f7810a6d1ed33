"""Resources and prompts of the servers behind a gateway, passed on. No rule decides about these, only about tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError

from toolcrib.mcp.client.errors import ConnectionLost, ServerUnavailable
from toolcrib.mcp.client.pages import read_list
from toolcrib.mcp.concealment import concealed

if TYPE_CHECKING:
    from toolcrib.mcp.client.connection import Connection
    from toolcrib.mcp.client.toolset import McpToolset

__all__ = ["PassedOnPrompts", "PassedOnResources"]

SEPARATOR = "__"  # between the name of a server and that of its prompt
TIME = 60.0  # seconds that a server has to answer
FAILURES = (MCPError, ServerUnavailable, ConnectionLost, TimeoutError)


class _Servers:
    """The servers of a toolset. One that fails is left out, so that it takes nothing from the others."""

    def __init__(self, toolset: McpToolset, capability: str) -> None:
        self._toolset = toolset
        self._capability = capability

    async def _connections(self) -> dict[str, Connection]:
        found = {}
        for status in self._toolset.servers():
            try:
                connection = await self._toolset.server(status.name).connected()
            except FAILURES:
                continue
            if self._capability in connection.info.get("capabilities", {}):
                found[status.name] = connection
        return found

    async def _listed(self, method: str, key: str) -> list[tuple[str, dict[str, Any]]]:
        """What all servers list, each item with the name of its server."""
        found: list[tuple[str, dict[str, Any]]] = []
        for name, connection in (await self._connections()).items():
            try:
                items, _, _ = await read_list(connection, method, key)
            except FAILURES:
                continue
            found += [(name, dict(item)) for item in items if isinstance(item, Mapping)]
        return found


class PassedOnResources(_Servers):
    """The resources of the servers of a toolset, for `McpFace(resources=)`. Of one address twice, the first counts."""

    def __init__(self, toolset: McpToolset) -> None:
        super().__init__(toolset, "resources")
        self._homes: dict[str, str] = {}

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """The resources of all servers."""
        found: dict[str, dict[str, Any]] = {}
        for server, item in await self._listed("resources/list", "resources"):
            if isinstance(item.get("uri"), str) and item["uri"] not in found:
                found[item["uri"]] = item
                self._homes[item["uri"]] = server
        return [*found.values()]

    async def templates(self) -> Sequence[Mapping[str, Any]]:
        """The templates of all servers."""
        listed = await self._listed("resources/templates/list", "resourceTemplates")
        named = [item for _, item in reversed(listed) if isinstance(item.get("uriTemplate"), str)]
        return [*{item["uriTemplate"]: item for item in named}.values()]

    async def read(self, uri: str) -> Sequence[Mapping[str, Any]] | None:
        """A resource: of the server that lists it, or else of the first that has it."""
        if uri not in self._homes:
            await self.list()
        connections = await self._connections()
        home = self._homes.get(uri)
        for name in [home] if home in connections else [*connections]:
            assert name is not None
            try:
                data = await connections[name].request("resources/read", {"uri": uri}, timeout=TIME)
            except FAILURES:
                continue
            contents = data.get("contents")
            if isinstance(contents, Sequence) and contents:
                return [concealed(item, connections[name].conceal) for item in contents]
        return None


class PassedOnPrompts(_Servers):
    """The prompts of the servers of a toolset, as SERVER__PROMPT, for `McpFace(prompts=)`."""

    def __init__(self, toolset: McpToolset) -> None:
        super().__init__(toolset, "prompts")

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """The prompts of all servers."""
        listed = await self._listed("prompts/list", "prompts")
        return [
            {**item, "name": f"{server}{SEPARATOR}{item['name']}"}
            for server, item in listed
            if isinstance(item.get("name"), str)
        ]

    async def get(self, name: str, arguments: Mapping[str, str]) -> Mapping[str, Any] | None:
        """A prompt of the server that its name begins with; of several, the one with the longest name."""
        connections = await self._connections()
        servers = [server for server in connections if name.startswith(server + SEPARATOR)]
        if not servers:
            return None
        server = max(servers, key=len)
        params = {"name": name.removeprefix(server + SEPARATOR), "arguments": dict(arguments)}
        connection = connections[server]
        try:
            found = await connection.request("prompts/get", params, timeout=TIME)
            return {key: concealed(item, connection.conceal) for key, item in found.items()}
        except MCPError as problem:
            raise ValueError(connection.conceal(str(problem))) from None
        except FAILURES:
            return None
