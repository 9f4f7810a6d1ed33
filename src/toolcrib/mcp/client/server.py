"""One server of a toolset: what is known of it, whether it runs, and how it comes back after a crash.

A server is started once, however many callers need it, and goes on starting when they stop waiting. After a crash, the
first restart is at once and the next ones wait ever longer.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from typing import Any, TypeVar

from toolcrib.event_loops import in_loop
from toolcrib.mcp.client.connection import Connection
from toolcrib.mcp.client.definitions import RemoteDefinition, read_definitions
from toolcrib.mcp.client.errors import ConnectionLost, ServerUnavailable, check_loop_runs
from toolcrib.mcp.client.manifest import Manifest, ManifestCache, ttl_of
from toolcrib.mcp.client.opening import MakeLink, open_connection
from toolcrib.mcp.client.pages import read_list
from toolcrib.mcp.client.seams import RequestHandlers
from toolcrib.mcp.client.status import ServerState, ServerStatus
from toolcrib.mcp.config import McpServer

__all__ = ["ServerHandle"]

T = TypeVar("T")

LONGEST_DELAY = 60.0  # seconds between two attempts to start a server
PATIENCE = 5.0  # seconds that a call waits for the next attempt; with more to wait, it fails at once
HEALTHY = 30.0  # seconds after which a connection counts as one that works
RELIST = 1.0  # seconds between two listings of a server that says again and again that its list has changed
RELISTEN = 5.0  # seconds before a subscription that was lost is renewed
CHANGED = "notifications/tools/list_changed"


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
        link: MakeLink,
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
        self._listing: asyncio.Task[None] | None = None  # the last reading of a list that may have changed
        self._waited_in_vain = False  # if a call waited and no list came, no other waits before one comes
        self._listed_at = -RELIST
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
        """The tools that are used of it, as far as they are known; `McpServer.tools` chooses among those for models."""
        listed = () if self._manifest is None else self._manifest.tools
        return [tool for tool in listed if self._is_used(tool)]

    def _is_used(self, tool: RemoteDefinition) -> bool:
        return tool.for_model and self.config.uses(tool.name)

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
            if starting is None or starting.done() or not starting.get_loop().is_running():
                # An empty context, because other callers than the one that opens the connection use it, too.
                work = asyncio.get_running_loop().create_task(self._start(), context=Context())
                starting = self._starting = work
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
            await connection.wait_closed()
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
        self._listing, self._waited_in_vain = None, False
        self._started_at = self._clock()
        self._note("")
        try:
            if self._manifest is None:
                async with asyncio.timeout(self.config.start_timeout):
                    await self._list(connection)
            elif not self._manifest.fresh(self._clock()):
                self._listing = self._follow(self._list, connection)
        except BaseException as problem:
            self._connection = None
            await connection.close()
            if not isinstance(problem, Exception):
                self._set(ServerState.CONFIGURED)
                raise
            ended = isinstance(problem, ConnectionLost | ServerUnavailable)
            why = str(problem) or type(problem).__name__
            if isinstance(problem, TimeoutError):
                why = f"no answer within {self.config.start_timeout:g} s"
            self._failed(why if ended else f"MCP server {self.config.name!r}: cannot list its tools: {why}")
            raise ServerUnavailable(self.problem) from problem
        connection.closed.add_done_callback(lambda _: self._lost(connection))
        self._set(ServerState.STARTED)
        self._follow(self._listen, connection)
        return connection

    async def _back_off(self) -> None:
        """Wait until the next attempt may be made. Raises ServerUnavailable if that is long."""
        left = self._not_before - self._clock()
        if left > PATIENCE:
            raise ServerUnavailable(f"{self.problem} (the next attempt to start it is in {left:.0f} s)")
        if left > 0:
            await asyncio.sleep(left)

    async def _opened(self) -> Connection:
        return await open_connection(
            self.config,
            self._link,
            requests=self.requests,
            older=self._manifest is not None and "" < self._manifest.protocol < "2026",
            notified=self._notified,
            warn=self.warn,
        )

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
            self._follow(self._restart)

    async def _restart(self) -> None:
        while self.state is ServerState.FAILED:
            await asyncio.sleep(max(0.0, self._not_before - self._clock()))
            try:
                await self._awaited(self.start())
            except ServerUnavailable:
                continue

    # -- its tools

    async def wait_until_known(self) -> None:
        """Wait until its tools are known. The server is started if need be. Raises ServerUnavailable."""
        if self._manifest is None:  # a connection that is open may not have listed yet
            await self._awaited(self.start())

    async def refresh(self) -> None:
        """List its tools anew. The server is started if need be. Raises ServerUnavailable, ConnectionLost, MCPError."""
        connection = await self.connected()
        check_loop_runs(connection.loop, self.config.name)
        await in_loop(connection.loop, self._list(connection))

    async def definition_now(self, name: str) -> RemoteDefinition | None:
        """A tool as the server defines it now; None for one that is not used. Waits for a list that is being read.

        Once it was waited for in vain, later calls use the known list until a new one comes.
        """
        listing, known = self._listing, self._manifest
        pending = listing is not None and not listing.done() and listing.get_loop().is_running()
        if listing is not None and pending and not self._waited_in_vain:
            now = asyncio.get_running_loop().time
            begun = now()
            await in_loop(listing.get_loop(), _ended(listing, self.config.start_timeout))
            self._waited_in_vain = self._manifest is known and now() - begun > 2 * RELIST
        listed = () if self._manifest is None else self._manifest.tools
        return next((tool for tool in listed if tool.name == name and self._is_used(tool)), None)

    async def _list(self, connection: Connection) -> None:
        """List the tools, and keep the list."""
        from mcp import MCPError
        from mcp_types import METHOD_NOT_FOUND

        self._listed_at = asyncio.get_running_loop().time()
        try:
            listed, first, problems = await read_list(connection, "tools/list", "tools")
        except MCPError as problem:
            if problem.code != METHOD_NOT_FOUND or "tools" in connection.info.get("capabilities", {}):
                raise
            listed, first, problems = [], {}, []  # it has declared that it has no tools
        if problems and not listed and self._manifest is not None:
            self.warn(problems[0])
            return  # the list that was known stays
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
        self._manifest, self._waited_in_vain = manifest, False
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
            self._listing = self._follow(self._relist, self._connection, self._listing)

    async def _relist(self, connection: Connection, earlier: asyncio.Task[None] | None) -> None:
        """List the tools again, because the server says that they have changed.

        One list is read after the other, and none begins within a second of the one before.
        """
        try:
            if earlier is not None:
                await asyncio.wait([earlier])
            await asyncio.sleep(self._listed_at + RELIST - asyncio.get_running_loop().time())
        finally:
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
        if not loop.is_running():
            self.warn("it could not be ended: the event loop in which it was started does not run")
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
        self._starting, self._relisting = None, False
        self._failures, self._not_before = 0, 0.0
        self._set(ServerState.CONFIGURED if self._manifest is None else ServerState.KNOWN)

    def _follow(self, work: Callable[..., Awaitable[None]], *args: Any) -> asyncio.Task[None]:
        """Do some work in the background. It ends with the handle; what it fails with is a warning."""

        async def followed() -> None:
            try:
                await work(*args)
            except Exception as problem:
                self.warn(str(problem) or type(problem).__name__)

        task = asyncio.ensure_future(followed())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def warn(self, words: str) -> None:
        """Note something that is wrong with the server; each thing once."""
        if words not in self._warnings and len(self._warnings) < 50:
            self._warnings.append(words)
            self._changed(self)

    def _set(self, state: ServerState) -> None:
        if state is not self.state:
            self.state = state
            self._changed(self)


async def _ended(task: asyncio.Task[None], seconds: float) -> None:
    await asyncio.wait([task], timeout=seconds)


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
