"""One server of a toolset: what is known of it, whether it runs, and how it comes back after a crash.

| state      | meaning                                                                     |
| ---------- | --------------------------------------------------------------------------- |
| configured | nothing is known but its configuration                                      |
| known      | its tools are known from the last time; it does not run                     |
| starting   | it is being started                                                         |
| started    | it runs, and its tools are listed                                           |
| failed     | it could not be started, or has crashed; the next call that needs it starts it again |

A server is started once, however many callers need it, and goes on starting when they stop waiting. After a crash, the
first restart is at once and the next ones wait ever longer.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, TypeVar

from toolcrib.event_loops import in_loop
from toolcrib.mcp.client.connection import Connection, Link
from toolcrib.mcp.client.definitions import RemoteDefinition, read_definitions
from toolcrib.mcp.client.errors import ConnectionLost, ServerUnavailable
from toolcrib.mcp.client.manifest import Manifest, ManifestCache, ttl_of
from toolcrib.mcp.client.seams import RequestHandlers
from toolcrib.mcp.config import McpServer

__all__ = ["ServerHandle", "ServerState", "ServerStatus"]

T = TypeVar("T")

LONGEST_DELAY = 60.0  # seconds between two attempts to start a server
PATIENCE = 5.0  # seconds that a call waits for the next attempt; with more to wait, it fails at once
HEALTHY = 30.0  # seconds after which a connection counts as one that works
RELIST = 1.0  # seconds between two listings of a server that says again and again that its list has changed
RELISTEN = 5.0  # seconds before a subscription that was lost is renewed
CHANGED = "notifications/tools/list_changed"


class ServerState(StrEnum):
    """What is known of a server and whether it runs; see `toolcrib.mcp.client.server`."""

    CONFIGURED = "configured"
    KNOWN = "known"
    STARTING = "starting"
    STARTED = "started"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server at one moment, for people.

    Attributes:
        name: Its configured name.
        state: What is known of it and whether it runs.
        tools: How many tools are used of it; None if they are not known.
        problem: Why it failed last; "" if it did not.
        warnings: What is wrong with what it lists, a sentence each.
        title: What it calls itself, and its version.
        protocol: The revision of the protocol that was agreed on.
        fetched: When its tools were listed, in seconds since the epoch; None if they are not known.
        pid: The process id of a running local server; 0 for others.
        source: The file that it is configured in.
    """

    name: str
    state: ServerState
    tools: int | None
    problem: str = ""
    warnings: tuple[str, ...] = ()
    title: str = ""
    protocol: str = ""
    fetched: float | None = None
    pid: int = 0
    source: str = ""


class ServerHandle:
    """One server. It may be used from any task of any loop; it runs in the loop that started it.

    Args:
        config: Its configuration.
        link: Makes the way to reach it, anew for each attempt.
        requests: What it may ask of us; None: nothing.
        cache: Where its tools are kept; None: nowhere.
        changed: Is called when its state or its tools change, in the loop in which that happens.
        restarts: Whether it is started again after a crash without being needed.
        clock: Gives the time in seconds since the epoch.
    """

    def __init__(
        self,
        config: McpServer,
        link: Callable[[McpServer, Callable[[str], None]], Awaitable[Link]],
        *,
        requests: RequestHandlers | None = None,
        cache: ManifestCache | None = None,
        changed: Callable[[ServerHandle], None] = lambda handle: None,
        restarts: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.requests: Any = requests
        self.headers: Mapping[str, str] | None = None
        self.identities: Any = None  # the `Identities` for which it is called; None: for nobody in particular
        self.problem = ""
        self.state = ServerState.CONFIGURED
        self.version = 0  # changes with the tools
        self._link = link
        self._cache = cache
        self._changed = changed
        self._restarts = restarts
        self._clock = clock
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Connection | None = None
        self._starting: asyncio.Task[Connection] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._warnings: list[str] = []
        self._relisting = False
        self._failures = 0
        self._not_before = 0.0
        self._started_at = 0.0
        self._manifest = None if cache is None else cache.read(config.name, config.config_hash())
        if cache is not None:
            self.problem = cache.failure(config.name, config.config_hash())
        if self._manifest is not None:
            self.state = ServerState.KNOWN

    # -- what is known

    @property
    def manifest(self) -> Manifest | None:
        """What is known of its tools, from now or from the last time; None if nothing is."""
        return self._manifest

    def tools(self) -> list[RemoteDefinition]:
        """The tools that are used of it, as far as they are known; `McpServer.tools` chooses among them."""
        if self._manifest is None:
            return []
        return [tool for tool in self._manifest.tools if self.config.uses(tool.name)]

    def status(self) -> ServerStatus:
        manifest, connection = self._manifest, self._connection
        running = self.state is ServerState.STARTED and connection is not None and connection.alive
        ended = (
            self.state is ServerState.STARTED and not running
        )  # with its event loop, so that nobody noted it
        info = {} if manifest is None else manifest.info.get("serverInfo") or {}
        title = " ".join(str(info[key]) for key in ("title", "name", "version") if info.get(key))
        return ServerStatus(
            name=self.config.name,
            state=ServerState.KNOWN if ended else self.state,
            tools=None if manifest is None else len(self.tools()),
            problem=self.problem,
            warnings=(*self._warnings, *(() if manifest is None else manifest.problems)),
            title=title,
            protocol="" if manifest is None else manifest.protocol,
            fetched=None if manifest is None else manifest.fetched,
            pid=connection.link.pid if running and connection is not None else 0,
            source=self.config.source,
        )

    # -- starting

    async def connected(self) -> Connection:
        """The open connection; the server is started first if need be. Raises ServerUnavailable with the reason."""
        connection = self._connection
        if connection is not None and connection.alive:
            return connection
        return await self._awaited(self.start())

    def start(self) -> asyncio.Task[Connection]:
        """Begin to start the server, unless it starts already. Nobody has to wait for the task."""
        with self._lock:
            starting = self._starting
            if starting is None or starting.done() or starting.get_loop().is_closed():
                starting = self._starting = asyncio.ensure_future(self._start())
                starting.add_done_callback(lambda done: done.cancelled() or done.exception())
            return starting

    async def _awaited(self, task: asyncio.Task[T]) -> T:
        """The result of a task that may belong to another loop, and goes on when its caller stops waiting."""

        async def wait() -> T:
            return await asyncio.shield(task)

        try:
            return await in_loop(task.get_loop(), wait())
        except asyncio.CancelledError:
            if task.cancelled():
                raise ServerUnavailable(f"MCP server {self.config.name!r} was stopped") from None
            raise

    async def _start(self) -> Connection:
        connection = self._connection
        if connection is not None:
            if connection.alive:
                return connection
            await connection.settled()
        await self._back_off()
        self._loop = asyncio.get_running_loop()
        self._set(ServerState.STARTING)
        try:
            connection = await self._opened()
        except ServerUnavailable as problem:
            self._failed(str(problem))
            raise
        except asyncio.CancelledError:
            self._set(ServerState.CONFIGURED if self._manifest is None else ServerState.KNOWN)
            raise
        except Exception as problem:
            self._failed(f"MCP server {self.config.name!r}: {problem or type(problem).__name__}")
            raise ServerUnavailable(self.problem) from problem
        connection.relist = lambda: self._list(connection)
        connection.schemas = {tool.name: tool.input_schema for tool in self.tools()}
        self._connection = connection
        self._started_at = self._clock()
        self._note("")
        try:
            if self._manifest is None:
                await self._list(connection)
            elif not self._manifest.fresh(self._clock()):
                self._follow(self._list(connection))
        except BaseException as problem:
            self._connection = None
            await connection.close()
            if not isinstance(problem, Exception):
                self._set(ServerState.CONFIGURED)
                raise
            ended = isinstance(problem, ConnectionLost | ServerUnavailable)
            why = str(problem) or type(problem).__name__
            self._failed(why if ended else f"MCP server {self.config.name!r}: cannot list its tools: {why}")
            raise ServerUnavailable(self.problem) from problem
        connection.closed.add_done_callback(lambda _: self._lost(connection))
        self._set(ServerState.STARTED)
        self._follow(self._listen(connection))
        return connection

    async def _back_off(self) -> None:
        """Wait until the next attempt may be made. Raises ServerUnavailable if that is long."""
        left = self._not_before - self._clock()
        if left > PATIENCE:
            raise ServerUnavailable(f"{self.problem} (the next attempt to start it is in {left:.0f} s)")
        if left > 0:
            await asyncio.sleep(left)

    async def _opened(self) -> Connection:
        """A new connection. Raises ServerUnavailable."""
        if find_spec("mcp") is None:
            raise ServerUnavailable(
                f'MCP server {self.config.name!r} needs the mcp package: pip install "toolcrib[mcp]"'
            )
        try:
            return await self._opened_as(self.config)
        except ServerUnavailable as problem:
            # So the protocol wants it: who refuses to be sent a request may speak the older one.
            if self.config.transport != "http" or problem.status not in (400, 404, 405):
                raise
            try:
                return await self._opened_as(replace(self.config, transport="sse"))
            except ServerUnavailable:
                raise problem from None

    async def _opened_as(self, config: McpServer) -> Connection:
        known = self._manifest
        older = known is not None and known.protocol != "" and known.protocol < "2026"
        options = {} if self.requests is None else self.requests.client_options()
        for era in ("legacy",) if older else ("", "legacy"):
            link = await self._link(config, self.warn)
            try:
                return await Connection.open(
                    config.name,
                    link,
                    era=era,
                    timeout=config.start_timeout,
                    options=options,
                    notified=self._notified,
                    warn=self.warn,
                )
            except ServerUnavailable as problem:
                # Some servers end when the first request is not the older handshake.
                if era or not problem.broke_off:
                    raise
        raise AssertionError("unreachable")

    def _failed(self, problem: str) -> None:
        """Note a failure, and when the next attempt may be made."""
        self._note(problem)
        self._failures += 1
        delay = 0.0 if self._failures == 1 else min(0.25 * 2 ** min(self._failures, 20), LONGEST_DELAY)
        self._not_before = self._clock() + delay
        self._set(ServerState.FAILED)

    def _note(self, problem: str) -> None:
        """Keep why the server failed last, also for those who only list it; "" if it did not."""
        if self._cache is not None and problem != self.problem:
            try:
                self._cache.note_failure(self.config.name, self.config.config_hash(), problem, self._clock())
            except OSError as refused:
                self.warn(f"why it failed cannot be kept: {refused}")
        self.problem = problem

    def _lost(self, connection: Connection) -> None:
        """The connection has ended: by us, or because the server crashed."""
        if self._connection is not connection:
            return
        self._connection = None
        if not connection.problem:
            self._set(ServerState.KNOWN)
            return
        if self._clock() - self._started_at > HEALTHY:
            self._failures = 0
        self._failed(connection.problem)
        if self._restarts and not connection.loop.is_closed():
            self._follow(self._restart())

    async def _restart(self) -> None:
        while self.state is ServerState.FAILED:
            await asyncio.sleep(max(0.0, self._not_before - self._clock()))
            try:
                await self._awaited(self.start())
            except ServerUnavailable:
                continue

    # -- its tools

    async def learned(self) -> None:
        """Wait until its tools are known. The server is started if need be. Raises ServerUnavailable."""
        if self._manifest is None:  # a connection that is open may not have listed yet
            await self._awaited(self.start())

    async def refresh(self) -> None:
        """List its tools anew. The server is started if need be. Raises ServerUnavailable, ConnectionLost, MCPError."""
        connection = await self.connected()
        await in_loop(connection.loop, self._list(connection))

    async def _list(self, connection: Connection) -> None:
        """List the tools, and keep the list."""
        if "tools" not in connection.info.get("capabilities", {}) and connection.modern:
            listed: list[Any] = []
            first: Mapping[str, Any] = {}
            problems: list[str] = []
        else:
            listed, first, problems = await connection.listed("tools/list", "tools")
        tools, odd = read_definitions(self.config.name, listed)
        if connection.modern:
            tools, more = _with_valid_headers(tools)
            odd += more
        manifest = Manifest(
            tools=tuple(tools),
            problems=(*problems, *odd),
            protocol=connection.protocol,
            info=connection.info,
            fetched=self._clock(),
            ttl=ttl_of(first),
        )
        same = manifest.same_tools(self._manifest)
        self._manifest = manifest
        connection.schemas = {tool.name: tool.input_schema for tool in tools}
        if not same:
            self.version += 1
        if self._cache is not None:
            try:
                await asyncio.to_thread(
                    self._cache.write, self.config.name, self.config.config_hash(), manifest
                )
            except OSError as problem:
                self.warn(f"its tools cannot be kept: {problem}")
        self._changed(self)

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        if method == CHANGED and self._connection is not None and not self._relisting:
            self._relisting = True
            self._follow(self._relist(self._connection))

    async def _relist(self, connection: Connection) -> None:
        """List the tools again, because the server says that they have changed; not more often than each second."""
        await asyncio.sleep(RELIST)
        self._relisting = False
        await self._list(connection)

    async def _listen(self, connection: Connection) -> None:
        """Hear of changes where the server tells only those who subscribed."""
        tools = connection.info.get("capabilities", {}).get("tools")
        if not connection.modern or not isinstance(tools, Mapping) or not tools.get("listChanged"):
            return
        from mcp import MCPError
        from mcp.client.subscriptions import SubscriptionLost, listen

        while not connection.closed.done():
            try:
                async with listen(connection.session, tools_list_changed=True) as subscription:
                    if not subscription.honored.tools_list_changed:
                        return
                    async for _ in subscription:
                        self._notified(CHANGED, {})
            except SubscriptionLost:
                pass
            except MCPError:
                return
            await asyncio.sleep(RELISTEN)
            if not connection.closed.done():
                self._notified(CHANGED, {})

    # -- the end

    async def aclose(self) -> None:
        """End the server, and what it started. Takes a bounded time, and raises nothing. It may be started again."""
        loop = self._loop
        if loop is None or loop.is_closed():
            self._connection = None
            return
        await in_loop(loop, self._close())

    async def _close(self) -> None:
        tasks = [task for task in (self._starting, *self._tasks) if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        if self.identities is not None:
            await self.identities.aclose()
        if tasks:
            await asyncio.wait(tasks, timeout=2 * PATIENCE)
        self._starting = None
        self._failures, self._not_before = 0, 0.0
        self._set(ServerState.CONFIGURED if self._manifest is None else ServerState.KNOWN)

    def _follow(self, work: Any) -> None:
        """Do some work in the background. It ends with the handle; what it fails with is a warning."""

        async def followed() -> None:
            try:
                await work
            except Exception as problem:
                self.warn(str(problem) or type(problem).__name__)

        task = asyncio.ensure_future(followed())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def warn(self, words: str) -> None:
        """Note something that is wrong with the server; each thing once."""
        if words not in self._warnings and len(self._warnings) < 50:
            self._warnings.append(words)
            self._changed(self)

    def _set(self, state: ServerState) -> None:
        if state is not self.state:
            self.state = state
            self._changed(self)


def _with_valid_headers(tools: list[RemoteDefinition]) -> tuple[list[RemoteDefinition], list[str]]:
    """The tools whose parameters can be sent in headers as they ask for; the protocol forbids to use the others."""
    from mcp.shared.inbound import find_invalid_x_mcp_header

    kept, problems = [], []
    for tool in tools:
        reason = find_invalid_x_mcp_header(tool.input_schema)
        if reason is None:
            kept.append(tool)
        else:
            problems.append(f"tool {tool.name!r}: it was left out: {reason}")
    return kept, problems
