"""One connection to a server: a task that owns it, and requests that any task may send.

The SDK's objects must be entered and left by one task, so a task of its own does both. Requests go straight to the
SDK's dispatcher, as JSON data. Then only the odd part of an answer is lost, where the SDK's session would raise. The
session does the handshake and answers what the server asks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import Any, Protocol

from toolcrib.event_loops import in_loop
from toolcrib.mcp.client.errors import (
    NOT_SENT,
    STATUS,
    ConnectionLost,
    ServerUnavailable,
    check_loop_runs,
    in_place_of_answer,
    leaf_of,
)
from toolcrib.mcp.client.sdk_log import bounded_log
from toolcrib.mcp.client.seams import OnProgress
from toolcrib.mcp.concealment import Conceal, concealed

__all__ = ["Connection", "Link", "Notified"]

ALIVE = 30.0  # seconds that a server has to answer when it is asked whether it still does
ENDS = 0.1  # seconds in which a connection is seen to end, once one of its requests was told so
CLOSE = 4.0  # seconds that closing may take before it is cut off
HEADER_MISMATCH = -32020  # code of an error: the headers do not repeat the arguments as the schema wants
# How the SDK says that a connection or an answer broke off. Servers use the code for errors of their own, too.
CLOSED = -32000
CLOSED_WORDS = ("Connection closed", "SSE stream ended", "SSE stream failed")


class Link(Protocol):
    """How a server is reached: as a child process, over HTTP, or in this process."""

    @property
    def pid(self) -> int:
        """The process id of a local server; 0 for others."""
        ...

    def streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """The streams of the SDK's messages from the server and to it."""
        ...

    @property
    def conceal(self) -> Conceal: ...

    def explanation(self) -> str:
        """What is known of why it failed: the end of stderr, an HTTP status. "" if nothing is."""
        ...


class Connection:
    """An open connection. Made by `Connection.open`; requests may be sent from any task, of any loop.

    `protocol` is the revision that was agreed on. `info` is what the server says of itself: `serverInfo`,
    `capabilities` and `instructions`, as JSON data. `closed` is done when the connection has ended, by whoever.
    """

    def __init__(
        self,
        name: str,
        link: Link,
        options: Mapping[str, Any],
        notified: Notified | None,
        warn: Callable[[str], None],
    ) -> None:
        self.name = name
        self.link = link
        self.conceal = link.conceal
        self.protocol = ""
        self.modern = False
        self.info: dict[str, Any] = {}
        self.problem = ""  # why it ended, for a person; "" if we closed it
        self.session: Any = None
        self.schemas: Mapping[str, Mapping[str, Any]] = {}  # the input schemas of the tools, by their names
        self.relist: Callable[[], Awaitable[None]] | None = None  # lists the tools anew
        self.loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self._options = options
        self._notified = notified
        self._warn = warn
        self._wire: Any = None
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[None] = self.loop.create_future()
        self._owner: asyncio.Task[None] | None = None
        self._claims: dict[str, Any] = {}
        self._log_lines = Counter[int]()
        self._check: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        name: str,
        link: Link,
        *,
        era: str = "",
        timeout: float | None = None,
        options: Mapping[str, Any] | None = None,
        notified: Notified | None = None,
        warn: Callable[[str], None] = lambda words: None,
    ) -> Connection:
        """Connect to a server and agree on a revision of the protocol.

        Args:
            name: The server's configured name, for messages.
            link: How it is reached.
            era: "legacy" where it is known that the server does not take `server/discover`.
            timeout: Seconds until it must be ready.
            options: Those of `RequestHandlers.client_options`.
            notified: Is told every notification of the server: its method and params.
            warn: Is told, in words for a person, what of a server is ignored.

        Raises ServerUnavailable with the reason. What was started is ended again then.
        """
        connection = cls(name, link, options or {}, notified, warn)
        connection._owner = asyncio.ensure_future(connection._own(era))
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(connection._opened)
        except TimeoutError:
            await connection.close()
            why = f"it was not ready after {timeout:g} s"
            raise ServerUnavailable(connection._explained(why)) from None
        except asyncio.CancelledError:
            await connection.close()
            raise
        except Exception as problem:
            await connection.close()
            leaf = leaf_of(problem)
            broke_off = isinstance(leaf, ConnectionError) or _says_closed(leaf)
            why = "it ended while it was starting" if broke_off else _words(leaf)
            status = (in_place_of_answer(leaf) or {}).get(STATUS, 0)
            raise ServerUnavailable(
                connection._explained(why), broke_off=broke_off, status=status
            ) from problem
        return connection

    # -- requests

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
        task: bool = False,
    ) -> Any:
        """Send one `tools/call`. See `RemoteConnection.call_tool` in `seams.py`."""
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        if input_responses is not None:
            params["inputResponses"] = _as_json(input_responses)
        if request_state is not None:
            params["requestState"] = request_state
        if task and self._takes_tasks():
            params["task"] = {}
        send = partial(
            self.request, "tools/call", params, meta=meta, on_progress=on_progress, timeout=timeout
        )
        try:
            result = await send(headers={**self._param_headers(name, arguments), **(headers or {})})
        except Exception as problem:
            # The server wants other headers than the tool's schema said, and has refused the call.
            if getattr(problem, "code", 0) != HEADER_MISMATCH or self.relist is None:
                raise
            await self.relist()
            result = await send(headers={**self._param_headers(name, arguments), **(headers or {})})
        kind = result.get("resultType", "complete")
        if kind == "input_required":
            from mcp_types import InputRequiredResult

            return self._read(InputRequiredResult, result)
        claim = self._claims.get(kind) if isinstance(kind, str) and self.modern else None
        return result if claim is None else self._read(claim.model, result)

    def _takes_tasks(self) -> bool:
        """Whether the server takes calls as tasks of revision 2025-11-25."""
        found = None if self.modern else self.info.get("capabilities")
        for key in ("tasks", "requests", "tools", "call"):
            found = found.get(key) if isinstance(found, Mapping) else None
        return found is not None

    def _param_headers(self, name: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        """The headers that repeat arguments, where the tool's schema asks for that (`x-mcp-header`)."""
        schema = self.schemas.get(name)
        if not self.modern or schema is None:
            return {}
        from mcp.shared.inbound import mcp_param_headers, x_mcp_header_map

        return mcp_param_headers(x_mcp_header_map(schema), arguments)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Send any request, and give its result as JSON data.

        Args:
            method: The method, such as "resources/read".
            params: Its params, without `_meta`.
            meta: For `_meta`, beside what the protocol puts there.
            headers: HTTP headers of this request alone; a local server is not told them.
            on_progress: Awaited with the progress, the total and a message, in the loop of the caller.
            timeout: Seconds to wait, then the server is told to stop. None: for ever.

        Raises:
            mcp.MCPError: The server answered with an error, or not in time (code -32001).
            ConnectionLost: The connection broke after the request was sent.
            ServerUnavailable: Nothing was sent.
        """
        here = asyncio.get_running_loop()
        if here is not self.loop:
            check_loop_runs(self.loop, self.name)
            if on_progress is not None:
                on_progress = _told_in(here, on_progress)
            work = self._request(method, params, meta, headers, on_progress, timeout)
            try:
                return await in_loop(self.loop, work)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # The caller is not cancelled: the connection's loop ended, which cancelled the request there.
                raise ConnectionLost(f"MCP server {self.name!r}: its event loop has ended") from None
        return await self._request(method, params, meta, headers, on_progress, timeout)

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        meta: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        on_progress: OnProgress | None,
        timeout: float | None,
    ) -> dict[str, Any]:
        from mcp import MCPError

        if not self.alive:
            await self.wait_closed()
            raise ServerUnavailable(self._explained("the connection has ended"))
        data = dict(params or {})
        if meta:
            data["_meta"] = dict(meta)
        options: dict[str, Any] = {"headers": dict(headers or {})}
        if timeout is not None:
            options["timeout"] = timeout
        if on_progress is not None:
            options["on_progress"] = on_progress
        if self.modern:
            self._wire.stamp(self.protocol, method, data, options)
        try:
            # The SDK reads an answer in the context of its request.
            with bounded_log(self._log_lines, self.conceal):
                answer: Any = await self._wire.send_raw_request(method, data, options)
        except MCPError as problem:
            if _says_closed(problem):
                with suppress(TimeoutError):  # over HTTP, it may be this answer alone that broke off
                    await asyncio.wait_for(self._wire.ended.wait(), ENDS)
                    await self.wait_closed()  # how the process ended is known then
                raise ConnectionLost(self._explained("the connection ended")) from problem
            told = in_place_of_answer(problem)
            if told is None:
                raise
            status = told.get(STATUS, 0)
            if told.get(NOT_SENT) is True:
                raise ServerUnavailable(self._explained(problem.message)) from problem
            if status == 404 and not self.modern:
                await self.close()
                raise ServerUnavailable(f"MCP server {self.name!r} has ended the session") from problem
            if 400 <= status < 500:
                raise  # it refused the request
            raise ConnectionLost(self._explained(problem.message)) from problem
        if not isinstance(answer, dict):
            raise ConnectionLost(self._explained("its answer is no object"))
        return answer

    def _read(self, model: Any, result: dict[str, Any]) -> Any:
        try:
            return model.model_validate(result, by_name=False)
        except ValueError as problem:
            words = f"its answer does not follow the protocol: {problem}"
            raise ConnectionLost(self._explained(words)) from problem

    # -- life

    def check_alive(self) -> None:
        """Check whether the server still answers, after a call that gave no result in time. If not, end the connection.

        May be called from any loop; nobody waits for it.
        """
        self.loop.call_soon_threadsafe(self._check_alive)

    def _check_alive(self) -> None:
        if self.alive and (self._check is None or self._check.done()):
            self._check = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        from mcp import MCPError
        from mcp_types import REQUEST_TIMEOUT

        method = "server/discover" if self.modern else "ping"
        try:
            await self._request(method, None, None, None, None, ALIVE)
        except MCPError as problem:
            if problem.code == REQUEST_TIMEOUT and not self._closing.is_set():
                self.problem = self._explained(f"it has not answered for {ALIVE:g} s")
                await self._close()
        except (ConnectionLost, ServerUnavailable):
            pass  # it has ended by itself

    @property
    def alive(self) -> bool:
        """Whether requests can be sent."""
        return self._opened.done() and not (
            self._closing.is_set() or self._wire.ended.is_set() or self.closed.done() or self.loop.is_closed()
        )

    async def wait_closed(self) -> None:
        """Wait, for a bounded time, until a connection that has ended is closed and its processes are gone."""
        if not self.closed.done() and self.loop.is_running():
            await in_loop(self.loop, _waited(self.closed, CLOSE))

    async def close(self) -> None:
        """End the connection, and with it a local server's processes. Takes a bounded time, and raises nothing."""
        if self.loop.is_closed():
            return
        if asyncio.get_running_loop() is not self.loop:
            await in_loop(self.loop, self._close())
            return
        await self._close()

    async def _close(self) -> None:
        self._closing.set()
        owner = self._owner
        if owner is None or owner is asyncio.current_task():
            return
        if not self._opened.done():
            owner.cancel()  # it waits for the handshake, not for the end
        for _ in range(2):
            done, _pending = await asyncio.wait([owner], timeout=CLOSE)
            if done:
                return
            owner.cancel()
        import logging

        logging.getLogger("toolcrib").warning("MCP server %r: its connection could not be closed", self.name)

    async def _own(self, era: str) -> None:
        """Enter the connection, wait until it ends, leave it: all in this task."""
        try:
            async with AsyncExitStack() as stack:
                stack.enter_context(bounded_log(self._log_lines, self.conceal))
                read, write = await stack.enter_async_context(self.link.streams())
                from toolcrib.mcp.client.handshake import negotiate, new_session

                self.session, self._wire, self._claims = new_session(
                    read, write, self._options, self._on_message, self._warn, self.conceal
                )
                await stack.enter_async_context(self.session)
                await negotiate(self.session, era)
                self._take_in()
                if not self._opened.done():
                    self._opened.set_result(None)
                ends = [asyncio.ensure_future(event.wait()) for event in (self._closing, self._wire.ended)]
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for waiting in ends:
                        waiting.cancel()
        except BaseException as problem:
            self._ended(leaf_of(problem))
            if isinstance(problem, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
                raise
        else:
            self._ended(None)

    def _ended(self, problem: BaseException | None) -> None:
        if not self._closing.is_set():
            self.problem = self._explained(_words(problem) if problem else "the connection ended")
        if not self._opened.done():
            if isinstance(problem, Exception):
                self._opened.set_exception(problem)
            else:
                self._opened.set_exception(ConnectionError("the connection ended"))
            self._opened.exception()  # somebody may have stopped waiting
        if not self.closed.done():
            self.closed.set_result(None)

    def _take_in(self) -> None:
        """Note what the handshake said."""
        session = self.session
        self.protocol = self._wire.protocol = session.protocol_version
        self.modern = session.discover_result is not None
        said = session.discover_result if self.modern else session.initialize_result
        given = said.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.info = {
            key: given[key]
            for key in ("serverInfo", "capabilities", "instructions")
            if given.get(key) is not None
        }
        if "serverInfo" not in self.info and session.server_info is not None:
            self.info["serverInfo"] = session.server_info.model_dump(
                mode="json", by_alias=True, exclude_none=True
            )
        self.info = concealed(self.info, self.conceal, words=False)

    async def _on_message(self, message: Any) -> None:
        """Hand on a notification."""
        method = getattr(message, "method", None)
        if self._notified is not None and isinstance(method, str):
            params = getattr(message, "params", None)
            self._notified(
                method, {} if params is None else params.model_dump(by_alias=True, exclude_none=True)
            )

    def _explained(self, why: str) -> str:
        why, more = self.conceal(why), self.link.explanation()
        return f"MCP server {self.name!r}: {why}" + (f"; {more}" if more and more not in why else "")


def _says_closed(problem: BaseException) -> bool:
    words = getattr(problem, "message", "")
    return getattr(problem, "code", 0) == CLOSED and str(words).startswith(CLOSED_WORDS)


async def _waited(future: asyncio.Future[None], seconds: float) -> None:
    await asyncio.wait([future], timeout=seconds)


Notified = Callable[[str, Mapping[str, Any]], None]
"""Is told a notification: its method, such as "notifications/tools/list_changed", and its params."""


def _told_in(loop: asyncio.AbstractEventLoop, tell: OnProgress) -> OnProgress:
    """The same callback, awaited in another loop."""

    async def told(progress: float, total: float | None, message: str | None) -> None:
        given: Awaitable[None] = tell(progress, total, message)

        async def work() -> None:
            await given

        await in_loop(loop, work())

    return told


def _words(problem: BaseException) -> str:
    """An exception in words for a person."""
    if isinstance(problem, FileNotFoundError) and problem.filename:
        return f"{problem.strerror}: {problem.filename}"
    text = str(problem)
    return text or type(problem).__name__


def _as_json(value: Any) -> Any:
    """Models of the SDK within a mapping, as JSON data."""
    if isinstance(value, Mapping):
        return {key: _as_json(item) for key, item in value.items()}
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(mode="json", by_alias=True, exclude_none=True)
