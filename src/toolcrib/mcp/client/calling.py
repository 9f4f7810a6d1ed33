"""One call of a remote tool, from its arguments to its result.

| what happens                                 | result                                                              |
| -------------------------------------------- | ------------------------------------------------------------------- |
| the server answers                           | its content, as `toolcrib.mcp.content` reads it                     |
| it wants input (`input_required`)            | the person is asked, and it is called again with the answers        |
| it answers with a task                       | the task is polled until it has ended                               |
| it answers with an error                     | `tool_error`, in the server's words                                 |
| it cannot be started or reached              | `failed`: nothing was sent                                          |
| it defines the tool otherwise by now         | `tool_changed`: nothing was sent                                    |
| the connection breaks after the call is sent | `outcome_unknown`; `tool_error` if the tool may run twice           |
| no answer and no progress in time            | the same, after the server was told to stop                         |

A call is never sent twice, with three exceptions in which the server itself says that the first one did nothing yet: an
answer that wants input, an error that wants the person to open an address first, and a call whose run waited for a
person's answer. A call of an older server cannot wait for days on its connection: there, only the call of a tool that
may run twice is left at a question, and sent anew when the answer is there. Any other is answered "cancel".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.content import Text
from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.errors import ErrorCode
from toolcrib.facts import MaxOutput
from toolcrib.mcp.client.elicit import CannotAsk
from toolcrib.mcp.client.errors import ConnectionLost, DefinitionChanged, ServerUnavailable
from toolcrib.mcp.client.requests import ServerRequests
from toolcrib.mcp.client.running import RemoteFailure, RunningCall, TimedOut
from toolcrib.mcp.client.tasks import older_task_result, task_result
from toolcrib.mcp.content import OWN, as_wire, received
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.context import Context
    from toolcrib.mcp.client.seams import CalledTool, RemoteServer

__all__ = ["ask_remote", "call_remote", "with_remarks"]

MAX_ROUNDS = 10  # answers that want input, of one call
STATE_ONLY = 0.05  # seconds before a server that wants nothing but another call is called again; then doubled
LONGEST_PAUSE = 1.0
MAX_WORDS = 2_000  # characters of a server's error
MAX_STATE = 1_000_000  # characters
URL_ELICITATION_REQUIRED = -32042
UI = "ui"


async def call_remote(
    ctx: Context[Any],
    server: RemoteServer,
    definition: CalledTool,
    arguments: Mapping[str, Any],
    admit: Callable[[], Awaitable[None]],
) -> ToolResult:
    """Call a tool of a server. Always gives a result, except that it is cancelled with its task, or is suspended.

    `admit` is awaited when the server runs and before the call is begun; it raises DefinitionChanged.
    """

    async def send(call: RunningCall, requests: ServerRequests, given: Given) -> Any:
        connection, headers = await call.reached()
        if given == Given():
            with call.paused():
                await admit()
        return await connection.call_tool(
            definition.name,
            arguments,
            meta=_meta(requests, modern=connection.modern),
            headers=headers,
            on_progress=call.progress,
            input_responses=given.responses,
            request_state=given.state,
            task=definition.task and requests.tasks,
        )

    answer = await answer_of(ctx, server, send)
    if isinstance(answer, ToolResult):
        return answer
    data, remarks = answer
    return with_remarks(_result(ctx, definition, data), remarks)


async def ask_remote(
    ctx: Context[Any], server: RemoteServer, method: str, params: Mapping[str, Any], *, words: bool = True
) -> tuple[dict[str, Any], list[str]] | ToolResult:
    """Send another request than a call of a tool. Gives what `answer_of` gives."""

    async def send(call: RunningCall, requests: ServerRequests, given: Given) -> Any:
        connection, headers = await call.reached()
        more: dict[str, Any] = {"inputResponses": given.responses, "requestState": given.state}
        wanted = {key: value for key, value in more.items() if value is not None}
        return await connection.request(method, {**params, **wanted}, headers=headers)

    return await answer_of(ctx, server, send, words=words)


@dataclass(frozen=True, slots=True)
class Given:
    """What a repeated request carries: the responses to what the server wanted in its last answer, and its state."""

    responses: dict[str, Any] | None = None
    state: str | None = None


Send = Callable[[RunningCall, ServerRequests, Given], Awaitable[Any]]
"""Sends the request of a call, and gives its result."""


async def answer_of(
    ctx: Context[Any], server: RemoteServer, send: Send, *, words: bool = True
) -> tuple[dict[str, Any], list[str]] | ToolResult:
    """The result of a request at the end, as JSON data, and remarks for the model beside it; or how it failed.

    The data are without credentials; `words` as in `Conceal`.
    """
    name = server.config.name
    call = RunningCall(ctx, server)
    wanted = server.requests
    requests = wanted if isinstance(wanted, ServerRequests) else ServerRequests(name)
    twice = _may_run_twice(ctx)
    try:
        with call.paused():  # starting a server has a time of its own
            await call.reached()
        with requests.serving(call):
            data: dict[str, Any] = await call.outcome(_conversation(call, requests, send))
    except TimedOut as problem:
        call.check_alive()
        how = f"gave no result within {problem.seconds:.3g} seconds, and was told to stop"
        return _with_remarks(_lost(name, how, twice=twice, code=ErrorCode.TIMED_OUT), call)
    except ServerUnavailable as problem:
        return _unavailable(call, problem)
    except DefinitionChanged:
        return model_messages.tool_changed(ctx.tool)
    except ConnectionLost as problem:
        ctx.note(call.concealed(str(problem)))
        return _with_remarks(_lost(name, "lost the connection after the call was sent", twice=twice), call)
    except RemoteFailure as problem:
        told = call.concealed(problem.words)
        result = _failed(name, told, unknown=problem.unknown and not twice)
        return _with_remarks(result, call)
    except CannotAsk as refusal:
        told = call.concealed(f"could not go on, because {refusal}")
        result = _failed(name, told, unknown=False)
        return _with_remarks(result, call)
    return call.concealed(data, words=words), call.remarks


async def _conversation(call: RunningCall, requests: ServerRequests, send: Send) -> dict[str, Any]:
    """The data of the result at the end, with all that the server wants before it."""
    from mcp import MCPError

    state = call.saved()
    if state is not None and state["kind"] == "task":
        return await task_result(call, requests, state["task"], state)
    rounds, pause = 0, STATE_ONLY
    wanted: Mapping[str, Any] | None = None
    if state is not None and state["kind"] == "input":
        rounds, wanted = state["round"], state["wanted"]
    given = Given()
    again = False
    while True:
        if wanted is not None:
            asked, responses, own = wanted.get("inputRequests"), None, _state(wanted)
            if isinstance(asked, Mapping) and asked:
                asked = {key: call.concealed(one, words=False) for key, one in asked.items()}
                saved = {"inputRequests": asked, "requestState": own}
                call.save({"kind": "input", "round": rounds, "wanted": saved})
                responses = await requests.responses(call, asked)
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            given, wanted = Given(responses, own), None
        try:
            data = as_wire(await send(call, requests, given))
        except MCPError as problem:
            addresses = _addresses(problem)
            rounds += 1
            if addresses is None or rounds > MAX_ROUNDS:
                raise RemoteFailure(_words_of(problem)) from problem
            call.save({"kind": "address"})  # nothing is done yet, so the call may begin again
            answers = await requests.responses(call, addresses)
            if any(answer.get("action") != "accept" for answer in answers.values()):
                raise RemoteFailure("needs an address to be opened first, which was not done") from problem
            continue
        except ServerUnavailable:
            if again:
                raise
            again = True  # nothing was sent: a process or a session has ended since it was used last
            continue
        kind = data.get("resultType", "complete")
        if kind == "task":
            return await task_result(call, requests, data, None)
        if isinstance(older := data.get("task"), Mapping) and "content" not in data:
            return await older_task_result(call, older)
        if kind != "input_required":
            return dict(data)
        wanted, rounds = data, rounds + 1
        if rounds > MAX_ROUNDS:
            raise RemoteFailure(f"wanted input more than {MAX_ROUNDS} times")


def _state(wanted: Mapping[str, Any]) -> str | None:
    """The server's own state, which is given back as it is."""
    state = wanted.get("requestState")
    if isinstance(state, str) and len(state) > MAX_STATE:
        raise RemoteFailure(
            f"sent {len(state):,} characters of its own state, at most {MAX_STATE:,} are kept"
        )
    return state if isinstance(state, str) else None


def _meta(requests: ServerRequests, *, modern: bool) -> dict[str, Any] | None:
    """Servers of the stateless revisions send log messages only for a request that says from which level on."""
    level = requests.log_level
    return {"io.modelcontextprotocol/logLevel": level} if modern and level else None


def _addresses(problem: Any) -> dict[str, Any] | None:
    """The addresses that a person has to open before the call can be made, as requests; None for another error."""
    given = problem.data.get("elicitations") if isinstance(problem.data, Mapping) else None
    if problem.code != URL_ELICITATION_REQUIRED or not isinstance(given, list) or not given:
        return None
    asked = [one for one in given if isinstance(one, Mapping)]
    return {
        str(number): {"method": "elicitation/create", "params": {**one, "mode": "url"}}
        for number, one in enumerate(asked)
    } or None


# -- results


def _result(ctx: Context[Any], definition: CalledTool, data: Mapping[str, Any]) -> ToolResult:
    facts = getattr(ctx._definition, "facts", None)
    limit = getattr(facts, "max_output", None) or MaxOutput()
    got = received(data, output_schema=definition.output_schema is not None, budget=limit.bytes)
    if got.for_person:
        ctx.report(result="\n".join(part.as_text() for part in got.for_person))
    address = _app(definition)
    if address and not got.result.is_error:
        extras = got.result.extras or {}
        app = {"server": definition.server, "resource_uri": address}
        got.result.extras = {**extras, OWN: {**extras.get(OWN, {}), UI: app}}
    return got.result


def _app(definition: CalledTool) -> str:
    """The address of the user interface in which the results of a tool are shown (MCP Apps); "" without one."""
    ui = definition.meta.get(UI)
    address = ui.get("resourceUri") if isinstance(ui, Mapping) else definition.meta.get("ui/resourceUri")
    return address if isinstance(address, str) and address.startswith("ui://") else ""


def _may_run_twice(ctx: Context[Any]) -> bool:
    facts = getattr(ctx._definition, "facts", None)
    return facts is not None and (facts.effect is Effect.READ or facts.idempotent)


def _failed(name: str, words: str, *, unknown: bool) -> ToolResult:
    """The result of a call that failed or, with `unknown`, of one that may have done its work."""
    text = f"The server {name!r} {on_one_line(words, MAX_WORDS).rstrip('.')}."
    if unknown:
        text += " Whether the call did its work is unknown: check the state before you call it again."
    return ToolResult.of(text, code=ErrorCode.OUTCOME_UNKNOWN if unknown else ErrorCode.TOOL_ERROR)


def _lost(name: str, words: str, *, twice: bool, code: ErrorCode = ErrorCode.TOOL_ERROR) -> ToolResult:
    """A call without an answer. Only what may run twice is safe to call again."""
    if not twice:
        return _failed(name, words, unknown=True)
    return ToolResult.of(f"The server {name!r} {words}. The call can be made again.", code=code)


def _unavailable(call: RunningCall, problem: ServerUnavailable) -> ToolResult:
    call.ctx.note(call.concealed(str(problem)))
    return ToolResult.of(
        f"The server {call.server!r} is not available now; nothing was sent. Go on without it, or try again later.",
        code=ErrorCode.FAILED,
    )


def _words_of(problem: Any) -> str:
    return f"refused the call: {problem.message} (code {problem.code})"


def _with_remarks(result: ToolResult, call: RunningCall) -> ToolResult:
    return with_remarks(result, call.remarks)


def with_remarks(result: ToolResult, remarks: list[str]) -> ToolResult:
    """The result with what the model should know beside it: what was refused to the server, and why."""
    if remarks:
        result.parts = (*result.parts, *(Text(f"[{remark}.]") for remark in dict.fromkeys(remarks)))
    return result
