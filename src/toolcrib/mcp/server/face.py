"""A toolbox as an MCP server: `McpFace` and the requests about tools.

One object serves both revisions of the protocol, over any transport. Every call takes the toolbox's one path, so that
policy, sandbox, limits, masking and audit log hold for it as for any other.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

import toolcrib
from toolcrib.call import CallKey, ToolCall
from toolcrib.errors import ErrorCode
from toolcrib.events import Event
from toolcrib.mcp.content import call_result
from toolcrib.mcp.elicitation import answer_to, elicitation
from toolcrib.mcp.server.asking import DirectPort, Rounds, abilities_of
from toolcrib.mcp.server.clients import Clients, RequestContext, is_modern
from toolcrib.mcp.server.listing import BadCursor, page_of, sorted_specs, tool_of
from toolcrib.mcp.server.served_call import CURRENT, ServedCall, Slots
from toolcrib.question import Answer, Lasting, Question
from toolcrib.result import ToolResult
from toolcrib.toolbox import Toolbox

__all__ = ["McpFace"]

PAGE = 500  # tools of one page
ANSWER_TIME = 600.0  # seconds that a person at the client has to answer
WATCHING = 1.0  # seconds between looks at whether the tools changed
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
        page_size: How many tools `tools/list` gives at one time.
        list_ttl: Seconds for which a client may keep the list of tools.
        max_calls: How many calls run at one time; others wait, at most `max_waiting`, and what is beyond is refused.
        max_waiting: See `max_calls`.
        max_asking: How many calls may wait for an answer at one time.
        answer_time: Seconds that a person at the client has to answer a question.
        lasting_approvals: Whether a person at the client may say "always" for longer than their connection.

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
        page_size: int = PAGE,
        list_ttl: float = 0.0,
        max_calls: int = 64,
        max_waiting: int = 1_000,
        max_asking: int = 256,
        answer_time: float = ANSWER_TIME,
        lasting_approvals: bool = False,
    ) -> None:
        if page_size < 1 or max_calls < 1:
            raise ValueError("page_size and max_calls must be at least 1")
        self.toolbox = toolbox
        self._page_size = page_size
        self._list_ttl = round(list_ttl * 1000)
        self._limits = (max_calls, max_waiting)
        self._max_asking = max_asking
        self._answer_time = answer_time
        self._lasting_approvals = lasting_approvals
        self._clients = Clients(toolbox)
        self._calls: dict[str, ServedCall] = {}  # by their ids, those that a further request may come back to
        self._count = 0
        self._users = 0
        self._slots: Slots | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._replaced: tuple[Any, Any] | None = None  # the toolbox's own approver, and ours in its place
        self._listener = _Listener(self)
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self.server: Server[Any] = _Server(
            name,
            version=version or toolcrib.__version__,
            title=title or None,
            instructions=instructions or None,
            lifespan=self._lifespan,
            on_subscriptions_listen=self._listen,
        )
        self.server.middleware.append(
            RequestStateBoundary(
                RequestStateSecurity.ephemeral(ttl=answer_time + KEPT), default_audience=name
            )
        )
        self.server.add_request_handler("tools/list", types.PaginatedRequestParams, self._list_tools)
        self.server.add_request_handler("tools/call", types.CallToolRequestParams, self._call_tool)
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_log_level)
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._initialized
        )

    # -- its life

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
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
        own = self.toolbox.approver
        ours = _ClientApprover(self, own)
        self.toolbox.approver, self._replaced = ours, (own, ours)
        self.toolbox.sink.add(self._listener)
        self._watcher = asyncio.create_task(self._watch(), name="mcp tool list")

    async def _close(self) -> None:
        self._listen.close()
        self.toolbox.sink.remove(self._listener)
        if self._watcher is not None:
            self._watcher.cancel()
            with suppress(asyncio.CancelledError):
                await self._watcher
        for call in list(self._calls.values()):
            await call.stop()
        self._calls.clear()
        await self._clients.close()
        if self._replaced is not None and self.toolbox.approver is self._replaced[1]:
            self.toolbox.approver = self._replaced[0]

    async def _watch(self) -> None:
        """Tell clients when the tools or the policy changed. A toolset says so by its version alone."""
        known = self._basis()
        while True:
            await asyncio.sleep(WATCHING)
            if (basis := self._basis()) != known:
                known = basis
                await self.tools_changed()

    def _basis(self) -> tuple[Any, ...]:
        return (self.toolbox.registry.version, id(self.toolbox.policy))

    async def tools_changed(self) -> None:
        """Tell all clients that the list of tools is another. It is also found out within a second or so."""
        await self._bus.publish(ToolsListChanged())
        for connection in self._clients.connections():
            await connection.send_tool_list_changed()

    async def _initialized(self, ctx: RequestContext, params: types.NotificationParams) -> None:
        self._clients.meet(ctx)

    async def _set_log_level(
        self, ctx: RequestContext, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._clients.set_log_level(ctx, params.level)
        return types.EmptyResult()

    # -- tools

    async def _list_tools(self, ctx: RequestContext, params: types.PaginatedRequestParams) -> dict[str, Any]:
        shown = await self.toolbox.tool_list(run=await self._clients.run_of(ctx))
        tools = [tool_of(spec, any_json=is_modern(ctx)) for spec in sorted_specs(shown.specs)]
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

    async def _call_tool(
        self, ctx: RequestContext, params: types.CallToolRequestParams
    ) -> dict[str, Any] | types.InputRequiredResult:
        if params.request_state is not None:
            call = self._came_back(params.request_state)
            if isinstance(call.port, Rounds):
                call.port.answer(params.input_responses or {})
        else:
            call = await self._begin(ctx, params)
        return await self._attended(ctx, call)

    def _came_back(self, state: str) -> ServedCall:
        """The call that waits for this request. The state was sealed for it, and for the same arguments."""
        call = self._calls.get(state)
        if call is None or call.attached:
            raise MCPError(
                types.INVALID_PARAMS,
                "Invalid or expired requestState",
                data={"reason": "invalid_request_state"},
            )
        return call

    async def _begin(self, ctx: RequestContext, params: types.CallToolRequestParams) -> ServedCall:
        slots = self._slots
        assert slots is not None
        if slots.full:
            raise MCPError(
                types.INTERNAL_ERROR, "The server is busy: too many calls wait already. Try later."
            )
        run = await self._clients.run_of(ctx)
        self._count += 1
        port = (
            Rounds(self._answer_time)
            if is_modern(ctx)
            else DirectPort(ctx.session, ctx.request_id, self._answer_time)
        )
        abilities = abilities_of(ctx.session.client_capabilities)
        call = ServedCall(self, CallKey(run, 0, self._count), abilities, port, slots)
        box, wanted = self.toolbox, ToolCall(params.name, params.arguments or {})

        async def work() -> ToolResult:
            offered = await box.tool_list(run=run)
            return await box.call(wanted, key=call.key, tool_list=offered)

        call.start(work)
        return call

    async def _attended(
        self, ctx: RequestContext, call: ServedCall
    ) -> dict[str, Any] | types.InputRequiredResult:
        """Wait for a call on behalf of a request: its result, or what it asks. A request that is cancelled ends it."""
        call.attached = True
        telling = asyncio.create_task(call.tell(ctx.session, ctx.request_id, self._clients.log_level(ctx)))
        try:
            outcome = await call.outcome()
            if isinstance(outcome, dict):
                return self._asks(call, outcome)
            with suppress(Exception):  # a client that reads no news gets its result all the same
                await telling
            self._calls.pop(call.id, None)
            return self._result(ctx, call, outcome)
        except BaseException:
            self._calls.pop(call.id, None)
            await call.stop()
            raise
        finally:
            call.attached = False
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
        data = call_result(result, any_json=is_modern(ctx))
        if result.code is ErrorCode.NOBODY_TO_ASK and not call.abilities.forms:
            data["content"].append({"type": "text", "text": CANNOT_ASK})
        return {"resultType": "complete", **data}

    # -- questions

    async def answers_of_client(self, questions: Sequence[Question], call: ServedCall) -> list[Answer | None]:
        """The answers of the person at the client of a call, to be asked together; None where nobody answered."""
        requests: dict[str, types.InputRequest] = {}
        for number, question in enumerate(questions):
            request = {"method": "elicitation/create", "params": elicitation(question)}
            name = question.kind if not number else f"{question.kind}_{number + 1}"
            requests[name] = types.ElicitRequest.model_validate(request, by_name=False)
        responses = await call.ask(requests)
        return [
            self._answer(question, responses.get(name))
            for name, question in zip(requests, questions, strict=True)
        ]

    def _answer(self, question: Question, response: Any) -> Answer | None:
        if response is None:
            return None
        answer = answer_to(question, response.model_dump(mode="json"), by="the MCP client's user")
        if answer is None or answer.lasting is Lasting.RUN or self._lasting_approvals:
            return answer
        return replace(answer, lasting=Lasting.RUN)


class _ClientApprover:
    """Asks the client of the call that asks; anything else is put to the toolbox's own approver."""

    def __init__(self, face: McpFace, own: Callable[[Any], Any] | None) -> None:
        self._face = face
        self._own = own

    async def __call__(self, question: Question) -> Any:
        call = self._asking()
        if call is not None:
            return (await self._face.answers_of_client([question], call))[0]
        return await _given(self._own, question)

    async def ask_all(self, questions: Sequence[Question]) -> Any:
        """The answers to several questions that were asked at one time."""
        call = self._asking()
        if call is not None:
            return await self._face.answers_of_client(questions, call)
        together = getattr(self._own, "ask_all", None)
        if callable(together):
            return await _given(together, questions)
        return [await _given(self._own, question) for question in questions]

    def _asking(self) -> ServedCall | None:
        call = CURRENT.get()
        asks = call is not None and call.face is self._face and not call.done and call.abilities.forms
        return call if asks else None


async def _given(own: Callable[[Any], Any] | None, asked: Any) -> Any:
    """What the toolbox's own approver gives. A sync one may wait for a person, so it runs on a thread."""
    if own is None:
        return None
    if inspect.iscoroutinefunction(own) or inspect.iscoroutinefunction(type(own).__call__):
        return await own(asked)
    given = await asyncio.to_thread(own, asked)
    return await given if inspect.isawaitable(given) else given


class _Listener:
    """Hands events to the served call that they were emitted in."""

    def __init__(self, face: McpFace) -> None:
        self._face = face

    def put(self, event: Event) -> None:
        call = CURRENT.get()
        if call is not None and call.face is self._face and not call.done:
            call.take(event)

    def close(self) -> None:
        """Do nothing: what waits is sent."""


class _Server(Server[Any]):
    """The SDK's server, which says that its list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)
