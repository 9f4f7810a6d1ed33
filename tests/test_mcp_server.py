"""A toolbox as an MCP server, seen through the SDK's own client in memory, in both revisions of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp import Client, MCPError
from pydantic import BaseModel

from toolcrib import Answer, Context, Effect, Toolbox, Verdict, tool
from toolcrib.content import Image
from toolcrib.mcp.server import McpFace, asgi_app, peer_of_call, serve_stdio
from toolcrib.question import Question
from toolcrib.rules import ApprovalStore

ERAS = ("legacy", "2026-07-28")
both_eras = pytest.mark.parametrize("era", ERAS)
Elicit = Callable[[Any, Any], Awaitable[types.ElicitResult]]


@tool(effect=Effect.READ, secrets=(), title="Add numbers", open_world=False, idempotent=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effect=Effect.READ, secrets=())
def point() -> dict[str, int]:
    """Give a point."""
    return {"x": 1}


@tool(effect=Effect.DESTRUCTIVE, secrets=())
async def wipe(path: str, *, ctx: Context) -> str:
    """Wipe a folder."""
    await ctx.ask("empty the bin, too", ["bin"])
    said = await ctx.ask_user("Which disk?", ["first", "second"])
    return f"wiped {path} on {', '.join(said.chosen)}"


@tool(effect=Effect.WRITE, secrets=())
def save(text: str) -> str:
    """Save a text."""
    return f"saved {text}"


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def person(*decisions: dict[str, Any] | str, asked: list[str] | None = None) -> Elicit:
    """A client's person: what they do with each form, in turn. A word is the action; the last one is repeated."""
    left: Iterator[dict[str, Any] | str] = iter(decisions)
    last: list[dict[str, Any] | str] = []

    async def elicit(ctx: Any, params: Any) -> types.ElicitResult:
        if asked is not None:
            asked.append(params.message)
        decision = next(left, None) or last[-1]
        last.append(decision)
        if isinstance(decision, str):
            return types.ElicitResult(action=decision)  # type: ignore[arg-type]
        return types.ElicitResult(action="accept", content=decision)

    return elicit


@pytest.mark.parametrize("given", [[], Toolbox, None])
def test_what_is_no_toolbox_is_not_served(given: Any) -> None:
    with pytest.raises(TypeError, match=r"a face serves a toolbox, as in McpFace\(Toolbox\("):
        McpFace(given)


async def test_a_toolbox_without_a_face_is_not_served() -> None:
    box: Any = Toolbox()
    for serve in (serve_stdio, asgi_app):
        with pytest.raises(TypeError, match=r"expected a face, as in McpFace\(Toolbox\("):
            await serve(box)


@both_eras
async def test_tools_are_listed_by_name_with_what_their_authors_declared(era: str) -> None:
    face = McpFace(Toolbox([save, wipe, add, point]), page_size=3)
    async with Client(face.server, mode=era) as client:
        first = await client.list_tools()
        rest = await client.list_tools(cursor=first.next_cursor)
        again = await client.list_tools()
        with pytest.raises(MCPError, match="list again from the start"):
            await client.list_tools(cursor="nonsense!")
    tools = {one.name: one for one in (*first.tools, *rest.tools)}
    assert list(tools) == ["add", "point", "save", "wipe"]
    assert rest.next_cursor is None
    assert first.model_dump() == again.model_dump()
    listed = tools["add"]
    assert (listed.title, listed.description) == ("Add numbers", "Add two numbers.")
    assert listed.input_schema["required"] == ["a", "b"]
    notes = listed.annotations
    assert notes is not None
    assert (notes.read_only_hint, notes.destructive_hint, notes.idempotent_hint, notes.open_world_hint) == (
        True, False, True, False,
    )  # fmt: skip
    assert tools["wipe"].annotations is not None
    assert tools["wipe"].annotations.destructive_hint is True
    # before 2026-07-28, structured content had to be an object
    whole = {"type": "integer"}
    wrapped = {"type": "object", "properties": {"result": whole}, "required": ["result"]}
    assert listed.output_schema == (whole if era != "legacy" else wrapped)
    assert tools["save"].output_schema is None


@both_eras
async def test_a_call_takes_the_path_of_the_toolbox(era: str) -> None:
    box = Toolbox([add, point, save], autonomy="read_only")
    async with Client(McpFace(box).server, mode=era) as client:
        repaired = await client.call_tool("add", {"a": 1, "b": "2"})
        assert (text_of(repaired), repaired.is_error) == ("3", False)
        assert repaired.structured_content == ({"result": 3} if era == "legacy" else 3)
        assert (await client.call_tool("point", {})).structured_content == {"x": 1}
        wrong = await client.call_tool("add", {"a": "x", "b": 1})
        assert wrong.is_error and "a: expected integer" in text_of(wrong)
        unknown = await client.call_tool("ad", {})
        assert unknown.is_error and 'Did you mean "add"?' in text_of(unknown)
        denied = await client.call_tool("save", {"text": "x"})
        assert denied.is_error and "save" in text_of(denied)
        assert [one.name for one in (await client.list_tools()).tools] == ["add", "point"]
    assert box.stats()["add"].calls == 2


class Page(BaseModel):
    title: str
    links: list[Page] = []


class Gone(BaseModel):
    since: int


@both_eras
async def test_structured_content_is_what_was_listed_whatever_a_tool_gives(era: str) -> None:
    """The SDK's client refuses any other result of a tool with an output schema."""

    @tool(effect=Effect.READ, secrets=())
    def find(which: str) -> Page | Gone:
        """Find a page."""
        return Gone(since=1) if which == "gone" else Page(title=which, links=[Page(title="b")])

    @tool(effect=Effect.READ, secrets=())
    def first(title: str = "") -> Page | None:
        """Give the first page."""
        return Page(title=title) if title else None

    @tool(effect=Effect.READ, secrets=())
    def broken() -> int:
        """Give a number."""
        return "no number"  # type: ignore[return-value]

    recursive = {"anyOf": [{"$ref": "#/definitions/n"}, {"type": "array", "items": {"$ref": "#"}}]}

    @tool(
        effect=Effect.READ,
        secrets=(),
        output_schema={**recursive, "definitions": {"n": {"type": "integer"}}},
    )
    def tree() -> Any:
        """Give a tree."""
        return [1, [2]]

    @tool(effect=Effect.READ, secrets=())
    def colour(of: str = "") -> Literal["red", "blue"] | None:
        """Give a colour."""
        return "red" if of else None

    @tool(effect=Effect.READ, secrets=(), output_schema=Page.model_json_schema())
    def linked() -> Any:
        """Give a page by a schema that is a reference."""
        return {"title": "a"}

    legacy = era == "legacy"
    tools = [find, first, broken, tree, colour, linked]
    async with Client(McpFace(Toolbox(tools)).server, mode=era) as client:

        async def given(name: str, **arguments: str) -> Any:
            return (await client.call_tool(name, arguments)).structured_content

        gone = {"since": 1}
        assert await given("find", which="gone") == ({"result": gone} if legacy else gone)
        page = {"title": "a", "links": [{"title": "b", "links": []}]}
        assert await given("find", which="a") == ({"result": page} if legacy else page)
        assert await given("first") == {"result": None}
        assert await given("first", title="a") == {"result": {"title": "a", "links": []}}
        assert await given("tree") == ({"result": [1, [2]]} if legacy else [1, [2]])
        assert await given("colour") == {"result": None}
        assert await given("colour", of="a") == {"result": "red"}
        assert await given("linked") == {"title": "a"}
        misfit = await client.call_tool("broken", {})
        assert misfit.is_error and text_of(misfit).startswith("no number")


NULL_OR_LISTS = {"type": ["array", "null"], "items": {"$ref": "#/$defs/n"}}


@both_eras
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"description": "Anything."},
        {"const": None},
        {"properties": {"a": {"type": "integer"}}},
        {"not": {"type": "string"}},
        {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "integer"}], "$defs": {"n": NULL_OR_LISTS}},
    ],
)
async def test_null_is_given_wherever_a_schema_takes_it(era: str, schema: dict[str, Any]) -> None:
    @tool(effect=Effect.READ, secrets=(), output_schema=schema)
    def nothing() -> Any:
        """Give nothing."""

    async with Client(McpFace(Toolbox([nothing])).server, mode=era) as client:
        assert (await client.call_tool("nothing", {})).structured_content == {"result": None}


@both_eras
async def test_content_is_kept(era: str) -> None:
    @tool(effect=Effect.READ, secrets=())
    def picture() -> Image:
        """Take a picture."""
        return Image.of(b"GIF89a")

    async with Client(McpFace(Toolbox([picture])).server, mode=era) as client:
        [block] = (await client.call_tool("picture", {})).content
    assert (block.type, getattr(block, "mime_type", "")) == ("image", "image/gif")


@both_eras
async def test_questions_reach_the_person_at_the_client(era: str) -> None:
    asked: list[str] = []
    elicit = person({"decision": "yes"}, {"decision": "yes"}, {"choice": "second"}, asked=asked)
    async with Client(McpFace(Toolbox([wipe])).server, mode=era, elicitation_callback=elicit) as client:
        assert text_of(await client.call_tool("wipe", {"path": "/tmp"})) == "wiped /tmp on second"
    assert [words.splitlines()[0].split("  ")[0] for words in asked] == [
        "run wipe", "empty the bin, too", "Which disk?",
    ]  # fmt: skip
    assert "path: /tmp" in asked[0]


REFUSALS: list[tuple[Any, str]] = [
    ({"decision": "no", "message": "use the bin"}, "They say: use the bin"),
    ("decline", "The user rejected this call"),
    ("cancel", "nobody could be asked"),
    ({"decision": "sure"}, "The user rejected this call"),
    ({}, "The user rejected this call"),
]


@both_eras
@pytest.mark.parametrize(("decision", "words"), REFUSALS)
async def test_what_is_not_a_yes_runs_nothing(era: str, decision: Any, words: str) -> None:
    box = Toolbox([save])
    elicit = person(decision if decision else {"other": "x"})
    async with Client(McpFace(box).server, mode=era, elicitation_callback=elicit) as client:
        result = await client.call_tool("save", {"text": "x"})
    assert result.is_error and words in text_of(result)


@both_eras
async def test_a_client_that_cannot_ask_is_told_so_and_the_own_approver_answers_for_it(era: str) -> None:
    box = Toolbox([save])
    async with Client(McpFace(box).server, mode=era) as client:
        result = await client.call_tool("save", {"text": "x"})
        assert result.is_error and "it has no elicitation" in text_of(result)
    assert box.approver is None

    def approver(question: Question) -> bool:
        return question.arguments == {"text": "x"}

    box.approver = approver
    async with Client(McpFace(box).server, mode=era) as client:
        assert text_of(await client.call_tool("save", {"text": "x"})) == "saved x"
        assert (await client.call_tool("save", {"text": "y"})).is_error
    assert box.approver is approver


@both_eras
async def test_always_lasts_as_long_as_the_client_and_not_longer(era: str) -> None:
    asked: list[str] = []
    lasting = {"decision": "always", "lasting": "user"}
    box = Toolbox([save])
    seen: list[Any] = []
    box.subscribe(seen.append)
    async with Client(
        McpFace(box).server, mode=era, elicitation_callback=person(lasting, asked=asked)
    ) as one:
        for _ in range(2):
            assert text_of(await one.call_tool("save", {"text": "x"})) == "saved x"
    assert len(asked) == 1
    async with Client(McpFace(box).server, mode=era, elicitation_callback=person("decline")) as other:
        assert (await other.call_tool("save", {"text": "x"})).is_error


@pytest.mark.parametrize(("lasts", "offered"), [(False, None), (True, ["run", "user"])])
async def test_a_client_is_offered_what_can_be_kept(
    tmp_path: Path, lasts: bool, offered: list[str] | None
) -> None:
    forms: list[Any] = []

    async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        forms.append(params)
        return types.ElicitResult(action="accept", content={"decision": "always", "lasting": "user"})

    store = ApprovalStore(tmp_path / "approvals.json")
    face = McpFace(Toolbox([save], approvals=store), lasting_approvals=lasts)
    async with Client(face.server, elicitation_callback=answer) as client:
        assert text_of(await client.call_tool("save", {"text": "x"})) == "saved x"
    assert forms[0].requested_schema["properties"].get("lasting", {}).get("enum") == offered
    assert len(store.all()) == lasts


async def test_an_approver_of_the_host_is_asked_about_calls_of_the_host_while_the_box_is_served() -> None:
    asked: list[Question] = []

    async def approver(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.YES)

    box = Toolbox([save], approver=approver)
    async with Client(McpFace(box).server, elicitation_callback=person("decline")) as client:
        assert (await box.call("save", {"text": "own"})).text == "saved own"
        assert (await client.call_tool("save", {"text": "theirs"})).is_error
    assert [question.arguments for question in asked] == [{"text": "own"}]


async def rounds_of(client: Client, **named: Any) -> types.InputRequiredResult:
    result = await client.session.call_tool("save", {"text": "x"}, allow_input_required=True, **named)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def test_the_state_of_a_waiting_call_cannot_be_forged_moved_or_used_twice() -> None:
    ran: list[str] = []

    @tool(effect=Effect.WRITE, secrets=())
    def save(text: str) -> str:
        """Save a text."""
        ran.append(text)
        return "saved"

    yes = {"approval": types.ElicitResult(action="accept", content={"decision": "yes"})}
    face = McpFace(Toolbox([save]))
    async with Client(face.server, mode="2026-07-28", elicitation_callback=person("decline")) as client:
        call = client.session.call_tool
        state = (await rounds_of(client)).request_state
        assert state is not None
        # the one thing that it may be used for: these arguments, unchanged
        for arguments, forged in (
            ({"text": "x"}, state[:-2] + ("AA" if not state.endswith("AA") else "BB")),
            ({"text": "x"}, "v1.nonsense"),
            ({"text": "x"}, next(iter(face._calls))),  # the name of the waiting call, without its seal
            ({"text": "other"}, state),
        ):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await call("save", arguments, input_responses=yes, request_state=forged)
        assert ran == []
        # what was answered to nothing, or not at all, is asked again
        other = {"other": types.ElicitResult(action="accept", content={"decision": "yes"})}
        again = await rounds_of(client, input_responses=other, request_state=state)
        assert again.input_requests is not None and list(again.input_requests) == ["approval"]
        done = await call("save", {"text": "x"}, input_responses=yes, request_state=state)
        assert isinstance(done, types.CallToolResult) and not done.is_error
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await call("save", {"text": "x"}, input_responses=yes, request_state=state)
    assert ran == ["x"]


async def test_an_answer_that_comes_twice_does_not_answer_the_next_question() -> None:
    ran: list[str] = []

    @tool(effect=Effect.WRITE, secrets=())
    async def save(text: str, *, ctx: Context) -> str:
        """Ask twice."""
        await ctx.ask("empty the bin, too", ["bin"])
        ran.append(text)
        return "saved"

    yes = {"approval": types.ElicitResult(action="accept", content={"decision": "yes"})}
    async with Client(
        McpFace(Toolbox([save])).server, mode="2026-07-28", elicitation_callback=person("decline")
    ) as client:
        first = await rounds_of(client)
        second = await rounds_of(client, input_responses=yes, request_state=first.request_state)
        assert second.input_requests is not None and "approval" not in second.input_requests
        for state in (first.request_state, second.request_state):
            with suppress(MCPError):  # the state was used before
                await rounds_of(client, input_responses=yes, request_state=state)
        assert ran == []


async def test_calls_that_wait_for_an_answer_are_bounded_and_end_with_the_server() -> None:
    face = McpFace(Toolbox([save]), max_asking=2)
    async with Client(face.server, mode="2026-07-28", elicitation_callback=person("decline")) as client:
        for _ in range(2):
            await rounds_of(client)
        with pytest.raises(MCPError, match="too many calls wait for answers"):
            await rounds_of(client)
        waiting = [call.task for call in face._calls.values()]
    assert all(task is not None and task.done() for task in waiting)


@both_eras
async def test_calls_that_wait_for_an_answer_keep_nobody_from_calling(era: str) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def together(*, ctx: Context) -> str:
        """Make two calls that ask at one time."""
        results = await ctx.call_all([("save", {"text": "a"}), ("save", {"text": "b"})])
        return " ".join(result.text for result in results)

    async def elicit(ctx: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await answered.wait()
        return types.ElicitResult(action="accept", content={"decision": "yes"})

    face = McpFace(Toolbox([save, add, together]), max_calls=1)
    async with Client(face.server, mode=era, elicitation_callback=elicit) as client:
        waiting = [
            asyncio.create_task(client.call_tool("save", {"text": "x"})),
            asyncio.create_task(client.call_tool("together", {})),
        ]
        await asyncio.wait_for(asked.wait(), 5)
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
        answered.set()
        assert [text_of(await one) for one in waiting] == ["saved x", "saved a saved b"]
        assert face._slots is not None
        assert not face._slots.full and face._slots._free._value == 1


async def test_a_call_whose_questions_are_answered_while_it_waits_takes_one_slot() -> None:
    """The first question of `pair` is answered while `hold` runs, and the second while `pair` waits for its slot."""
    asked: dict[str, asyncio.Event] = {name: asyncio.Event() for name in ("first", "second")}
    begun, go, second = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def pair(*, ctx: Context) -> str:
        """Ask twice."""

        async def later() -> None:
            await second.wait()
            await ctx.ask("second", ["s"])

        await asyncio.gather(ctx.ask("first", ["f"]), later())
        return "paired"

    @tool(effect=Effect.READ, secrets=())
    async def hold() -> str:
        """Hold the only slot."""
        begun.set()
        await go.wait()
        return "held"

    async def elicit(ctx: Any, params: Any) -> types.ElicitResult:
        which = "second" if "second" in params.message else "first"
        asked[which].set()
        if which == "first":
            await begun.wait()
        return types.ElicitResult(action="accept", content={"decision": "yes"})

    face = McpFace(Toolbox([pair, hold]), max_calls=1)
    async with Client(face.server, mode="legacy", elicitation_callback=elicit) as client:
        calls = [asyncio.create_task(client.call_tool("pair", {}))]
        await asyncio.wait_for(asked["first"].wait(), 5)
        calls.append(asyncio.create_task(client.call_tool("hold", {})))
        await asyncio.wait_for(begun.wait(), 5)
        for _ in range(50):
            await asyncio.sleep(0)
        second.set()
        await asyncio.wait_for(asked["second"].wait(), 5)
        for _ in range(50):
            await asyncio.sleep(0)
        go.set()
        async with asyncio.timeout(5):
            assert [text_of(await call) for call in calls] == ["paired", "held"]
        assert face._slots is not None
        assert face._slots._free._value == 1 and face._slots._inside == 0


@both_eras
async def test_an_answer_that_does_not_come_in_time_is_nobodys(era: str) -> None:
    async def never(ctx: Any, params: Any) -> types.ElicitResult:
        await asyncio.sleep(0.2)
        return types.ElicitResult(action="accept", content={"decision": "yes"})

    face = McpFace(Toolbox([save]), answer_time=0.02)
    async with Client(face.server, mode=era, elicitation_callback=never) as client:
        assert "nobody could be asked" in text_of(await client.call_tool("save", {"text": "x"}))


@both_eras
async def test_progress_and_notes_reach_the_client(era: str) -> None:
    @tool(effect=Effect.READ, secrets=())
    def count(*, ctx: Context) -> str:
        """Count, on a worker thread."""
        ctx.report(tip="beginning")
        ctx.report(progress=0.5)
        ctx.report(progress=0.5, tip="half")
        ctx.report(progress=1.0)
        ctx.note("one more thing")
        return "done"

    told: list[tuple[float, float | None, str | None]] = []
    logs: list[Any] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        logs.append((params.level, params.logger, params.data))

    async with Client(McpFace(Toolbox([count])).server, mode=era, logging_callback=log) as client:
        meta: Any = {"io.modelcontextprotocol/logLevel": "info"} if era != "legacy" else None
        await client.call_tool("count", {}, progress_callback=progress, meta=meta)
    assert [message for _, _, message in told] == ["beginning", None, "half", None]
    assert [round(number, 3) for number, _, _ in told] == [0, 0.5, 0.5, 1]
    assert all(one < two for (one, *_), (two, *_) in pairwise(told))
    assert logs == [("notice", "count", "one more thing")]


@both_eras
async def test_a_cancelled_request_cancels_the_call(era: str) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def hang() -> str:
        """Hang."""
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return ""

    box = Toolbox([hang])
    async with Client(McpFace(box).server, mode=era) as client:
        asking = asyncio.create_task(client.call_tool("hang", {}))
        await asyncio.wait_for(begun.wait(), 5)
        asking.cancel()
        await asyncio.wait_for(stopped.wait(), 5)
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert box.stats()["hang"].calls == 1


@both_eras
async def test_a_change_of_the_tools_is_told(era: str) -> None:
    told = asyncio.Event()
    box = Toolbox([add])
    face = McpFace(box)

    async def message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with Client(face.server, mode=era, message_handler=message) as client:
        if era == "legacy":
            box.add(point)
            await asyncio.wait_for(told.wait(), 5)
        else:
            async with client.listen(tools_list_changed=True) as changes:
                box.add(point)
                assert type(await asyncio.wait_for(anext(aiter(changes)), 5)).__name__ == "ToolsListChanged"
        assert [one.name for one in (await client.list_tools()).tools] == ["add", "point"]


async def test_calls_beyond_the_limits_wait_or_are_refused() -> None:
    running, most = 0, 0
    go, two = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def work() -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            two.set()
        await go.wait()
        running -= 1
        return "done"

    async with Client(McpFace(Toolbox([work]), max_calls=2, max_waiting=1).server) as client:
        calls = [asyncio.create_task(client.call_tool("work", {})) for _ in range(3)]
        await asyncio.wait_for(two.wait(), 5)
        for _ in range(20):
            await asyncio.sleep(0)
        with pytest.raises(MCPError, match="too many calls"):
            await client.call_tool("work", {})
        go.set()
        assert [text_of(await call) for call in calls] == ["done"] * 3
    assert most == 2


async def test_calls_that_come_at_one_moment_are_counted_before_they_run() -> None:
    @tool(effect=Effect.READ, secrets=())
    async def work() -> str:
        """Work."""
        await asyncio.sleep(0.01)
        return "done"

    async with Client(McpFace(Toolbox([work]), max_calls=2, max_waiting=3).server) as client:
        for _ in range(2):
            calls = [client.call_tool("work", {}) for _ in range(20)]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert sum(isinstance(result, MCPError) for result in results) == 15
        stopped = [asyncio.create_task(client.call_tool("work", {})) for _ in range(5)]
        await asyncio.sleep(0)
        for call in stopped:  # also those that never began give back their place
            call.cancel()
        await asyncio.gather(*stopped, return_exceptions=True)
        await asyncio.sleep(0.1)
        calls = [client.call_tool("work", {}) for _ in range(5)]
        assert [text_of(result) for result in await asyncio.gather(*calls)] == ["done"] * 5


async def test_only_so_many_calls_wait_for_an_answer_on_a_connection() -> None:
    asked = 0

    @tool(effect=Effect.WRITE, secrets=())
    async def save() -> str:
        """Save."""
        return "saved"

    async def never(ctx: Any, params: Any) -> types.ElicitResult:
        nonlocal asked
        asked += 1
        await asyncio.sleep(3600)
        raise AssertionError

    face = McpFace(Toolbox([save]), max_asking=2)
    async with Client(face.server, mode="legacy", elicitation_callback=never) as client:
        calls = [asyncio.create_task(client.call_tool("save", {})) for _ in range(6)]
        done, waiting = await asyncio.wait(calls, timeout=0.5)
        assert (asked, len(done), len(waiting)) == (2, 4, 2)
        assert all("Nobody" in text_of(call.result()) or call.result().is_error for call in done)
        for call in waiting:
            call.cancel()


@both_eras
async def test_a_tool_may_ask_the_client_for_a_form_its_model_and_its_folders(era: str) -> None:
    @tool(effect=Effect.READ, secrets=())
    async def ask_all() -> dict[str, Any]:
        """Ask the client."""
        peer = peer_of_call()
        assert peer is not None
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        words = {"role": "user", "content": {"type": "text", "text": "Hi"}}
        form = await peer.elicit("Who are you?", schema)
        reply = await peer.sample({"messages": [words], "maxTokens": 9})
        return {"form": form, "model": reply["content"]["text"], "roots": await peer.roots()}

    async def sample(ctx: Any, params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="Hello"), model="m"
        )

    async def roots(ctx: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///work")])  # type: ignore[arg-type]

    named: dict[str, Any] = {"sampling_callback": sample, "list_roots_callback": roots}
    face = McpFace(Toolbox([ask_all]))
    async with Client(face.server, mode=era, elicitation_callback=person({"name": "Ada"}), **named) as client:
        told = (await client.call_tool("ask_all", {})).structured_content
    assert told["form"]["content"] == {"name": "Ada"}
    assert told["model"] == "Hello" and told["roots"][0]["uri"].startswith("file:///work")
    async with Client(face.server, mode=era, elicitation_callback=person({"name": 3}), **named) as client:
        assert "does not fit the form" in text_of(await client.call_tool("ask_all", {}))
    async with Client(face.server, mode=era) as client:
        if era == "legacy":
            assert "cannot answer this" in text_of(await client.call_tool("ask_all", {}))
        else:
            with pytest.raises(MCPError, match="capability elicitation"):
                await client.call_tool("ask_all", {})
    assert peer_of_call() is None


@both_eras
async def test_many_tools_are_shown_as_two_that_find_and_call_them(era: str) -> None:
    def made(name: str, about: str, **facts: Any) -> Any:
        def work(value: str = "") -> str:
            return f"{name} {value}"

        work.__doc__ = about
        return tool(work, **{"name": name, "effect": Effect.READ, "secrets": (), **facts})

    tools = [
        made("list_issues", "List the issues of a repository."),
        made("create_issue", "Open a new issue in a repository.", effect=Effect.WRITE),
        made("getWeather", "The weather forecast of a city."),
        made("send_email", "Send an email to somebody.", effect=Effect.WRITE, deferred=True),
    ]
    box = Toolbox(tools, autonomy="supervised")
    async with Client(
        McpFace(box, show="search").server, mode=era, elicitation_callback=person("decline")
    ) as client:
        call = client.call_tool
        assert [one.name for one in (await client.list_tools()).tools] == ["call_tool", "search_tools"]

        async def found(query: Any, **more: Any) -> list[str]:
            given = json.loads(text_of(await call("search_tools", {"query": query, **more})))
            assert all(one["inputSchema"]["type"] == "object" for one in given)
            return [one["name"] for one in given]

        assert (await found("opening issues"))[0] == "create_issue"
        assert (await found("please list_issues"))[0] == "list_issues"
        assert await found("weather forecasts", limit=1) == ["getWeather"]
        assert (await found("email"))[0] == "send_email"
        assert "No tool fits" in text_of(await call("search_tools", {"query": "submarine"}))
        assert (await call("search_tools", {"query": ""})).is_error
        inner = {"name": "getWeather", "arguments": {"value": "Oslo"}}
        assert text_of(await call("call_tool", inner)) == "getWeather Oslo"
        assert text_of(await call("call_tool", {"name": "list_issues"})) == "list_issues "
        asked = await call("call_tool", {"name": "create_issue", "arguments": {}})
        assert asked.is_error and "The user rejected this call" in text_of(asked)
        wrong = await call("call_tool", {"name": "getWeather", "arguments": {"value": 3, "town": "x"}})
        assert wrong.is_error and "town" in text_of(wrong)
        for arguments in ({}, {"name": 3}, {"name": "getWeather", "arguments": [1]}):
            assert (await call("call_tool", arguments)).is_error
    assert box.stats()["getWeather"].calls >= 1
