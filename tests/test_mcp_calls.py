"""What happens within one call of a remote tool, over servers in this process, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest

pytest.importorskip("mcp")

import mcp_types as types
from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context as ServerContext
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from pydantic import BaseModel, ConfigDict, Field

from tests.cases import each
from tests.mcp_calls import ERAS, calling, toolset_of
from toolcrib import Answer, Effect, Question, Toolbox, ToolCall, ToolResult, Verdict
from toolcrib.agent import Agent, Budget, Reason
from toolcrib.call import CallKey
from toolcrib.errors import ErrorCode
from toolcrib.events import CallFinished, Notice, StatusChanged
from toolcrib.mcp.client.sampling import Sampling
from toolcrib.mcp.server import McpFace
from toolcrib.messages import Request, Usage
from toolcrib.models import Scripted, Turn
from toolcrib.sink import EventLog

TEXT = types.TextContent


class Order(BaseModel):
    """What the person fills in."""

    count: int = Field(ge=1, le=9)
    size: Literal["S", "M"] = "M"


def wanted(message: str = "How many?") -> Callable[[], Elicit[Order]]:
    def ask() -> Elicit[Order]:
        return Elicit(message, Order)

    return ask


def shop() -> MCPServer[Any]:
    server = MCPServer("shop")

    @server.tool()
    def order(item: str, wanted: Annotated[Order, Resolve(wanted())]) -> str:
        """Order something."""
        return f"{wanted.count} {item} {wanted.size}"

    @server.tool()
    async def slow(ctx: ServerContext) -> str:
        """Work and report."""
        for step in range(1, 4):
            await ctx.report_progress(step, 4, f"step {step}")
            await asyncio.sleep(0.06)
        return "done"

    @server.tool()
    async def talk(ctx: ServerContext) -> str:
        """Log."""
        await ctx.log("info", "looking\x1b[2J")
        await ctx.log("error", "the disk is full")
        return "talked"

    @server.tool()
    def where(roots: Annotated[types.ListRootsResult, Resolve(lambda: ListRoots())]) -> str:
        """Say where."""
        return " ".join(str(root.uri).rpartition("/")[2] for root in roots.roots)

    return server


def replying(*answers: Any, asked: list[Question] | None = None) -> Any:
    """An approver that gives these answers in turn; the last one again and again."""
    left = list(answers)

    async def reply(question: Question) -> Any:
        if asked is not None:
            asked.append(question)
        return left.pop(0) if len(left) > 1 else left[0]

    return reply


def filled(**values: Any) -> Answer:
    return Answer(Verdict.YES, values=values)


# what the person answers, and what the result says
ANSWERS: list[tuple[str, Any, str]] = [
    ("a filled form", filled(count=3, size="S"), "3 tea S"),
    ("a default", filled(count=3), "3 tea M"),
    ("words that mean the values", filled(count="3", size="s"), "3 tea S"),
    ("a no", Answer(Verdict.NO), "decline"),
    ("nobody", None, "cancel"),
    ("a mere yes", True, "cancel"),
    ("values that never fit", filled(count=99), "cancel"),
    ("unknown values", filled(count=1, color="red"), "cancel"),
    ("no values", Answer(Verdict.YES, "three, please"), "cancel"),
]


@pytest.mark.promise("mcp-calls.md", 'A no is told as "decline", and nobody\'s answer as "cancel".')
@each("era, name, answer, words", [(era, *case) for era in ERAS for case in ANSWERS])
async def test_a_server_asks_the_person(era: str, name: str, answer: Any, words: str) -> None:
    asked: list[Question] = []
    async with calling(shop(), era, approver=replying(answer, asked=asked)) as box:
        result = await box.call("srv__order", {"item": "tea"})
    assert words in result.text.lower() if result.is_error else result.text == words
    first = asked[0]
    assert (first.kind, first.source, first.action) == ("input", "srv", "How many?")
    assert first.reason == "the MCP server 'srv' asks, not toolcrib and not the model"
    assert len(asked) == (3 if name in ("values that never fit", "unknown values") else 1)
    if len(asked) > 1:
        assert "what was given does not fit" in asked[1].reason


@each("era", ERAS)
async def test_without_anybody_to_ask_the_server_is_told_so(era: str) -> None:
    async with calling(shop(), era) as box:
        assert "cancel" in (await box.call("srv__order", {"item": "tea"})).text.lower()
    async with calling(shop(), era, approver=replying(filled(count=1)), elicitation=False) as box:
        result = await box.call("srv__order", {"item": "tea"})
    assert result.is_error and "1 tea" not in result.text


@each("era", ERAS)
async def test_progress_and_logs_are_shown_to_the_person(era: str) -> None:
    log = EventLog()
    async with calling(shop(), era, log=log) as box:
        assert (await box.call("srv__slow", {})).text == "done"
    told = [
        (event.progress, event.tip) for event in log.events if isinstance(event, StatusChanged) and event.tip
    ]
    assert told == [(0.25, "step 1"), (0.5, "step 2"), (0.75, "step 3")]


@pytest.mark.filterwarnings("ignore:The logging capability")
@each("era", ERAS)
async def test_what_a_server_logs_is_shown_and_its_errors_stay(era: str) -> None:
    log = EventLog()
    async with calling(shop(), era, log=log) as box:
        assert (await box.call("srv__talk", {})).text == "talked"
    assert "looking\\x1b[2J" in [event.tip for event in log.events if isinstance(event, StatusChanged)]
    notices = [event.message for event in log.events if isinstance(event, Notice)]
    assert "MCP server 'srv': the disk is full" in notices


def raw(answer: Callable[[Any, dict[str, Any]], Any], **handlers: Callable[[Any, Any], Any]) -> Server[Any]:
    """A server with one tool, "do", that answers as it likes. `tasks_get` handles "tasks/get"."""
    server: Server[Any] = Server("raw")

    async def list_tools(ctx: Any, params: Any) -> dict[str, Any]:
        tool = {"name": "do", "inputSchema": {"type": "object"}}
        return {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def call(ctx: Any, params: Any) -> Any:
        given = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        result = answer(ctx, given)
        return await result if asyncio.iscoroutine(result) else result

    class AnyParams(types.RequestParams):
        model_config = ConfigDict(extra="allow")

    server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call)
    for name, handler in handlers.items():
        server.add_request_handler(name.replace("_", "/"), AnyParams, handler)
    return server


def said(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "resultType": "complete", **more}


async def test_progress_extends_the_time_of_a_call() -> None:
    async def steady(ctx: Any, params: Any) -> Any:
        for step in range(8):
            await asyncio.sleep(0.05)
            await ctx.session.report_progress(step + 1)
        return said("done")

    for timeout, max_timeout, code in ((0.2, 5.0, None), (0.2, 0.3, ErrorCode.OUTCOME_UNKNOWN)):
        async with calling(raw(steady), timeout=timeout, max_timeout=max_timeout) as box:
            assert (await box.call("srv__do", {})).code is code


@pytest.mark.promise("mcp-calls.md", "A call that is cancelled, or out of time, is cancelled on the server")
@each(
    "effect, code, words",
    [
        (Effect.READ, ErrorCode.TIMED_OUT, "The call can be made again."),
        (Effect.WRITE, ErrorCode.OUTCOME_UNKNOWN, "check the state before you call it again"),
    ],
)
async def test_a_call_without_an_answer_is_cancelled_on_the_server(
    effect: Effect, code: Any, words: str
) -> None:
    stopped = asyncio.Event()

    async def hang(ctx: Any, params: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with calling(raw(hang), timeout=0.1, effects={"do": effect}) as box:
        result = await box.call("srv__do", {})
        assert result.code is code and words in result.text
        assert "gave no result within 0.1" in result.text and "and was told to stop" in result.text
        await asyncio.wait_for(stopped.wait(), 2)


@pytest.mark.promise("mcp-calls.md", "A call that is cancelled, or out of time, is cancelled on the server")
@each("era", ERAS)
async def test_a_cancelled_call_is_cancelled_on_the_server(era: str) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def hang(ctx: Any, params: Any) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with calling(raw(hang), era) as box:
        call = asyncio.ensure_future(box.call("srv__do", {}))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(stopped.wait(), 2)


async def test_the_time_that_a_person_takes_does_not_count() -> None:
    async def think(question: Question) -> Answer:
        await asyncio.sleep(0.2)
        return filled(count=1)

    for era in ERAS:
        async with calling(shop(), era, approver=think, timeout=0.15, max_timeout=0.15) as box:
            assert (await box.call("srv__order", {"item": "tea"})).text == "1 tea M"


def form(message: str = "?", **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def asks(**requests: Any) -> Server[Any]:
    """A server that asks for these things, and then says what it was given."""

    def answer(ctx: Any, params: dict[str, Any]) -> Any:
        if "inputResponses" not in params:
            return {"resultType": "input_required", "inputRequests": requests, "requestState": "s1"}
        given = {key: one.get("action", "-") for key, one in params["inputResponses"].items()}
        return said(f"{params['requestState']} {given}", structuredContent=params["inputResponses"])

    return raw(answer)


async def answered(answer: Any, **requests: Any) -> tuple[ToolResult, list[Question], list[str]]:
    asked: list[Question] = []
    log = EventLog()
    async with calling(asks(**requests), approver=replying(answer, asked=asked), log=log) as box:
        result = await box.call("srv__do", {})
    return result, asked, [event.message for event in log.events if isinstance(event, Notice)]


async def test_all_that_a_server_wants_is_asked_and_its_state_is_given_back() -> None:
    many = {"a": form("first?", n={"type": "integer"}), "b": form("second?")}
    result, asked, _ = await answered(Answer(Verdict.YES, values={"n": 1}, chosen=("Yes",)), **many)
    assert [(question.action, question.options) for question in asked] == [
        ("first?", ()),
        ("second?", ("Yes", "No")),
    ]
    assert result.structured == {
        "a": {"action": "accept", "content": {"n": 1}},
        "b": {"action": "accept", "content": {}},
    }


CREDENTIALS = [
    form("?", api_key={"type": "string"}),
    form("?", value={"type": "string", "title": "Password"}),
    form("?", githubToken={"type": "string"}),
    form("?", pin={"type": "integer"}),
    form("?", value={"type": "number", "title": "Card CVV"}),
    form("?", Passwort={"type": "string"}),
    form("?", value={"type": "string", "title": "Mot de passe"}),
    form("?", value={"type": "string", "title": "Contrase\u00f1a"}),
    form("?", value={"type": "string", "title": "\u5bc6\u7801"}),
    form("?", value={"type": "string", "title": "\uff30\uff41\uff53\uff53\uff57\uff4f\uff52\uff44"}),
    *(
        form("?", value={"type": "string", "title": title})
        for title in (
            "Your p\u0430ssw\u043erd",  # Cyrillic
            "\u0420\u0410\u0405\u0405W\u041eRD",
            "Ap\u03b9 \u03ba\u03b5\u03b3",  # Greek
            "\u1d18\u1d00\ua731\ua731\u1d21\u1d0f\u0280\u1d05",  # small capitals
            "Pa\u0332sswo\u0332rd",
            "Client sec\u200bret",
            "Passw0rd",
            "P@$$word",
            "P A S S W O R D",
            "t.o.k.e.n",
        )
    ),
    form("?", **{"sec\u00adret": {"type": "string", "title": "Code"}}),
]


@pytest.mark.promise("mcp-calls.md", "A form that asks for a credential is refused")
@each("request_", CREDENTIALS)
async def test_a_form_that_asks_for_a_credential_is_refused(request_: Any) -> None:
    result, asked, notices = await answered(filled(api_key="x"), a=request_)
    assert asked == [] and "{'a': 'decline'}" in result.text
    assert "[the server 'srv' asked the user to type a credential into a form" in result.text
    assert [notice for notice in notices if notice.startswith("Refused: the server 'srv' asked")]


async def test_a_form_that_speaks_of_a_credential_warns_the_person() -> None:
    _, asked, _ = await answered(None, a=form("Please give your API key here.", value={"type": "string"}))
    assert asked[0].reason.endswith("; it speaks of 'api key': do not type a credential here")
    for words, kind in (
        ("Ihr Kennwort, bitte.", "string"),
        ("\u041f\u0430\u0440\u043e\u043b\u044c?", "string"),
        ("Your PIN?", "integer"),
        ("Type your p\u0430ssw\u043erd.", "string"),
        ("The verification code from your phone?", "string"),
        ("Your GitHub t\u00f6ken?", "string"),
    ):
        _, asked, _ = await answered(None, a=form(words, value={"type": kind}))
        assert "do not type a credential here" in asked[0].reason
    _, asked, _ = await answered(None, a=form("Wie viel Tee?", value={"type": "integer"}))
    assert "credential" not in asked[0].reason


@pytest.mark.promise("mcp-calls.md", "The words of a server stay within a margin")
async def test_the_words_of_a_server_cannot_paint_on_the_screen() -> None:
    field = {
        "type": "string",
        "title": "a\x1b[2J",
        "description": "b\u202e",
        "enum": ["x"],
        "enumNames": ["c\nd"],
    }
    _, asked, _ = await answered(None, a=form("hello\x1b[2J\u202eworld", **{"n\x1b": field}))
    [question] = asked
    assert question.action == "hello\\x1b[2J\\u202eworld"
    [shown] = question.form
    assert (shown.title, shown.description, shown.options) == ("a\\x1b[2J", "b\\u202e", (("x", "c⏎d"),))
    assert shown.name == "n\x1b"  # by which the server knows it


def url(address: Any) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Log in.", "url": address}}


ADDRESSES: list[tuple[str, str]] = [
    ("https://login.example/start?x=1", ""),
    ("http://127.0.0.1:8080/x", ""),
    ("http://login.example/", "not https"),
    ("javascript:alert(1)", "not https"),
    ("file:///etc/passwd", "not https"),
    ("https://bank.example@evil.example/", "hides its host"),
    ("https://bank.example\\@evil.example/", "hides its host"),
    ("https://bаnk.example/", "may not have"),  # a Cyrillic letter
    ("https://a.example/ b", "may not have"),
    ("https:///x", "not https"),
    ("https://bank.example%2eevil.example/", "hides its host"),
    ("https://bank.example;evil.example/", "hides its host"),
    ("https://[::1", "cannot be read"),
    ("https://bank.example:8443/a%20b?c=%2e", ""),
    ("https://[2001:db8::1]/", ""),
]


@pytest.mark.promise("mcp-calls.md", "An address must be `https`")
@each("address, why", ADDRESSES)
async def test_an_address_is_shown_and_never_opened(address: str, why: str) -> None:
    visited = Answer(Verdict.YES, chosen=("I have opened it",))
    try:
        result, asked, _ = await answered(visited, a=url(address))
    except MCPError as problem:  # the SDK's server refuses to send it
        pytest.fail(str(problem))
    if why:
        assert asked == [] and why in result.text and "'a': 'decline'" in result.text
    else:
        assert asked[0].url == address and "toolcrib does not open it" in asked[0].reason
        assert "'a': 'accept'" in result.text


@pytest.mark.promise("mcp-calls.md", "A mere yes answers no question of a server")
async def test_yes_to_everything_opens_nothing() -> None:
    for answer, action in (
        (True, "cancel"),
        (Answer(Verdict.NO), "decline"),
        (Answer("yes", "later"), "decline"),
    ):
        result, *_ = await answered(answer, a=url("https://login.example/"))
        assert f"'a': '{action}'" in result.text


# what a server wants, and what the model is told of it
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("a nested form", {"a": form("?", x={"type": "object"})}, "expected a text, number, boolean or choice"),
    ("too many", {str(n): form() for n in range(30)}, "asked 30 things at once"),
    ("a model, not allowed", {"a": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}}, "may not ask"),
]  # fmt: skip


@each("name, requests, words", WRONG)
async def test_what_cannot_be_asked_ends_the_call(name: str, requests: dict[str, Any], words: str) -> None:
    result, asked, _ = await answered(None, **requests)
    assert result.is_error and asked == [] and words in result.text


async def test_the_state_of_a_server_is_bounded() -> None:
    large = {"resultType": "input_required", "requestState": "x" * 1_000_001}
    async with calling(raw(lambda ctx, params: large)) as box:
        assert "1,000,001 characters of its own state" in (await box.call("srv__do", {})).text


async def test_rounds_are_bounded() -> None:
    calls = 0

    def again(ctx: Any, params: Any) -> Any:
        nonlocal calls
        calls += 1
        return {"resultType": "input_required", "inputRequests": {"a": form()}, "requestState": str(calls)}

    async with calling(raw(again), approver=replying(Answer(Verdict.YES, chosen=("Yes",)))) as box:
        result = await box.call("srv__do", {})
    assert "wanted input more than 10 times" in result.text and calls == 11


async def test_an_address_that_an_older_server_needs_first_is_asked_about_and_the_call_is_made_again() -> (
    None
):
    calls = 0

    def first_the_address(ctx: Any, params: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            data = {"elicitations": [{**url("https://login.example/")["params"], "elicitationId": "1"}]}
            raise MCPError(-32042, "log in first", data)
        return said("in")

    visited = Answer(Verdict.YES, chosen=("I have opened it",))
    async with calling(raw(first_the_address), "2025", approver=replying(visited)) as box:
        assert (await box.call("srv__do", {})).text == "in"
    calls = 0
    async with calling(raw(first_the_address), "2025", approver=replying(False)) as box:
        assert "needs an address to be opened first" in (await box.call("srv__do", {})).text and calls == 1


async def test_an_error_of_the_server_is_told_in_its_words() -> None:
    def fail(ctx: Any, params: Any) -> Any:
        raise MCPError(-32602, "no such row\x1b[2J")

    async with calling(raw(fail)) as box:
        result = await box.call("srv__do", {})
    assert result.code is ErrorCode.TOOL_ERROR
    assert result.text == "The server 'srv' refused the call: no such row\\x1b[2J (code -32602)."


async def test_what_is_for_the_user_is_shown_to_the_user() -> None:
    def show(ctx: Any, params: Any) -> Any:
        block = {"type": "text", "text": "for your eyes", "annotations": {"audience": ["user"]}}
        return {"content": [block, {"type": "text", "text": "ok"}], "resultType": "complete"}

    log = EventLog()
    async with calling(raw(show), log=log) as box:
        result = await box.call("srv__do", {})
    assert result.text.startswith("ok\n") and "for your eyes" not in result.text
    assert "for your eyes" in [event.result for event in log.events if isinstance(event, StatusChanged)]


# -- sampling and roots


def poem() -> Sample:
    message = types.SamplingMessage(role="user", content=TEXT(text="Write a line."))
    return Sample([message], max_tokens=5_000, system_prompt="You rhyme.")


def writer() -> MCPServer[Any]:
    server = MCPServer("writer")

    @server.tool()
    def write(line: Annotated[types.CreateMessageResult, Resolve(poem)]) -> str:
        """Write."""
        return f"{line.model}: {line.content.text}"

    return server


@each("era", ERAS)
async def test_a_server_may_ask_the_model_that_it_is_given(era: str) -> None:
    sent: list[Request] = []

    def respond(request: Request) -> str:
        sent.append(request)
        return "a rhyme"

    asked: list[Question] = []
    model = Sampling(Scripted(respond), max_tokens=50)
    async with calling(writer(), era, sampling=model, approver=replying(True, asked=asked), box={"autonomy": "supervised"}, effects={"write": Effect.READ}) as box:  # fmt: skip
        result = await box.call("srv__write", {})
    assert result.text == "scripted: a rhyme"
    [request] = sent
    assert [message.role for message in request.messages] == ["system", "user"] and request.max_tokens == 50
    assert asked[-1].action == "let the MCP server 'srv' ask the model scripted"
    assert "Write a line." in asked[-1].preview and "You rhyme." in asked[-1].preview


async def test_without_a_model_or_leave_a_server_gets_no_answer_of_a_model() -> None:
    for era in ERAS:
        async with calling(writer(), era) as box:
            assert (await box.call("srv__write", {})).is_error
        model = Scripted(["never"])
        async with calling(writer(), era, sampling=model, approver=replying(False), box={"autonomy": "supervised"}, effects={"write": Effect.READ}) as box:  # fmt: skip
            result = await box.call("srv__write", {})
        assert result.is_error


@pytest.mark.promise("mcp-calls.md", "A server chooses neither the model nor how much of it")
async def test_how_often_a_server_may_ask_a_model_is_bounded() -> None:
    ask = {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9}}  # fmt: skip
    model = Sampling(Scripted(lambda request: "hm"), max_calls=2, ask=False)
    for count in (2, 3):
        async with calling(asks(**{str(n): ask for n in range(count)}), sampling=model) as box:
            assert (await box.call("srv__do", {})).is_error is (count > 2)


@pytest.mark.promise("mcp-calls.md", "What it costs counts in the run, whose budget")
async def test_what_a_server_asks_of_a_model_counts_in_the_run_and_ends_with_its_budget() -> None:
    ask = {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9}}  # fmt: skip
    costly = Turn("hm", usage=Usage(input_tokens=400, output_tokens=100))
    sent: list[Request] = []

    def respond(request: Request) -> Turn:
        sent.append(request)
        return costly

    model = Sampling(Scripted(respond), ask=False)
    async with calling(asks(a=ask, b=ask, c=ask), sampling=model) as box:
        model_of_run = Scripted([Turn("", [ToolCall("srv__do", {})]), "done"])
        outcome = await Agent(model_of_run, toolbox=box, budget=Budget(tokens=900)).run("go")
    assert (len(sent), outcome.reason) == (2, Reason.BUDGET)
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (800, 200)


async def test_folders_are_told_only_where_they_are_given(tmp_path: Any) -> None:
    (tmp_path / "work").mkdir()
    for era in ERAS:
        async with calling(shop(), era, roots=[tmp_path / "work"]) as box:
            assert (await box.call("srv__where", {})).text == "work"
        async with calling(shop(), era) as box:
            assert (await box.call("srv__where", {})).is_error


# -- which call asks


@pytest.mark.promise("mcp-calls.md", "Where calls of different runs are open there, nobody is asked.")
async def test_questions_of_calls_of_different_runs_are_not_mixed_up() -> None:
    """On the connection of an older server nobody can tell whose call asks, so nobody is asked."""
    asked: list[Question] = []
    server = shop()
    both = asyncio.Barrier(2)

    @server.tool()
    async def together(ctx: ServerContext) -> str:
        await both.wait()
        return (await ctx.elicit("Yours?", Order)).action

    async with calling(server, "2025", approver=replying(filled(count=1), asked=asked)) as box:
        results = await asyncio.gather(
            *(box.call("srv__together", {}, key=CallKey(run, 1, 0)) for run in ("a", "b"))
        )
    assert [result.text for result in results] == ["cancel", "cancel"] and asked == []


@pytest.mark.promise("mcp-calls.md", "More than 40 questions in one call")
async def test_a_server_that_asks_and_asks_is_not_listened_to_for_ever() -> None:
    asked: list[Question] = []
    server = MCPServer("curious")

    @server.tool()
    async def nag(ctx: ServerContext) -> str:
        for n in range(60):
            try:
                await ctx.elicit(f"And {n}?", Order)
            except MCPError as refused:
                return f"{n}: {refused.message}"
        return "never"

    async with calling(server, "2025", approver=replying(None, asked=asked)) as box:
        result = await box.call("srv__nag", {})
    assert (
        result.text == "40: the server 'srv' asked the user more than 40 things in one call"
        and len(asked) == 40
    )


@each("ends", ["the server takes it back", "the server answers", "the call is cancelled"])
async def test_a_question_is_withdrawn_when_its_call_ends(ends: str) -> None:
    """The call ends while the person thinks: nobody waits for the answer then, also where the server still does."""
    server, thinking, withdrawn = MCPServer("hasty"), asyncio.Event(), asyncio.Event()
    asked: list[str] = []

    @server.tool()
    async def hurry(ctx: ServerContext) -> str:
        asking = asyncio.ensure_future(ctx.elicit("Quick?", Order))
        await thinking.wait()
        if ends == "the server takes it back":
            asking.cancel()
        if ends == "the call is cancelled":
            await asyncio.shield(asking)
        return "never mind"

    async def think(question: Question) -> Any:
        asked.append(question.action)
        thinking.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()

    async with calling(server, "2025", approver=think) as box:
        call = asyncio.ensure_future(box.call("srv__hurry", {}))
        await thinking.wait()
        if ends == "the call is cancelled":
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        else:
            assert (await call).text == "never mind"
        await asyncio.wait_for(withdrawn.wait(), 2)
    assert asked == ["Quick?"]


# -- through a gateway


@each("upstream, downstream", [(up, down) for up in ERAS for down in ERAS])
async def test_a_question_goes_through_a_gateway_to_the_person_at_its_end(
    upstream: str, downstream: str
) -> None:
    asked: list[Question] = []
    visited = Answer(Verdict.YES, values={"count": 2}, chosen=("I have opened it",))
    for server, tool, arguments, words in (
        (shop(), "order", {"item": "tea"}, "2 tea M"),
        (asks(a=url("https://login.example/")), "do", {}, "s1 {'a': 'accept'}"),
    ):
        if tool == "do" and upstream == "2025":
            continue  # a result that wants input is of the newer revision
        async with Toolbox([toolset_of(server, upstream)], autonomy="full") as gateway:
            person = replying(visited, asked=asked)
            async with calling(McpFace(gateway).server, downstream, approver=person) as box:
                assert (await box.call(f"srv__srv__{tool}", arguments)).text == words
    assert "the MCP server 'srv' asks" in asked[0].action and "How many?" in asked[0].action
    assert [question.url for question in asked[1:]] == ["https://login.example/"] * (upstream == "2026")


# -- apps


async def test_the_user_interface_of_a_tool_goes_with_its_result_to_who_can_show_it() -> None:
    from mcp.server.apps import Apps

    apps = Apps()

    @apps.tool(resource_uri="ui://clock/app.html")
    def now() -> str:
        """The time."""
        return "12:00"

    apps.add_html_resource("ui://clock/app.html", "<h1>12:00</h1>")
    log = EventLog()
    async with calling(MCPServer("clock", extensions=[apps]), log=log, apps=True) as box:
        result = await box.call("srv__now", {})
    assert "ui://" not in result.text
    [finished] = [event for event in log.events if isinstance(event, CallFinished)]
    assert finished.result.extras["mcp"]["ui"] == {"server": "srv", "resource_uri": "ui://clock/app.html"}


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(10**400, 30.0), (-(10**400), 0.05), (2000, 2.0), ("x", 1.0)],
    ids=["huge", "negative", "usual", "text"],
)
def test_the_pause_between_polls_is_bounded_whatever_a_server_wants(given: Any, seconds: float) -> None:
    from toolcrib.mcp.client.tasks import _interval

    assert _interval({"pollIntervalMs": given}) == seconds
