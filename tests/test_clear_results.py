"""Old results of a long conversation are sent as one line each, which read_result opens again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.cases import each
from tests.legal_bodies import CHECKERS
from tests.properties import examples
from tests.test_codec_journeys import ROUTES, SPECS, answered_by, body_for, full_conversation, journeys
from toolcrib import Effect, tool
from toolcrib.agent import Agent, ClearOldResults, Reason, TranscriptFile, read_transcript
from toolcrib.agent.clear_results import ClearedRequests
from toolcrib.agent.read_result import PAGE, handle_of
from toolcrib.call import ToolCall
from toolcrib.codecs.catalog import codec_named
from toolcrib.content import Image, Text
from toolcrib.errors import ErrorCode
from toolcrib.events import Notice, RunFinished
from toolcrib.messages import (
    Message,
    Request,
    Response,
    ResultPart,
    Usage,
    messages_from_json,
    messages_to_json,
)
from toolcrib.models import Scripted
from toolcrib.models.model import ModelError
from toolcrib.result import ToolResult
from toolcrib.toolbox import Toolbox

PICTURE = Image(data="AAAA", media_type="image/png")
REMOVED = "was removed to save room"


@tool(effect=Effect.READ, secrets=())
def page(number: int) -> str:
    """Read a page."""
    return f"page {number} " + "word " * 800


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


class Recording(Scripted):
    """A scripted model that keeps its requests as a provider would see them, and errors in place of answers."""

    def __init__(self, turns: Iterable[Any], errors: dict[int, ModelError] | None = None) -> None:
        super().__init__(list(turns))
        self.seen: list[Request] = []
        self.errors = errors or {}

    async def stream(self, request: Request) -> Any:
        self.seen.append(Request(list(request.messages), request.tools, request.tool_choice))
        if len(self.seen) in self.errors:
            raise self.errors[len(self.seen)]
        async for item in super().stream(request):
            yield item

    def removed(self) -> list[int]:
        """How many results each request left out."""
        return [
            sum(REMOVED in result.text for message in request.messages for result in message.results)
            for request in self.seen
        ]


def pages(count: int) -> list[dict[str, Any]]:
    return [call("page", number=number) for number in range(count)]


class Clock:
    """Seconds that a test sets."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def requests_of(
    conversation: list[Message], settings: ClearOldResults, clock: Clock, *, pause: float = 1.0
) -> list[list[Message]]:
    """The messages that each turn of a conversation would send; the answers are those of the conversation."""
    import asyncio

    cleared = ClearedRequests(settings, 300.0, clock=clock)
    sent: list[list[Message]] = []
    so_far: list[Message] = []

    async def replay() -> None:
        for message in conversation:
            if message.role == "assistant":

                async def answer(request: Request, message: Message = message) -> Response:
                    sent.append(request.messages)
                    return Response(message, usage=Usage())

                clock.now += pause
                response = await cleared.ask(Request(list(so_far)), answer, lambda words: None)
                so_far.append(response.message)
            else:
                so_far.append(message)

    asyncio.run(replay())
    return sent


def conversation_of(results: list[ToolResult]) -> list[Message]:
    messages = [Message.user("go")]
    for number, result in enumerate(results):
        asked = ToolCall("page", {"number": number}, f"call_{number}")
        messages += [Message("assistant", [asked]), Message("tool", [ResultPart(asked, result)])]
    return [*messages, Message("assistant", [Text("done")])]


def long_result(number: int = 0) -> ToolResult:
    return ToolResult.of(f"page {number} " + "word " * 800)


# -- when


def test_nothing_is_removed_unless_it_is_asked_for() -> None:
    model = Recording([*pages(60), {"text": "done"}])
    outcome = Agent(model, [page], max_turns=99).run_sync("go")
    assert outcome.reason is Reason.ANSWERED
    assert set(model.removed()) == {0}
    assert "read_result" not in {spec.name for spec in model.seen[0].tools}
    assert not any(message.extras for message in outcome.messages)


def test_results_are_removed_in_batches_and_the_last_ten_stay_whole() -> None:
    model = Recording([*pages(60), {"text": "done"}])
    outcome = Agent(model, [page], max_turns=99, context=ClearOldResults(tokens=12_000)).run_sync("go")
    removed = model.removed()
    assert removed == sorted(removed), "what was removed came back"
    assert 3 <= len(set(removed)) <= 12, "removed turn by turn"
    for request in model.seen:
        whole = [result.text for message in request.messages for result in message.results][-10:]
        assert not any(REMOVED in text for text in whole)
    assert not any(REMOVED in result.text for message in outcome.messages for result in message.results)


def test_a_cold_cache_removes_old_results_at_once_and_a_warm_one_does_not() -> None:
    conversation, clock = conversation_of([long_result(n) for n in range(20)]), Clock()
    warm = requests_of(conversation, ClearOldResults(tokens=50_000), clock)
    assert not any(REMOVED in r.text for messages in warm for m in messages for r in m.results)
    cold = requests_of(conversation, ClearOldResults(), clock, pause=301.0)
    assert sum(REMOVED in r.text for m in cold[-1] for r in m.results) == 10


def test_a_saved_conversation_goes_on_with_the_same_bytes() -> None:
    first = Recording([*pages(30), {"text": "done"}])
    settings = ClearOldResults(tokens=12_000)
    outcome = Agent(first, [page], context=settings).run_sync("go")
    assert first.removed()[-1] > 0
    saved = messages_from_json(json.loads(json.dumps(messages_to_json(outcome.messages))))
    second = Recording([{"text": "yes"}])
    Agent(second, [page], context=settings).run_sync("more?", messages=saved)
    for route in ROUTES:
        before = body_for(route, first.seen[-1].messages, [])
        after = body_for(route, second.seen[0].messages, [])
        assert _prefix(before, after), route


def _prefix(before: dict[str, Any], after: dict[str, Any]) -> bool:
    key = next(key for key in ("messages", "input", "contents") if key in before)
    return bool(json.dumps(after[key]).startswith(json.dumps(before[key]).rstrip('"}]')))


def test_a_transcript_file_brings_the_removed_results_back(tmp_path: Path) -> None:
    file = TranscriptFile(tmp_path / "run.jsonl")
    settings = ClearOldResults(tokens=12_000)
    model = Recording([*pages(30), {"text": "done"}])
    Agent(model, [page], context=settings).run_sync("go", transcript=file)
    file.close()
    again = read_transcript(tmp_path / "run.jsonl")
    old = next(part for m in again for part in m.parts if isinstance(part, ResultPart))
    second = Recording([call("read_result", handle=handle_of(old)), {"text": "done"}])
    outcome = Agent(second, [page], context=settings).run_sync("what was on page 0?", messages=again)
    assert second.removed()[0] == model.removed()[-1]
    assert outcome.messages[-2].results[0].text == old.result.text == page(0)


@each(
    "note",
    [
        None,
        "x",
        [],
        {},
        {"whole_results": "x", "asked": None, "tokens": []},
        {"whole_results": 3, "asked": True},
    ],
    ids=str,
)
def test_a_note_that_somebody_else_wrote_is_no_note(note: Any) -> None:
    conversation = conversation_of([long_result(n) for n in range(15)])
    conversation[-1] = replace(conversation[-1], extras={"toolcrib": note})
    model = Recording([{"text": "done"}])
    outcome = Agent(model, [page], context=ClearOldResults()).run_sync("go", messages=conversation)
    assert (outcome.text, model.removed()) == ("done", [5])


@each("whole", [-5, 0, 10**9, 2.5])
def test_a_note_that_does_not_fit_the_conversation_does_no_harm(whole: float) -> None:
    conversation = conversation_of([long_result(n) for n in range(15)])
    note = {"whole_results": whole, "asked": 0, "tokens": -1}
    conversation[-1] = replace(conversation[-1], extras={"toolcrib": note})
    model = Recording([{"text": "done"}])
    outcome = Agent(model, [page], context=ClearOldResults()).run_sync("go", messages=conversation)
    assert outcome.text == "done"
    assert REMOVED not in model.seen[0].messages[-3].results[0].text


# -- what


def test_every_removed_result_opens_with_its_exact_text() -> None:
    shown = [
        ToolResult.of("a" * 500),
        ToolResult((Text("b" * 500), PICTURE)),
        ToolResult.of("é\n" * 3_000),
        ToolResult.of("c" * 60_000),
    ]
    for result in shown:
        part = ResultPart(ToolCall("page", {"number": 0}), result)
        earlier = [Message.user("go"), Message("assistant", [part.call]), Message("tool", [part])]
        model = Recording([call("read_result", handle=handle_of(part)), {"text": "done"}])
        outcome = Agent(model, [page], context=ClearOldResults()).run_sync("go", messages=earlier)
        opened = outcome.messages[-2].results[0]
        assert (opened.text, opened.is_error) == (result.text, False)
        assert [p.kind for p in opened.parts] == [p.kind for p in result.parts]


def test_a_result_longer_than_a_page_is_opened_in_pages() -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    part = ResultPart(ToolCall("page", {"number": 0}), ToolResult.of(text))
    earlier = [Message.user("go"), Message("assistant", [part.call]), Message("tool", [part])]
    handle = handle_of(part)
    offsets = range(0, len(text), PAGE)
    model = Recording([*(call("read_result", handle=handle, offset=at) for at in offsets), {"text": "done"}])
    outcome = Agent(model, [page], context=ClearOldResults()).run_sync("go", messages=earlier)
    opened = [m.results[0].parts[0].as_text() for m in outcome.messages[4:] if m.results]
    assert "".join(opened) == text


def test_a_handle_that_nothing_has_is_refused_in_words() -> None:
    model = Recording([call("read_result", handle="nothing"), {"text": "done"}])
    outcome = Agent(model, [page], context=ClearOldResults()).run_sync("go")
    result = outcome.messages[-2].results[0]
    assert result.is_error
    assert "'nothing'" in result.text
    assert "Copy the handle" in result.text


def test_a_conversation_is_open_to_its_own_run_alone() -> None:
    part = ResultPart(ToolCall("page", {"number": 0}), long_result())
    earlier = [Message.user("go"), Message("assistant", [part.call]), Message("tool", [part])]
    model = Recording([{"text": "done"}, call("read_result", handle=handle_of(part)), {"text": "done"}])
    agent = Agent(model, [page], context=ClearOldResults())
    agent.run_sync("go", messages=earlier)
    assert agent.run_sync("another").messages[-2].results[0].is_error


@each(
    "result",
    [
        ToolResult.of("x" * 400),
        ToolResult.of("no: " + "x" * 900, code=ErrorCode.DENIED),
        ToolResult.of("unknown: " + "x" * 900, code=ErrorCode.OUTCOME_UNKNOWN),
    ],
    ids=lambda result: f"{result.code}",
)
def test_short_results_and_what_a_person_decided_stay_whole(result: ToolResult) -> None:
    conversation = conversation_of([result, *map(long_result, range(20))])
    last = requests_of(conversation, ClearOldResults(), Clock(), pause=301.0)[-1]
    assert last[2].results[0].text == result.text
    assert REMOVED in last[4].results[0].text


def test_an_error_keeps_its_first_line_and_stays_an_error() -> None:
    failed = ToolResult.of("It failed: no disk.\n" + "detail " * 200, code=ErrorCode.FAILED)
    conversation = conversation_of([failed, *map(long_result, range(20))])
    line = requests_of(conversation, ClearOldResults(), Clock(), pause=301.0)[-1][2].results[0]
    assert line.is_error
    assert line.text.startswith("It failed: no disk.\n[This result")
    assert "detail" not in line.text


def test_excluded_tools_stay_whole() -> None:
    conversation = conversation_of([long_result(n) for n in range(20)])
    last = requests_of(conversation, ClearOldResults(exclude=("page",)), Clock(), pause=301.0)[-1]
    assert not any(REMOVED in result.text for message in last for result in message.results)


def test_a_turn_of_many_parallel_calls_is_never_divided_and_never_removed_unseen() -> None:
    calls = [ToolCall("page", {"number": n}, f"c{n}") for n in range(30)]
    results = [ResultPart(one, long_result(n)) for n, one in enumerate(calls)]
    conversation = [*conversation_of([long_result(n) for n in range(5)]), Message.user("all of them")]
    conversation += [
        Message("assistant", [*calls]),
        Message("tool", [*results]),
        Message("assistant", [Text("ok")]),
    ]
    last = requests_of(conversation, ClearOldResults(), Clock(), pause=301.0)[-1]
    assert not any(REMOVED in result.text for result in last[-1].results)
    assert all(REMOVED in result.text for message in last[:-2] for result in message.results)


@pytest.mark.parametrize("shares_toolbox", [False, True])
async def test_runs_within_calls_open_their_own_results(shares_toolbox: bool) -> None:
    part = ResultPart(ToolCall("page", {"number": 0}), long_result())
    opening = call("read_result", handle=handle_of(part))
    inner = Recording([call("page", number=1), opening, {"text": "found"}])
    box = Toolbox([page])
    helping = Agent(inner, toolbox=box) if shares_toolbox else Agent(inner, [page], context=ClearOldResults())
    box.add(helping.as_tool("helper", "Helps to read pages."))
    outer = Recording([call("page", number=0), call("helper", task="read"), opening, {"text": "done"}])
    outcome = await Agent(outer, toolbox=box, context=ClearOldResults()).run("go")
    texts = [result.text for message in outcome.messages for result in message.results]
    assert texts[0] == texts[2] == page(0)
    assert "no result with the handle" in inner.seen[-1].messages[-1].results[0].text


def test_two_agents_may_share_a_toolbox() -> None:
    box = Toolbox([page])
    for _ in range(2):
        model = Recording([call("page", number=0), {"text": "done"}])
        assert Agent(model, toolbox=box, context=ClearOldResults()).run_sync("go").text == "done"


# -- too long

TOO_LONG = ModelError("prompt is too long: 214850 tokens > 200000 maximum", status=400)


async def test_a_conversation_that_is_too_long_is_asked_once_more_with_less() -> None:
    model = Recording([*pages(12), {"text": "done"}], {13: TOO_LONG})
    events = [event async for event in Agent(model, [page], context=ClearOldResults()).stream("go")]
    assert isinstance(events[-1], RunFinished)
    assert (events[-1].reason, events[-1].text) == ("answered", "done")
    assert model.removed()[-2:] == [0, 11]
    assert any("too long for the model" in event.message for event in events if isinstance(event, Notice))


def test_a_conversation_that_is_still_too_long_ends_with_a_reason_of_its_own() -> None:
    model = Recording(pages(12), {13: TOO_LONG, 14: TOO_LONG})
    outcome = Agent(model, [page], context=ClearOldResults()).run_sync("go")
    assert outcome.reason is Reason.TOO_LONG
    assert "214850" in outcome.detail
    assert len(model.seen) == 14
    assert len(outcome.messages) == 25


def test_without_anything_to_remove_it_is_not_asked_again() -> None:
    model = Recording([], {1: TOO_LONG})
    assert Agent(model, [page], context=ClearOldResults()).run_sync("go").reason is Reason.TOO_LONG
    assert len(model.seen) == 1


@each(
    ("words", "status", "expected"),
    [
        ("prompt is too long: 208310 tokens > 200000 maximum", 400, True),
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000", 400, True),
        ("Your input exceeds the context window of this model. Please adjust your input", 400, True),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 400, True),
        ("ValidationException: Input is too long for requested model.", 400, True),
        ("the request exceeds the available context size, try increasing it", 400, True),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 400, True),
        ("Please reduce the length of the messages or completion.", 400, True),
        ("Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum", 400, True),
        ("Invalid request: Your request exceeded model token limit: 131072", 400, True),
        ("context_length_exceeded", None, True),
        ("Request exceeds the maximum size", 413, True),
        ("Request too large for model `llama` on tokens per minute (TPM): Limit 6000", 413, False),
        ("invalid params, context window exceeds limit", 400, True),
        ("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 30500", 429, False),
        ("max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens", 400, False),
        ("String too long. Expected a string with maximum length 64", 400, False),
        ("messages: at least one message is required", 400, False),
    ],
)  # fmt: skip
def test_the_words_of_providers_for_a_conversation_that_is_too_long(
    words: str, status: int | None, expected: bool
) -> None:
    assert ModelError(f"anthropic:x answered {status}: {words}", status=status).too_long is expected


# -- legal everywhere


@each("route", ROUTES)
def test_what_is_left_is_legal_and_thinking_goes_back_unchanged(route: str) -> None:
    first = full_conversation(route)
    first[3].parts[0].record(ToolResult((Text("result 1 " * 100), PICTURE)))  # type: ignore[union-attr]
    calls = [{"id": f"call_{n}", "name": "search", "args": {"n": n}} for n in range(4)]
    for number in range(8):
        answer = answered_by(route, calls, f"m{number}", think=True, speak=True)
        first += [answer, Message("tool", [ResultPart(one, long_result(number)) for one in answer.calls])]
    settings = ClearOldResults(keep=5)
    last = requests_of([*first, Message("assistant", [Text("x")])], settings, Clock(), pause=301.0)[-1]
    body = body_for(route, last, SPECS)
    CHECKERS[route](body)
    text, whole = json.dumps(body), json.dumps(body_for(route, first, SPECS))
    assert text.count(REMOVED) >= 20
    assert [text.count(f"secret m{n}") for n in range(8)] == [whole.count(f"secret m{n}") for n in range(8)]


@pytest.mark.parametrize("route", ROUTES)
@examples(25)
@given(conversation=journeys())
def test_any_conversation_stays_legal(route: str, conversation: list[Message]) -> None:
    for message in conversation:
        for part in message.parts:
            if isinstance(part, ResultPart):
                longer = (*part.result.parts, Text("word " * 2_000))
                part.record(ToolResult(longer, code=part.result.code))
    conversation = [*conversation, Message("assistant", [Text("end")])]
    settings = ClearOldResults(keep=1)
    sent = requests_of(conversation, settings, Clock(), pause=301.0)
    assert sent == requests_of(conversation, settings, Clock(), pause=301.0), "not the same for the same"
    for messages in sent:
        CHECKERS[route](body_for(route, messages, SPECS))


# -- how it is given


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ClearOldResults(keep=0)
    for seconds in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="cache_seconds"):
            ClearOldResults(cache_seconds=seconds)
    with pytest.raises(TypeError, match="tuple of tool names"):
        ClearOldResults(exclude="page")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ClearOldResults"):
        Agent(Scripted([]), [page], context=10)  # type: ignore[arg-type]


def test_a_tool_of_the_same_name_is_refused() -> None:
    @tool(effect=Effect.READ, secrets=(), name="read_result")
    def mine() -> str:
        """Mine."""
        return ""

    with pytest.raises(TypeError, match="read_result"):
        Agent(Scripted([]), [mine], context=ClearOldResults())


# -- summaries of the provider's own

SUMMARY = {"content": "What was done so far.", "encrypted_content": "gAAA", "signature": "EqQB"}


def test_a_compaction_of_anthropics_is_kept_saved_and_sent_back() -> None:
    codec = codec_named("anthropic_messages")
    decoder = codec.decoder()
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", **SUMMARY}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "compaction"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    for event in events:
        decoder.feed(event)
    response = decoder.finish()
    assert response.stop_reason == "pause", "the agent asks again"
    saved = messages_from_json(json.loads(json.dumps(messages_to_json([response.message]))))
    body = codec.request(Request([Message.user("go"), *saved, Message.user("on")]), model="m", stream=True)
    assert body["messages"][1]["content"] == [{"type": "compaction", **SUMMARY}]


def test_a_compaction_of_openais_is_kept_saved_and_sent_back() -> None:
    codec = codec_named("openai_responses")
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
    said = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Yes."}],
    }
    response = codec.response({"status": "completed", "output": [item, said], "usage": {}})
    saved = messages_from_json(json.loads(json.dumps(messages_to_json([response.message]))))
    body = codec.request(Request([Message.user("go"), *saved]), model="gpt-5.6", stream=True)
    assert item in body["input"]


async def test_what_stands_in_place_of_results_is_written_once() -> None:
    """A request goes on from what the last one wrote, also where results were removed."""
    model = Recording([*[call("page", number=number) for number in range(8)], {"text": "done"}])
    await Agent(model, [page], context=ClearOldResults(keep=1, tokens=1)).run("go")
    first, second = model.seen[-2:]
    assert sum(REMOVED in message.results[0].text for message in first.messages if message.results) > 3
    assert all(one is other for one, other in zip(first.messages, second.messages, strict=False))
