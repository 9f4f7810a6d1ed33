"""What is known of MCP servers without starting any: for lists, `doctor` and JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolcrib.cli.mcp_servers import ConfiguredServers, login_store, make_toolset
from toolcrib.cli.undo_text import ago
from toolcrib.cli.user_files import stored_secrets
from toolcrib.dataclass import dataclass
from toolcrib.mcp.client.status import ServerStatus
from toolcrib.mcp.config import McpServer
from toolcrib.visible import counted

NO_SERVERS = "no MCP servers are configured; to add one: toolcrib mcp add NAME -- COMMAND, or toolcrib mcp add NAME URL"
NOT_LISTED = "not started yet; to start it and list its tools: toolcrib mcp test"


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A server, what is known of it, and how its login stands. `unused` says why it does not count.

    `waiting` are the tools that a person should read, because their definition changed or is suspicious.
    """

    server: McpServer
    status: ServerStatus | None = None
    login: str = ""
    unused: str = ""
    waiting: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Its state in a word."""
        if self.unused:
            return "unused"
        if not self.server.enabled:
            return "off"
        return self.status.state.value if self.status is not None else ""

    @property
    def words(self) -> str:
        """Its state in a few words."""
        if self.unused:
            return f"not used: {self.unused}"
        if not self.server.enabled:
            return "switched off"
        status = self.status
        if status is None or status.tools is None:
            words = NOT_LISTED
        else:
            age = f", listed {ago(status.fetched)}" if status.fetched else ""
            words = counted(status.tools, "tool") + age
        if status is not None and status.problem:
            words = f"failed: {status.problem}" + (f" ({words})" if status.tools is not None else "")
        if self.waiting:
            number = counted(len(self.waiting), "tool")
            words += f"; to read and approve {number}: toolcrib mcp approve {self.server.name}"
        return words + (f"; {self.login}" if self.login else "")

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, without credentials."""
        status = self.status
        known = status is not None and status.tools is not None
        return {
            **self.server.to_dict(),
            "state": self.state,
            "why_unused": self.unused,
            "tools": status.tools if status is not None else None,
            "tool_patterns": list(self.server.tools),
            "listed": status.fetched if known and status is not None else None,
            "problem": status.problem if status is not None else "",
            "warnings": list(status.warnings) if status is not None else [],
            "waiting": list(self.waiting),
            "login": self.login,
        }


def known_servers(found: ConfiguredServers, workspace: Path) -> list[KnownServer]:
    """Every configured server, by what is stored of it. Nothing is started, and nothing sent."""
    enabled = found.enabled()
    toolset = make_toolset(enabled, workspace)
    statuses = {status.name: status for status in toolset.servers()}
    waiting: dict[str, list[str]] = {}
    for tool in toolset.tools().values():
        if tool.judged.doubt is not None:
            waiting.setdefault(tool.server.config.name, []).append(tool.remote.name)
    logins = asyncio.run(_logins((server for server in enabled if server.url), workspace))
    return [
        *(
            KnownServer(
                server,
                statuses.get(server.name),
                logins.get(server.name, ""),
                waiting=tuple(waiting.get(server.name, ())),
            )
            for server in found.servers
        ),
        *(KnownServer(server, unused=why) for server, why in found.unused),
    ]


async def _logins(servers: Iterable[McpServer], workspace: str | Path) -> dict[str, str]:
    """How the logins at remote servers stand, in words; nothing for those where nobody logged in."""
    from toolcrib.mcp.client.oauth import OAuthError, login_state, settings_of
    from toolcrib.mcp.expansion import Expansion

    words: dict[str, str] = {}
    store, expansion = login_store(), Expansion(secrets=stored_secrets(), workspace=workspace)
    for server in servers:
        if server.auth == "none":
            continue
        try:
            given = expansion(server)  # a login belongs to an address, not to how that is written
            state = await login_state(given, store, settings_of(given))
        except (OAuthError, ValueError) as problem:
            reason = str(problem).removeprefix(f"MCP server {server.name!r}: ")
            words[server.name] = f"its login cannot be used: {reason}"
            continue
        if state.state == "needs_login":
            words[server.name] = f"you must log in: toolcrib mcp login {server.name}"
        elif state.state != "none":
            words[server.name] = "logged in"
    return words
