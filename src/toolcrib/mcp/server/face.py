"""A toolbox as an MCP server: `McpFace` and the requests about tools.

One object serves both revisions of the protocol, over any transport. Every call takes the toolbox's one path, so that
policy, sandbox, limits, masking and audit log hold for it as for any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

import toolcrib
from toolcrib.call import CallKey, ToolCall
from toolcrib.errors import ErrorCode, is_object_with
from toolcrib.mcp.content import call_result
from toolcrib.mcp.server.asking import DirectPort, Rounds, abilities_of
from toolcrib.mcp.server.clients import Clients, RequestContext, is_modern
from toolcrib.mcp.server.listing import BadCursor, mirrored_schemas, page_of, tools_of
from toolcrib.mcp.server.offered import Offered
from toolcrib.mcp.server.offers import Complete, Prompts, Resources
from toolcrib.mcp.server.questions import ClientApprover, Listener
from toolcrib.mcp.server.search_face import CALL, SEARCH, SEARCH_FACE, found_tools, inner_call
from toolcrib.mcp.server.served_call import CURRENT, ServedCall, Slots
from toolcrib.mcp.server.tasks import Tasks, TaskSupport
from toolcrib.result import ToolResult
from toolcrib.toolbox import Toolbox
from toolcrib.toolbox.tool_list import ToolList

__all__ = ["McpFace", "require_face"]

PAGE = 500  # tools of one page
ANSWER_TIME = 600.0  # seconds that a person at the client has to answer
WATCHING = 1.0  # seconds between looks at whether the tools changed
CLOSING = 60.0  # seconds that calls and what clients began have to end when the last transport leaves
RESERVED = "io.modelcontextprotocol/"  # how the protocol's own keys begin in the `_meta` of a result
KEPT = 60.0  # seconds that the result of a call is kept for which nobody waits at the moment
CANNOT_ASK = (
    "The connected client cannot show questions to a person (it has no elicitation); the operator of this server may "
    "allow the call by a rule, or the user may connect a client that can."
)


class McpFace:
    """A toolbox, as an MCP server shows it. Serve it by `serve_stdio`, or hand `face.server` to the MCP SDK.

    Questions of the policy and of tools go to the person at the client, by elicitation, if the client can show them;
    else to the toolbox's own approver; without both, what has to be asked is refused.

    Args:
        toolbox: The tools and the policy for their calls.
        name: The name of the server, for clients.
        version: Its version; toolcrib's own if none is given.
        title: Its name for people.
        instructions: What a model should know before it uses the tools.
        show: "tools" shows all tools. "search" shows two in their place, one that finds tools and one that calls them:
            for toolboxes with more tools than a model should read.
        page_size: How many tools `tools/list` gives at one time.
        list_ttl: Seconds for which a client may keep the list of tools.
        max_calls: How many calls run at one time; others wait, at most `max_waiting`, and what is beyond is refused.
        max_waiting: See `max_calls`.
        max_asking: How many calls may wait for an answer at one time.
        answer_time: Seconds that a person at the client has to answer a question.
        lasting_approvals: Whether a person at the client may say "always" for longer than their connection.
        tasks: Tools whose calls become tasks at once: "optional" for clients that know the tasks extension, "required"
            to refuse others.
        task_after: Seconds after which any other call becomes a task, if the client knows the extension; None: never.
        task_ttl: Seconds for which a task exists; one that still runs then is cancelled.
        max_tasks: How many tasks there may be; beyond that, calls stay calls.
        resources: Resources to offer beside the tools.
        prompts: Prompts to offer.
        complete: Suggests values for arguments of prompts and resource templates.

    Raises ImportError without the `mcp` extra.

    >>> from toolcrib import Effect, Toolbox, tool
    >>> @tool(effect=Effect.READ, secrets=())
    ... def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> face = McpFace(Toolbox([add]), name="calculator")
    >>> face.server.name
    'calculator'
    """

    def __init__(
        self,
        toolbox: Toolbox[Any],
        *,
        name: str = "toolcrib",
        version: str = "",
        title: str = "",
        instructions: str = "",
        show: Literal["tools", "search"] = "tools",
        page_size: int = PAGE,
        list_ttl: float = 0.0,
        max_calls: int = 64,
        max_waiting: int = 1_000,
        max_asking: int = 256,
        answer_time: float = ANSWER_TIME,
        lasting_approvals: bool = False,
        tasks: Mapping[str, TaskSupport] | None = None,
        task_after: float | None = 20.0,
        task_ttl: float = 3600.0,
        max_tasks: int = 1_000,
        resources: Resources | None = None,
        prompts: Prompts | None = None,
        complete: Complete | None = None,
    ) -> None:
        if not is_object_with(toolbox, "call_turn"):
            raise TypeError(f"a face serves a toolbox, as in McpFace(Toolbox([...])); got {toolbox!r}")
        if show not in ("tools", "search"):
            raise ValueError(f'show must be "tools" or "search", got {show!r}')
        if page_size < 1 or max_calls < 1:
            raise ValueError("page_size and max_calls must be at least 1")
        self.toolbox = toolbox
        self._show = show
        self._page_size = page_size
        self._list_ttl = round(list_ttl * 1000)
        self._limits = (max_calls, max_waiting, max_asking)
        self._max_asking = max_asking
        self._answer_time = answer_time
        self._lasting_approvals = lasting_approvals
        self._clients = Clients(toolbox)
        self._calls: dict[str, ServedCall] = {}  # by their ids, those that a further request may come back to
        self._count = 0
        self._users = 0
        self._slots: Slots | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._approver: ClientApprover | None = None  # in the place of the toolbox's own while it is served
        self._listener = Listener(self)
        self._last_listed: ToolList | None = None
        self._mirrored: dict[str, Any] = {}  # schemas of tools whose arguments are repeated in HTTP headers
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self.server: Server[Any] = _Server(
            name,
            version=version or toolcrib.__version__,
            title=title or None,
            instructions=instructions or None,
            lifespan=self._lifespan,
            on_subscriptions_listen=self._listen,
            get_tool_input_schema=lambda tool: self._mirrored.get(tool),
        )
        self.server.middleware.append(
            RequestStateBoundary(
                RequestStateSecurity.ephemeral(ttl=answer_time + KEPT), default_audience=name
            )
        )
        self._tasks = Tasks(self._clients, tasks or {}, task_after, task_ttl, max_tasks)
        self._tasks.register(self.server)
        self._offered = Offered(
            self.server, self._run, self._clients, self._bus, page_size, resources, prompts, complete
        )
        self.server.add_request_handler("tools/list", types.PaginatedRequestParams, self._list_tools)
        self.server.add_request_handler("tools/call", types.CallToolRequestParams, self._call_tool)
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_log_level)
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._initialized
        )

    # -- its life

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncGenerator[dict[str, Any]]:
        """Entered by each transport that serves the face; the toolbox stays entered until the last has left."""
        async with self.toolbox:
            self._users += 1
            if self._users == 1:
                self._open()
            try:
                yield {}
            finally:
                self._users -= 1
                if not self._users:
                    await self._close()

    def _open(self) -> None:
        self._slots = Slots(*self._limits)
        self._approver = ClientApprover(self, self.toolbox.approver, self._lasting_approvals)
        self.toolbox.approver = self._approver
        self.toolbox.sink.add(self._listener)
        self._watcher = asyncio.create_task(self._watch(), name="mcp tool list")

    async def _close(self) -> None:
        current = self.toolbox.approver
        if isinstance(current, ClientApprover) and current is self._approver:
            self.toolbox.approver = current.own
        self._listen.close()
        self.toolbox.sink.remove(self._listener)
        assert self._watcher is not None
        self._watcher.cancel()
        with anyio.move_on_after(CLOSING, shield=True):  # also where the transport was cancelled
            await asyncio.gather(self._watcher, return_exceptions=True)
            await asyncio.gather(*(call.stop() for call in self._calls.values()))
            await self._tasks.close()
            await self._clients.close()
        self._calls.clear()

    async def _watch(self) -> None:
        """Tell clients when tools or policy changed. It polls, since a toolset shows a change by its version only."""
        known: tuple[Any, ...] | None = None
        while True:
            with suppress(Exception):  # of anybody's toolset
                basis = self._basis()
                if known is not None and basis != known:
                    await self.tools_changed()
                known = basis
            await asyncio.sleep(WATCHING)

    def _basis(self) -> tuple[Any, ...]:
        return (self.toolbox.registry.version, id(self.toolbox.policy))

    async def tools_changed(self) -> None:
        """Tell all clients that the list of tools is another. It is also found out within a second or so."""
        await self._bus.publish(ToolsListChanged())
        for connection in self._clients.connections():
            await connection.send_tool_list_changed()

    async def prompts_changed(self) -> None:
        """Tell all clients that the list of prompts is another."""
        await self._bus.publish(PromptsListChanged())
        for connection in self._clients.connections():
            await connection.send_prompt_list_changed()

    async def resources_changed(self) -> None:
        """Tell all clients that the list of resources is another."""
        await self._bus.publish(ResourcesListChanged())
        for connection in self._clients.connections():
            await connection.send_resource_list_changed()

    async def resource_updated(self, uri: str) -> None:
        """Tell the clients that watch a resource that it is another now."""
        await self._offered.resource_updated(uri)

    async def _initialized(self, ctx: RequestContext, params: types.NotificationParams) -> None:
        self._clients.add_connection(ctx)

    async def _set_log_level(
        self, ctx: RequestContext, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._clients.set_log_level(ctx, params.level)
        return types.EmptyResult()

    # -- tools

    async def _listed(self, run: str) -> ToolList:
        """The tools that a client is shown now."""
        listed = await self.toolbox.tool_list(run=run)
        if listed is not self._last_listed:
            self._last_listed, self._mirrored = listed, mirrored_schemas(listed)
        return listed

    async def _list_tools(self, ctx: RequestContext, params: types.PaginatedRequestParams) -> dict[str, Any]:
        listed = await self._listed(await self._clients.run_of(ctx))
        tools = SEARCH_FACE if self._show == "search" else tools_of(listed, any_json=is_modern(ctx))
        try:
            page, cursor = page_of(tools, self._page_size, params.cursor)
        except BadCursor as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from None
        # What a policy shows may depend on who asks, so no cache may share it.
        data: dict[str, Any] = {
            "resultType": "complete",
            "tools": page,
            "ttlMs": self._list_ttl,
            "cacheScope": "private",
        }
        return data if cursor is None else {**data, "nextCursor": cursor}

    async def _call_tool(self, ctx: RequestContext, params: types.CallToolRequestParams) -> Any:
        given = params.arguments or {}
        wanted: ToolCall | ToolResult = ToolCall(params.name, given)
        if self._show == "search" and params.name == CALL:
            wanted = inner_call(given)
        patience = self._tasks.patience(ctx, wanted.name) if isinstance(wanted, ToolCall) else None

        async def work(key: CallKey) -> ToolResult:
            listed = await self._listed(key.run)
            if isinstance(wanted, ToolResult):
                return wanted
            if self._show == "search" and params.name == SEARCH:
                return found_tools(listed, given)
            result = await self.toolbox.call(wanted, key=key, tool_list=listed)
            entry, served = listed.entries.get(wanted.name), CURRENT.get()
            if (
                self._show == "tools"
                and entry is not None
                and entry.compiled is not None
                and served is not None
            ):
                served.output_schema = entry.compiled.output.schema
            return result

        call = self._came_back(params) or await self._begin(ctx, work, params.input_responses)

        def finish(result: ToolResult) -> dict[str, Any]:
            return self._result(ctx, call, result)

        outcome = await self._attended(ctx, call, patience, finish)
        return finish(outcome) if isinstance(outcome, ToolResult) else outcome

    async def _run(
        self,
        ctx: RequestContext,
        params: types.InputResponseRequestParams,
        work: Callable[[], Awaitable[Any]],
    ) -> Any:
        """Run other work as a call of the client: its result, or what it asks the client."""
        call = self._came_back(params) or await self._begin(ctx, lambda key: work(), params.input_responses)
        return await self._attended(ctx, call)

    def _came_back(self, params: types.InputResponseRequestParams) -> ServedCall | None:
        """The call that waits for this request, with the responses that it brings; None for a new one.

        The state was sealed for this request, and for the same arguments (`RequestStateBoundary`).
        """
        if params.request_state is None:
            return None
        call = self._calls.get(params.request_state)
        if call is None or call.attached or not isinstance(call.port, Rounds):
            invalid = {"reason": "invalid_request_state"}
            raise MCPError(types.INVALID_PARAMS, "Invalid or expired requestState", data=invalid)
        call.port.answer(params.input_responses or {})
        return call

    async def _begin(
        self, ctx: RequestContext, work: Callable[[CallKey], Awaitable[Any]], given: Mapping[str, Any] | None
    ) -> ServedCall:
        slots = self._slots
        assert slots is not None
        run = await self._clients.run_of(ctx)
        if slots.full:
            raise MCPError(
                types.INTERNAL_ERROR, "The server is busy: too many calls wait already. Try later."
            )
        self._count += 1
        seconds = self._answer_time
        port = Rounds(seconds, given) if is_modern(ctx) else DirectPort(ctx.session, ctx.request_id, seconds)
        abilities = abilities_of(ctx.session.client_capabilities)
        call = ServedCall(self, CallKey(run, 0, self._count), abilities, port, slots)
        call.start(lambda: work(call.key))
        return call

    async def _attended(
        self,
        ctx: RequestContext,
        call: ServedCall,
        patience: float | None = None,
        finish: Callable[[Any], dict[str, Any]] = dict,
    ) -> Any:
        """Wait for a call on behalf of a request: its result, what it asks, or the task that it becomes.

        A request that is cancelled cancels the call.
        """
        assert call.task is not None
        call.attached, call.end_stream = True, ctx.close_sse_stream
        telling = asyncio.create_task(call.tell(ctx.session, ctx.request_id, self._clients.log_level(ctx)))
        try:
            try:
                async with asyncio.timeout(patience):
                    questions = await call.outcome()
            except TimeoutError:
                if self._tasks.full:  # others became tasks meanwhile: the client waits for this one
                    questions = await call.outcome()
                else:
                    self._calls.pop(call.id, None)
                    return self._tasks.add(call, finish)
            if questions:
                return self._asks(call, questions)
            if call.lacking is not None and is_modern(
                ctx
            ):  # the protocol wants an error that names the capability
                raise call.lacking
            with suppress(Exception):  # a client that reads no news gets its result all the same
                await telling
            self._calls.pop(call.id, None)
            return call.task.result()
        except BaseException:
            self._calls.pop(call.id, None)
            await call.stop()
            raise
        finally:
            call.attached, call.end_stream = False, None
            telling.cancel()

    def _asks(
        self, call: ServedCall, questions: Mapping[str, types.InputRequest]
    ) -> types.InputRequiredResult:
        if call.id not in self._calls:
            if len(self._calls) >= self._max_asking:
                raise MCPError(types.INTERNAL_ERROR, "The server is busy: too many calls wait for answers.")
            self._calls[call.id] = call
            assert call.task is not None
            loop = asyncio.get_running_loop()
            call.task.add_done_callback(lambda _: loop.call_later(KEPT, self._calls.pop, call.id, None))
        return types.InputRequiredResult(input_requests=dict(questions), request_state=call.id)

    def _result(self, ctx: RequestContext, call: ServedCall, result: ToolResult) -> dict[str, Any]:
        data = call_result(result, any_json=is_modern(ctx), schema=call.output_schema)
        if "_meta" in data:  # of a server behind us: what it says of itself there is not ours to say
            data["_meta"] = {
                key: value for key, value in data["_meta"].items() if not key.startswith(RESERVED)
            }
        if result.code is ErrorCode.NOBODY_TO_ASK and not call.abilities.forms:
            data["content"].append({"type": "text", "text": CANNOT_ASK})
        return {"resultType": "complete", **data}


def require_face(face: object) -> None:
    """Raises TypeError for what is no face, such as a toolbox."""
    if not isinstance(face, McpFace):
        raise TypeError(f"expected a face, as in McpFace(Toolbox([...])); got {face!r}")


class _Server(Server[Any]):
    """The SDK's server, which says that its lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)
