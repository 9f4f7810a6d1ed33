"""The configuration of MCP servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import Literal

from toolcrib.effect import Effect

__all__ = ["McpServer"]

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class McpServer:
    """How one server is reached, and what is thought of it.

    Attributes:
        name: The name under which its tools are shown, as `name__tool`.
        command: The command line of a local server; empty for a remote one.
        env: Variables of a local server's environment.
        cwd: The folder in which a local server runs; without it ours.
        url: The address of a remote server.
        transport: "stdio", "http" (streamable HTTP) or "sse" (the older one).
        headers: HTTP headers that are sent with every request to a remote server.
        enabled: Whether it is used at all.
        timeout: Seconds that a call may take without reporting progress.
        max_timeout: Seconds that a call may take, however much progress it reports.
        start_timeout: Seconds until a starting server must be ready.
        effects: The effect of tools, by their name at the server, whatever the server says.
        tools: Patterns of the tools that are used, by their names at the server; all if empty. A pattern that begins
            with "!" leaves out what it matches.
        auth: "oauth", or "none".
        trusted: Whether the server's word counts where it makes a tool harmless.
        source: The file that it is configured in, for people.
    """

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    cwd: str | None = None
    url: str = ""
    transport: Literal["stdio", "http", "sse"] = "stdio"
    headers: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    enabled: bool = True
    timeout: float = 60.0
    max_timeout: float = 600.0
    start_timeout: float = 60.0
    effects: Mapping[str, Effect] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    auth: str = "none"
    trusted: bool = False
    source: str = ""

    def config_hash(self) -> str:
        """A hash of what decides which server this is. It has the names of variables and secrets, not their values."""
        given = [
            self.transport,
            self.command,
            sorted(self.env.items()),
            self.cwd,
            self.url,
            sorted(self.headers.items()),
        ]
        return sha256(json.dumps(given).encode()).hexdigest()
