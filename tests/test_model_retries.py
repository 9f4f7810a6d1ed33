"""Requests that are sent again, deadlines, and models that stand in for others."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.local_server import listening
from toolcrib import Agent
from toolcrib.agent import Budget, Reason
from toolcrib.events import TextDelta
from toolcrib.messages import (
    FallbackChunk,
    Message,
    Request,
    Response,
    RestartChunk,
    RetryChunk,
    TextChunk,
    Usage,
)
from toolcrib.models import AnthropicMessages, ModelError, OpenAIChat, Scripted
from toolcrib.models.fallback import Fallback

REQUEST = Request([Message.user("Hi")])
HELLO = json.dumps(
    {"choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}]}
).encode()
STREAMED = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
HALF = b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'
BUSY = b'{"error": {"message": "slow down", "type": "rate_limit_exceeded"}}'
WRONG = b'{"error": {"message": "no such model", "type": "invalid_request_error"}}'


@dataclass
class Answer:
    data: bytes
    status: int = 200
    kind: str = "application/json"
    headers: str = ""
    drip: float = 0.0  # seconds between two bytes
    ends: bool = True  # else the server waits until the client hangs up


@dataclass
class Peer:
    """A server that gives its answers one after the other, and notes when it was asked, and what."""

    answers: list[Answer]
    port: int = 0
    asked: list[float] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Peer]:
    peer = Peer(list(answers))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = next(
            int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length")
        )
        peer.bodies.append(json.loads(await reader.readexactly(size)))
        peer.asked.append(time.monotonic())
        said = peer.answers.pop(0) if len(peer.answers) > 1 else peer.answers[0]
        writer.write(
            f"HTTP/1.1 {said.status} X\r\ncontent-type: {said.kind}\r\nconnection: close\r\n{said.headers}\r\n".encode()
        )
        try:
            for start in range(0, len(said.data), 1 if said.drip else max(len(said.data), 1)):
                writer.write(said.data[start : start + 1] if said.drip else said.data)
                await writer.drain()
                await asyncio.sleep(said.drip)
            if not said.ends:
                await reader.read()
        except ConnectionError:
            pass
        writer.close()

    async with listening(answer) as peer.port:
        yield peer


def model(peer: Peer, **named: Any) -> OpenAIChat:
    return OpenAIChat("m", base_url=f"{peer.address}/v1", **named)


def busy(wait: str = "retry-after: 0\r\n") -> Answer:
    return Answer(BUSY, 429, headers=wait)


async def items(made: Any) -> list[Any]:
    return [item async for item in made.stream(REQUEST)]


async def test_what_may_pass_is_asked_again() -> None:
    async with serving(busy(), busy(), Answer(HELLO)) as peer:
        assert (await model(peer).respond(REQUEST)).message.text == "Hello."
        assert len(peer.asked) == 3


async def test_streams_too() -> None:
    async with serving(busy(), Answer(STREAMED, kind="text/event-stream")) as peer:
        *chunks, response = await items(model(peer))
        problem = "127.0.0.1:PORT:m answered 429: slow down".replace("PORT", str(peer.port))
        assert chunks == [RetryChunk(problem, 0.0, 2, 3), TextChunk("Hello.")]
        assert response.message.text == "Hello."
        assert len(peer.asked) == 2


async def test_the_number_of_tries_is_the_callers() -> None:
    async with serving(busy()) as peer:
        with pytest.raises(ModelError, match="slow down"):
            await model(peer, max_retries=1).respond(REQUEST)
        assert len(peer.asked) == 2
        with pytest.raises(ModelError):
            await items(model(peer, max_retries=0))
        assert len(peer.asked) == 3


async def test_what_stays_wrong_is_not_asked_again() -> None:
    async with serving(Answer(WRONG, 404)) as peer:
        with pytest.raises(ModelError, match="no such model") as caught:
            await model(peer).respond(REQUEST)
        assert caught.value.retryable is False
        assert len(peer.asked) == 1


async def test_a_server_may_say_itself_whether_to_try_again() -> None:
    async with serving(Answer(BUSY, 429, headers="x-should-retry: false\r\n")) as peer:
        with pytest.raises(ModelError):
            await model(peer).respond(REQUEST)
        assert len(peer.asked) == 1


async def test_the_wait_is_the_one_that_was_asked_for() -> None:
    async with serving(busy("retry-after-ms: 300\r\n"), Answer(HELLO)) as peer:
        await model(peer).respond(REQUEST)
        assert peer.asked[1] - peer.asked[0] >= 0.29


async def test_a_wait_that_is_too_long_is_the_callers_to_know() -> None:
    async with serving(busy("retry-after: 3600\r\n")) as peer:
        with pytest.raises(ModelError) as caught:
            await model(peer).respond(REQUEST)
        assert caught.value.retry_after == 3600
        assert len(peer.asked) == 1


@pytest.mark.promise(
    "faults.md",
    "A model's deadline holds for all tries together, also for a server that sends a byte now and then.",
)
async def test_no_wait_goes_beyond_the_deadline() -> None:
    async with serving(busy("retry-after: 30\r\n")) as peer:
        with pytest.raises(ModelError, match="slow down"):
            await model(peer, deadline=5).respond(REQUEST)
        assert len(peer.asked) == 1


@pytest.mark.promise(
    "faults.md",
    "A model's deadline holds for all tries together, also for a server that sends a byte now and then.",
)
@pytest.mark.parametrize("how", ["stream", "respond"])
async def test_a_server_that_drips_meets_the_deadline(how: str) -> None:
    slow = Answer(HALF * 1000, kind="text/event-stream", drip=0.01)
    async with serving(slow) as peer:
        made = model(peer, deadline=0.4)
        with pytest.raises(ModelError, match=r"did not answer within 0\.4 seconds") as caught:
            await (items(made) if how == "stream" else made.respond(REQUEST))
        assert caught.value.retryable


async def test_the_consumers_own_time_is_not_the_models() -> None:
    data = STREAMED.replace(b"data: [DONE]", HALF + b"data: [DONE]")
    async with serving(Answer(data, kind="text/event-stream")) as peer:
        stream = model(peer, deadline=2.0).stream(REQUEST)
        await anext(stream)
        await asyncio.sleep(0.01)
        assert [item async for item in stream][-1].message.text == "Hello.Hel"


@pytest.mark.promise(
    "faults.md",
    "A stream that breaks off begins again, and nothing of the half answer is in the conversation.",
)
async def test_a_stream_that_breaks_begins_again() -> None:
    broken = Answer(HALF, kind="text/event-stream")
    async with serving(broken, Answer(STREAMED, kind="text/event-stream")) as peer:
        first, restart, retry, *rest, response = await items(model(peer))
        assert first == TextChunk("Hel")
        assert isinstance(restart, RestartChunk)
        assert "before the answer was complete" in restart.reason
        assert isinstance(retry, RetryChunk)
        assert (retry.problem, retry.attempt, retry.attempts) == (restart.reason, 2, 3)
        assert rest == [TextChunk("Hello.")]
        assert response.message.text == "Hello."


def said_by_anthropic(*events: dict[str, Any]) -> Answer:
    usage = {"input_tokens": 100, "output_tokens": 1}
    start = {
        "type": "message_start",
        "message": {"id": "m", "role": "assistant", "content": [], "usage": usage},
    }
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in (start, *events)]
    return Answer("".join(lines).encode(), kind="text/event-stream")


TEXT: list[dict[str, Any]] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
]
WHOLE = said_by_anthropic(
    *TEXT,
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
)
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
BROKEN = {
    "at once": [said_by_anthropic()],
    "in its text": [said_by_anthropic(*TEXT)],
    "by an error": [said_by_anthropic(*TEXT, OVERLOADED), said_by_anthropic(OVERLOADED)],
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("stands_in", [False, True])
async def test_what_an_answer_used_that_broke_off_counts(how: str, stands_in: bool) -> None:
    broken = BROKEN[how]
    async with serving(*broken, WHOLE) as peer:
        tries = 0 if stands_in else len(broken)
        first = AnthropicMessages("m", base_url=peer.address, max_retries=tries)
        chat: Any = Fallback([first] * (len(broken) + 1)) if stands_in else first
        outcome = await Agent(chat, [], conversation_budget=Budget(tokens=10_000)).run("go")
    lost = 101 * len(broken)
    assert (outcome.text, outcome.usage.total_tokens) == ("Hello.", 107 + lost)
    noted = [message.usage for message in outcome.messages if message.usage is not None]
    assert sum(noted, Usage()) == outcome.usage  # so that it counts in the conversation too


@pytest.mark.parametrize("how", BROKEN)
async def test_what_an_answer_used_counts_where_no_other_comes(how: str) -> None:
    broken = BROKEN[how]
    async with serving(*broken) as peer:
        chat = AnthropicMessages("m", base_url=peer.address, max_retries=len(broken) - 1)
        outcome = await Agent(chat, []).run("go")
    assert (outcome.reason, outcome.usage.total_tokens) == (Reason.MODEL_ERROR, 101 * len(broken))


@pytest.mark.parametrize("stands_in", [False, True])
async def test_what_an_answer_used_counts_where_its_reader_is_cancelled(stands_in: bool) -> None:
    async with serving(dataclasses.replace(said_by_anthropic(*TEXT), ends=False)) as peer:
        chat: Any = AnthropicMessages("m", base_url=peer.address)
        run = Agent(Fallback([chat, chat]) if stands_in else chat, []).start("go")
        async for event in run:
            if isinstance(event, TextDelta):
                run.cancel()
        outcome = await run
    assert (outcome.reason, outcome.usage.total_tokens) == (Reason.CANCELLED, 101)


async def test_what_an_answer_used_counts_where_its_deadline_passes() -> None:
    async with serving(dataclasses.replace(said_by_anthropic(*TEXT), ends=False)) as peer:
        chat = AnthropicMessages("m", base_url=peer.address, deadline=0.5, max_retries=0)
        outcome = await Agent(chat, []).run("go")
    assert (outcome.reason, outcome.usage.total_tokens) == (Reason.MODEL_ERROR, 101)


async def test_both_sdks_leave_it_to_us() -> None:
    async with serving(busy()) as peer:
        with pytest.raises(ModelError):
            await AnthropicMessages("m", base_url=peer.address, max_retries=1).respond(REQUEST)
        assert len(peer.asked) == 2


# -- models that stand in


def failing(words: str = "overloaded") -> Scripted:
    return Scripted([{"error": words}] * 9, name="first")


class Breaking:
    """A model whose answer breaks off in the middle of a call."""

    name = "breaking"

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        from toolcrib.messages import CallChunk

        yield TextChunk("I will")
        yield CallChunk(0, "danger", "c0")
        yield CallChunk(0, arguments="{}", done=True)
        raise ModelError("connection lost", retryable=True)

    async def respond(self, request: Request) -> Response:
        raise ModelError("connection lost", retryable=True)


async def test_the_next_model_is_asked() -> None:
    both = Fallback([failing(), Scripted(["Hello."], name="second")])
    assert (await both.respond(REQUEST)).message.text == "Hello."
    *chunks, response = await items(Fallback([failing(), Scripted(["Hello."])]))
    assert chunks == [FallbackChunk("overloaded", "scripted"), TextChunk("Hello.")]
    assert response.message.text == "Hello."


async def test_nothing_of_a_failed_answer_runs() -> None:
    from toolcrib import Effect, tool

    ran: list[str] = []

    @tool(effect=Effect.READ, secrets=(), open_world=False)
    def danger() -> str:
        "Must not run."
        ran.append("danger")
        return "ran"

    agent = Agent(Fallback([Breaking(), Scripted(["Hello."])]), [danger])
    outcome = await agent.run("Hi")
    assert outcome.text == "Hello."
    assert ran == []
    assert [message.role for message in outcome.messages] == ["user", "assistant"]


async def test_when_nobody_answers_all_reasons_are_told() -> None:
    nobody = Fallback([failing("out of credit"), Breaking()])
    with pytest.raises(
        ModelError, match=r"none of 2 models.*first: .*out of credit.*breaking: connection lost"
    ):
        await nobody.respond(REQUEST)
    with pytest.raises(ModelError, match="none of 2 models"):
        await items(nobody)


async def test_one_model_alone_fails_in_its_own_words() -> None:
    with pytest.raises(ModelError) as caught:
        await Fallback([Breaking()]).respond(REQUEST)
    assert str(caught.value) == "connection lost"


def test_a_list_of_none_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Fallback([])
