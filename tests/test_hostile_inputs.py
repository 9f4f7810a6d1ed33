"""What hostile schemas, models and servers could make of arguments, and how it is prevented."""

from __future__ import annotations

import datetime
import http.server
import json
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Agent, Context, Effect, Toolbox, tool
from toolcrib.agent import TranscriptFile, read_transcript
from toolcrib.call import ToolCall
from toolcrib.codecs import AnthropicMessagesCodec, OpenAIChatCodec
from toolcrib.events import StatusBoard, event_to_dict
from toolcrib.messages import Message, Request
from toolcrib.models import ModelError, Scripted
from toolcrib.models.anthropic import AnthropicMessages
from toolcrib.models.openai import OpenAIChat
from toolcrib.sink import EventLog
from toolcrib.visible import escape_invisible


@pytest.fixture
def fetched() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine: its address, and what was asked of it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])).decode())
            key = self.headers.get("authorization") or self.headers.get("x-api-key")
            body = json.dumps({"error": {"message": f"wrong key: {key}"}}).encode()
            self.send_response(401)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()


def one(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def handled(schema: dict[str, Any], arguments: Any) -> Any:
    ran: list[Any] = []

    def handle(params: Any) -> str:
        ran.append(params)
        return "done"

    box = Toolbox([tool(handle, name="foreign", params=schema, effect=Effect.READ, secrets=())])
    return box.call_sync("foreign", arguments), ran


@pytest.mark.filterwarnings("ignore:tool 'foreign' was set aside")
def test_a_foreign_schema_fetches_nothing_from_the_network(fetched: tuple[str, list[str]]) -> None:
    address, asked = fetched
    for schema in (
        one({"$ref": f"{address}/schema"}),
        {"$schema": f"{address}/meta", **one({})},
        {"$id": f"{address}/id", **one({"$ref": "other"})},
        one({"$dynamicRef": f"{address}/dynamic"}),
    ):
        handled(schema, {"a": {}})
    assert asked == []


@pytest.mark.filterwarnings("ignore:tool 'foreign' was set aside")
def test_a_foreign_schema_reads_no_file_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "private.json").write_text('{"required": ["the_secret"]}')
    result, ran = handled(one({"$ref": f"file://{tmp_path}/private.json"}), {"a": {}})
    assert result.is_error
    assert "the_secret" not in result.text
    assert ran == []


def test_a_schema_of_an_unknown_kind_is_taken_as_the_newest() -> None:
    schema = {"$schema": "https://example.invalid/meta", **one({"type": "integer"})}
    assert not handled(schema, {"a": 1})[0].is_error
    assert handled(schema, {"a": "x"})[0].is_error


# --- types that read numbers into texts --------------------------------------------------------------


@pytest.mark.parametrize("kind", [datetime.datetime, datetime.date, datetime.datetime | None])
@pytest.mark.parametrize("text", ["2024", "20240101", "0", "+5", "-1", "1.5", " 7 ", "1700000000"])
def test_a_date_is_not_read_as_seconds_since_1970(kind: Any, text: str) -> None:
    ran: list[Any] = []

    def plan(when: Any) -> str:
        ran.append(when)
        return "done"

    plan.__annotations__["when"] = kind
    box = Toolbox([tool(plan, effect=Effect.WRITE, secrets=())], autonomy="full")
    result = box.call_sync("plan", {"when": text})
    assert result.code == "invalid_arguments"
    assert "when" in result.text
    assert ran == []
    good = "2024-01-01" if kind is datetime.date else "2024-01-01T10:00:00Z"
    assert not box.call_sync("plan", json.dumps({"when": good})).is_error


@pytest.mark.parametrize(("named", "runs"), [("keep", True), ("remove", False)])
def test_arguments_that_are_wrapped_in_a_call_of_another_tool_are_not_taken(named: str, runs: bool) -> None:
    ran: list[str] = []

    def keep(path: str) -> str:
        """Keep a file."""
        ran.append(path)
        return "kept"

    box = Toolbox([tool(keep, effect=Effect.WRITE, secrets=())], autonomy="full")
    result = box.call_sync("keep", {"name": named, "arguments": {"path": "a"}})
    assert result.is_error is not runs
    assert bool(ran) is runs


# --- answers that were cut off -----------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["length", "filter", "refusal"])
async def test_the_last_call_of_an_answer_that_was_broken_off_is_not_run(stop: Any) -> None:
    """A provider's filter may strike after the name and before the first argument: that is not "none"."""
    ran: list[str] = []

    def remove(path: str = ".") -> str:
        """Remove everything below a path."""
        ran.append(path)
        return "removed"

    turns: list[Any] = [
        {
            "calls": [ToolCall("remove", '{"path": "a"}', "1"), ToolCall("remove", "", "2")],
            "stop_reason": stop,
        },
        "Done.",
    ]
    agent = Agent(Scripted(turns), [tool(remove, effect=Effect.WRITE, secrets=())], autonomy="full")
    outcome = await agent.run("tidy up")
    assert ran == ["a"]
    assert [result.is_error for message in outcome.messages for result in message.results] == [False, True]


# --- what a server sends, and what it is sent --------------------------------------------------------

NO_OBJECT = [[1, 2], [], 5, 0, 1.5, True, False]


@pytest.mark.parametrize("arguments", NO_OBJECT, ids=repr)
def test_arguments_of_a_wrong_kind_do_not_become_no_arguments(arguments: Any) -> None:
    function = {"name": "remove", "arguments": arguments}
    chat: dict[str, Any] = {"tool_calls": [{"index": 0, "id": "c", "function": function}]}
    block = {"type": "tool_use", "id": "c", "name": "remove", "input": arguments}
    streamed_chat, streamed_block = OpenAIChatCodec().decoder(), AnthropicMessagesCodec().decoder()
    streamed_chat.feed({"choices": [{"delta": chat, "finish_reason": "tool_calls"}]})
    for event in (
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "message_stop"},
    ):
        streamed_block.feed(event)
    for response in (
        OpenAIChatCodec().response({"choices": [{"message": chat, "finish_reason": "tool_calls"}]}),
        AnthropicMessagesCodec().response({"content": [block], "stop_reason": "tool_use"}),
        streamed_chat.finish(),
        streamed_block.finish(),
    ):
        [call] = response.message.calls
        result, ran = handled({"type": "object", "properties": {"a": {}}}, call.arguments)
        assert result.code == "invalid_arguments"
        assert ran == []


def test_a_character_that_a_stream_cuts_in_two_is_whole_again() -> None:
    decoder = OpenAIChatCodec().decoder()
    for half in ("\ud83d", "\ude00"):
        call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": half}}
        decoder.feed({"choices": [{"delta": {"content": half, "tool_calls": [call]}}]})
    decoder.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    message = decoder.finish().message
    assert message.text == "\U0001f600"
    assert message.calls[0].arguments == "\U0001f600"


KEY = "sk-this-is-a-secret"


def model_at(address: str, kind: str, key: str) -> Any:
    if kind == "openai":
        return OpenAIChat("m", base_url=f"{address}/v1", api_key=key, max_retries=0)
    return AnthropicMessages("m", base_url=address, api_key=key, max_retries=0)


@pytest.mark.parametrize("key", [KEY, f"{KEY}\n"], ids=["echoed by the server", "with a line break"])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_key_is_in_no_error(
    fetched: tuple[str, list[str]], kind: str, key: str, streamed: bool
) -> None:
    model = model_at(fetched[0], kind, key)
    request = Request([Message.user("Hi")])
    with pytest.raises(ModelError) as caught:
        if streamed:
            async for _ in model.stream(request):
                pass
        else:
            await model.respond(request)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(model)
    assert KEY not in shown
    assert "key" in str(caught.value)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_half_a_character_in_a_conversation_does_not_end_it(
    fetched: tuple[str, list[str]], kind: str
) -> None:
    with pytest.raises(ModelError, match="401"):
        await model_at(fetched[0], kind, KEY).respond(Request([Message.user("a\ud800b")]))
    assert "a\ufffdb" in json.loads(json.dumps(fetched[1][-1]))


async def test_half_a_character_does_not_end_a_transcript(tmp_path: Path) -> None:
    transcript = TranscriptFile(tmp_path / "t.jsonl")
    turns: list[Any] = [
        {"text": "a\ud800", "calls": [{"name": "x\udfff", "arguments": '{"a": "\ud800"}'}]},
        "b\udc80",
    ]
    outcome = await Agent(Scripted(turns), []).run("go", transcript=transcript)
    transcript.close()
    assert outcome.text == "b\udc80"
    read = read_transcript(tmp_path / "t.jsonl")
    assert [message.text for message in read] == [message.text for message in outcome.messages]


# --- what a person is shown --------------------------------------------------------------------------

REPORTS: list[dict[str, Any]] = [
    {"progress": "half"},
    {"progress": float("nan")},
    {"progress": float("inf")},
    {"tip": 5},
    {"tip": ValueError("x")},
    {"params": [1]},
    {"params": {1: 2}},
]


@pytest.mark.parametrize("report", REPORTS, ids=repr)
async def test_whatever_a_tool_reports_a_listener_can_take_it(report: dict[str, Any]) -> None:
    def work(ctx: Context[Any]) -> str:
        """Work."""
        ctx.report(**report)
        return "done"

    box = Toolbox([tool(work, effect=Effect.READ, secrets=(), inline=True)])
    log = box.subscribe(EventLog())
    assert (await box.call("work", {})).text == "done"
    board = StatusBoard(log.events)
    [status] = board.statuses.values()
    assert isinstance(status.tip, str)
    assert status.progress is None
    json.dumps([event_to_dict(event) for event in log.events], allow_nan=False)


@pytest.mark.parametrize("blank", ["\u034f", "\u115f", "\u2800", "\u3164", "\ufe00", "\uffa0", "\U000e0100"])
def test_a_blank_that_is_no_space_is_spelled_out(blank: str) -> None:
    assert escape_invisible(f"rm{blank}x") == f"rm{ascii(blank)[1:-1]}x"
