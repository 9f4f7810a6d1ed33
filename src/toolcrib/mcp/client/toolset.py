"""The tools of MCP servers as a toolset, whose servers start in the background or with the first call."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolcrib.dataclass import replace
from toolcrib.errors import is_object_with
from toolcrib.event_loops import to_its_end
from toolcrib.events import Event, ServerChanged
from toolcrib.mcp.client.connection import Link
from toolcrib.mcp.client.errors import ServerUnavailable
from toolcrib.mcp.client.identity import Identify, Identities
from toolcrib.mcp.client.manifest import ManifestCache
from toolcrib.mcp.client.pins import Pins
from toolcrib.mcp.client.requests import ServerRequests
from toolcrib.mcp.client.server import ServerHandle
from toolcrib.mcp.client.status import ServerState, ServerStatus
from toolcrib.mcp.client.tool import RemoteTool
from toolcrib.mcp.config import McpServer
from toolcrib.mcp.expansion import Expansion, concealing
from toolcrib.mcp.names import may_belong, shown_names
from toolcrib.toolset import ToolLike

if TYPE_CHECKING:
    from toolcrib.mcp.client.resources import App
    from toolcrib.mcp.client.sampling import Sampling
    from toolcrib.models.model import Model

__all__ = ["McpToolset"]

MANY = 200  # tools; the definitions of more are judged on a thread, at 0.2 ms each
WAIT = 3.0  # seconds that the first list waits for servers of which nothing is known


class McpToolset:
    """The tools of several MCP servers.

    Entering it waits for no server. A tool of the server "git" that is named "log" is shown as
    `git__log`. A server whose tools are known from an earlier time is started by the first call of one of them; of the
    others, the list of tools is fetched in the background, and their tools join the list when it is there.

    Args:
        servers: The servers. Those that are not `enabled` are left out. Two of one name are a ValueError.
        in_process: Server objects of the SDK (`MCPServer` or `lowlevel.Server`) or faces, by name: servers in this
            process.
        cache: The folder in which the lists of tools are kept, or None to keep none.
        start: "lazy", or "background": all are started when the toolset is entered, and again after a crash.
        wait: Seconds that the first list waits for servers of which no tools are known. They go on starting after that.
        elicitation: Whether servers may put questions to the person.
        sampling: A model that servers may ask, or a `Sampling` with limits; None where they may not.
        roots: Folders that servers are told of, as the ones to work in.
        apps: Whether somebody shows the user interfaces that results may have (MCP Apps); see `app`.
        resources: Whether the tools `mcp_list_resources`, `mcp_read_resource`, `mcp_list_prompts` and `mcp_get_prompt`
            are offered, too.
        requests: Makes the object that answers what a server asks of us, one for each server, where servers differ in
            what they may: a `ServerRequests`, in the place of the four above.
        auth: Makes the `httpx2.Auth` of a remote server, or None for none.
        identity: For whom calls are made, by the names of servers: a function, which may be async, that gives the HTTP
            headers of a call, or a bearer token, from its context. See `toolcrib.mcp.client.identity`.
        resolve: Gives a server with the values that its configuration only refers to, at the moment it is started.
            None: `Expansion()`, which knows the variables of our environment, and no secrets.
        pins: The definitions that were approved. `Pins.of_user()` keeps them; without it, they last as long as the
            toolset.
        clock: Gives the time in seconds since the epoch.

    Raises ImportError, when a server is started, if the extra `mcp` is not installed.

    >>> import asyncio
    >>> from mcp.server import MCPServer
    >>> from toolcrib import Toolbox
    >>> server = MCPServer("calculator")
    >>> @server.tool()
    ... def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> async def main():
    ...     async with Toolbox([McpToolset(in_process={"calc": server})], autonomy="full") as box:
    ...         print(await box.names())
    ...         print((await box.call("calc__add", {"a": 1, "b": "2"})).structured)
    >>> asyncio.run(main())
    ['calc__add']
    {'result': 3}
    """

    remote = True  # strangers name its tools: a name that is taken already is a warning

    def __init__(
        self,
        servers: Iterable[McpServer] = (),
        *,
        in_process: Mapping[str, Any] | None = None,
        cache: Path | None = None,
        start: Literal["lazy", "background"] = "lazy",
        wait: float = WAIT,
        elicitation: bool = True,
        sampling: Model | Sampling | None = None,
        roots: Iterable[str | Path] = (),
        apps: bool = False,
        resources: bool = False,
        requests: Callable[[McpServer], Any] | None = None,
        auth: Callable[[McpServer], Any] | None = None,
        identity: Mapping[str, Identify] | None = None,
        resolve: Callable[[McpServer], McpServer] | None = None,
        pins: Pins | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if start not in ("lazy", "background"):
            raise ValueError(f'start must be "lazy" or "background", got {start!r}')
        local = {name: _server_of(server) for name, server in (in_process or {}).items()}
        configs = [*_configured(servers), *(McpServer(name=name, source="in this process") for name in local)]
        self._background = start == "background"
        self._wait = wait
        self._auth = auth
        self._resolve = resolve or Expansion()
        self._local = local
        self._pins = pins or Pins(clock=clock)
        self._entered = 0
        self._reports: list[RunReport] = []
        self._waited = False
        self._handles: dict[str, ServerHandle] = {}
        store = None if cache is None else ManifestCache(cache)
        folders = tuple(roots)

        def usual(config: McpServer) -> ServerRequests:
            rights: dict[str, Any] = {"elicitation": elicitation, "sampling": sampling, "apps": apps}
            return ServerRequests(config.name, roots=folders, **rights)

        make_requests = requests or usual
        for config in configs:
            if config.name in self._handles:
                raise ValueError(f"two MCP servers are named {config.name!r}; rename one")
            if not config.enabled:
                continue
            self._handles[config.name] = ServerHandle(
                config,
                self._link,
                requests=make_requests(config),
                cache=None if config.name in local else store,
                changed=self._changed,
                restarts=self._background,
                clock=clock,
            )
        for name, identify in (identity or {}).items():
            handle = self._handles.get(name)
            if handle is None or not handle.config.url:
                raise ValueError(f"identity: {name!r} is no server at a URL of this toolset")
            handle.identities = Identities(
                handle,
                identify,
                partial(self._link_for_caller, handle),
                partial(make_requests, handle.config),
            )
        self._resources = resources
        self._own: dict[str, ToolLike] = {}
        self._lock = threading.Lock()
        self._tools: dict[str, RemoteTool] = {}
        self._index: tuple[int, dict[str, RemoteTool]] | None = None

    # -- the toolset

    @property
    def version(self) -> int:
        return self._pins.version + sum(handle.version for handle in self._handles.values())

    async def names(self) -> list[str]:
        if self._entered and not self._waited:
            self._waited = True
            await self.ready(self._wait)
        return [*await self._current(), *self._own_tools()]

    async def get(self, name: str) -> ToolLike | None:
        tool: ToolLike | None = (await self._current()).get(name) or self._own_tools().get(name)
        if tool is None and self._entered:
            await self._learn(name)
            tool = (await self._current()).get(name)
        elif tool is None:
            self._say_not_entered(name)
        return tool

    def _say_not_entered(self, name: str) -> None:
        """Log why a tool is unknown, where its server would be started if the toolset were entered."""
        for server, handle in self._handles.items():
            if handle.manifest is None and name.startswith(f"{server}__"):
                why = "its toolset is entered by `async with box:`, which this program has not done"
                logging.getLogger("toolcrib").warning("MCP server %r was not started: %s", server, why)

    def _own_tools(self) -> Mapping[str, ToolLike]:
        """The tools for resources and prompts, if they are offered."""
        if self._resources and not self._own:
            from toolcrib.mcp.client.resources import resource_tools

            self._own = {tool.facts.name: tool for tool in resource_tools(self._handles)}
        return self._own

    async def app(self, server: str, uri: str) -> App:
        """The user interface at a `ui://` address of a server, as `extras["mcp"]["ui"]` of a result names both.

        Raises KeyError for an unknown server, ValueError for what is no such address or page, and what a connection
        raises.
        """
        from toolcrib.mcp.client.resources import app_of

        return await app_of(self._handles[server], uri)

    async def _learn(self, name: str) -> None:
        """Wait for the servers of which no tools are known, and whose tools have such a name: it is called now."""
        asked = [
            handle
            for server, handle in self._handles.items()
            if handle.manifest is None and may_belong(name, server)
        ]
        await asyncio.gather(*map(_learned, asked))

    async def __aenter__(self) -> McpToolset:
        self._entered += 1
        if self._entered == 1:
            for handle in self._handles.values():
                if self._background or handle.manifest is None:
                    handle.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._entered -= 1
        if not self._entered:
            self._waited = False
            await self.aclose()

    # -- for people and programs

    def servers(self) -> list[ServerStatus]:
        """Every server at this moment: its state, its tools, its last problem. Starts nothing."""
        return [handle.status() for handle in self._handles.values()]

    def tools(self) -> dict[str, RemoteTool]:
        """The tools that are known at this moment, by the names that a model is shown. Starts nothing."""
        return dict(self._known())

    async def aclose(self) -> None:
        """End all servers that run, also where the toolset was not entered.

        If the caller is cancelled meanwhile, CancelledError is raised when they have ended.
        """
        await to_its_end(self._end_servers())

    async def _end_servers(self) -> None:
        await asyncio.gather(*(handle.aclose() for handle in self._handles.values()))

    def server(self, name: str) -> ServerHandle:
        """One server. Raises KeyError."""
        return self._handles[name]

    async def ready(self, timeout: float | None = None) -> list[ServerStatus]:
        """Wait until the tools of all servers are known, or have failed to be; at most `timeout` seconds.

        Servers of which nothing is known are started. Raises nothing of what they fail with: see the result.
        """
        unknown = [handle for handle in self._handles.values() if handle.manifest is None]
        waiting = [asyncio.ensure_future(_learned(handle)) for handle in unknown]
        if waiting:
            try:
                await asyncio.wait(waiting, timeout=timeout)
            finally:
                for task in waiting:
                    task.cancel()  # of the waiting alone: the server goes on starting
        return self.servers()

    async def _current(self) -> dict[str, RemoteTool]:
        """All known tools by name, as `_known` gives them; many are judged on a thread, beside the event loop."""
        index = self._index
        if index is not None and index[0] == self.version:
            return index[1]
        manifests = [handle.manifest for handle in self._handles.values()]
        if sum(len(manifest.tools) for manifest in manifests if manifest is not None) > MANY:
            return await asyncio.to_thread(self._known)
        return self._known()

    def _known(self) -> dict[str, RemoteTool]:
        """The tools of the last listing, by the names that the model sees. An unchanged tool stays the same object."""
        with self._lock:  # several loops may ask at once, and must be given the same objects
            version = self.version
            if self._index is None or self._index[0] != version:
                self._tools = self._named()
                self._index = version, self._tools
            return self._index[1]

    def _named(self) -> dict[str, RemoteTool]:
        """The tools as they are now, each the same object as before if its definition is."""
        found = [(handle, tool) for handle in self._handles.values() for tool in handle.tools()]
        names = shown_names((handle.config.name, tool.name) for handle, tool in found)
        tools: dict[str, RemoteTool] = {}
        judged = self._pins.judge([(handle.config, remote) for handle, remote in found])
        for (handle, remote), one in zip(found, judged, strict=True):
            name = names[handle.config.name, remote.name]
            known = self._tools.get(name)
            if known is None or known.server is not handle or not known.judged.same_tool(one):
                known = RemoteTool(name, one, handle, self._pins)
            tools[name] = known
        return tools

    async def _link(self, config: McpServer, warn: Callable[[str], None]) -> Link:
        """How a server is reached."""
        if config.name in self._local:
            from toolcrib.mcp.client.in_process import InProcessLink

            return InProcessLink(self._local[config.name])
        return self._link_to(config, {}, warn, cookies=self._handles[config.name].identities is None)

    async def _link_for_caller(self, server: ServerHandle, headers: Mapping[str, str]) -> Link:
        """How a server is reached by one who calls, with headers of their own on every request."""
        return self._link_to(server.config, headers, server.warn, cookies=True)

    def _link_to(
        self, config: McpServer, headers: Mapping[str, str], warn: Callable[[str], None], *, cookies: bool
    ) -> Link:
        filled = self._resolve(config)
        conceal = concealing(config, self._resolve)
        if filled.transport == "stdio":
            from toolcrib.mcp.client.stdio import StdioLink

            return StdioLink(filled.command, env=filled.env, cwd=filled.cwd, warn=warn, conceal=conceal)
        from toolcrib.mcp.client.http import HttpLink

        named = {name.lower() for name in headers}
        kept = {name: value for name, value in filled.headers.items() if name.lower() not in named}
        given = replace(filled, headers={**kept, **headers})
        return HttpLink(
            given.url,
            headers=given.headers,
            auth=None if self._auth is None else self._auth(given),
            events=given.transport == "sse",
            cookies=cookies,
            conceal=conceal,
        )

    def for_run(self, emit: Callable[[Event], None]) -> RunReport:
        """The object that reports to a run what happens to the servers; see `toolcrib.toolset.reporters`."""
        return RunReport(emit, self)

    def _changed(self, handle: ServerHandle) -> None:
        for report in (*self._reports,):
            report.changed(handle.status())


class RunReport:
    """Tells one run what happens to the servers: the person by events, and the model which tools came or went."""

    def __init__(self, emit: Callable[[Event], None], toolset: McpToolset) -> None:
        self._emit = emit
        self._toolset = toolset
        self._last: dict[str, ServerChanged] = {}
        self._listed: dict[str, frozenset[str]] | None = None
        toolset._reports.append(self)

    def changed(self, status: ServerStatus) -> None:
        """Emit an event, unless it would say what the last one said."""
        event = ServerChanged(status.name, status.state.value, status.tools, status.problem)
        if self._last.get(status.name) != event:
            self._last[status.name] = event
            self._emit(event)

    def news(self) -> list[str]:
        """The tools that came or went since the model saw its first list of tools, a sentence for each server."""
        listed = {
            name: frozenset(tool.name for tool in handle.tools())
            for name, handle in self._toolset._handles.items()
        }
        before, self._listed = self._listed, listed
        if before is None:
            for status in self._toolset.servers():
                if status.state is ServerState.FAILED:
                    self.changed(status)
            return []
        told = []
        for name, tools in listed.items():
            came, went = len(tools - before[name]), len(before[name] - tools)
            if came or went:
                told.append(f"[The tools of MCP server {name!r} have changed: {came} added, {went} removed.]")
        return told

    async def aclose(self) -> None:
        """Stop reporting to the run."""
        self._toolset._reports.remove(self)


async def _learned(handle: ServerHandle) -> None:
    try:
        await handle.wait_until_known()
    except ServerUnavailable:
        pass  # its status says why


def _configured(servers: Iterable[Any]) -> Iterator[McpServer]:
    """The servers as given. TypeError for what is no list of servers, ValueError for one that cannot start."""
    if isinstance(servers, McpServer):
        raise TypeError(
            f"servers are a list: write McpToolset([server]), got the single server {servers.name!r}"
        )
    for server in servers:
        if not isinstance(server, McpServer):
            example = "McpServer('time', command=['uvx', 'mcp-server-time'])"
            raise TypeError(f"servers are McpServer objects, such as {example}; got {server!r}")
        if server.enabled and not server.command and not server.url:
            raise ValueError(f"MCP server {server.name!r}: give a command or a url")
        yield server


def _server_of(given: Any) -> Any:
    """The server object of the SDK, also that of an McpFace. TypeError for what is no server."""
    server = given.server if hasattr(given, "toolbox") else given
    if not is_object_with(getattr(server, "_lowlevel_server", server), "create_initialization_options"):
        raise TypeError(
            f"in_process= takes servers of the SDK and faces, as in {{'own': McpFace(toolbox)}}; got {given!r}"
        )
    return server
