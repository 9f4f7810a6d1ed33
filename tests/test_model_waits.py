"""Nothing is silent while one waits: what a run tells while its model is asked, fails for a moment, or says nothing."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from rich.console import Console

from tests.virtual_time import run_virtually
from toolcrib import Agent, Toolbox
from toolcrib.cli.live_view import LiveView
from toolcrib.codecs.openai_chat import OpenAIChatCodec
from toolcrib.events import (
    AnswerRestarted,
    Event,
    ModelAsked,
    ModelFellBack,
    ModelRetried,
    ModelSilent,
    TextDelta,
    TurnStarted,
    event_to_dict,
)
from toolcrib.messages import CallChunk, FallbackChunk, Message, Request, Response, RetryChunk, TextChunk
from toolcrib.models import Fallback, ModelError, Scripted
from toolcrib.models.answer_body import RawResponse
from toolcrib.models.transport import Transport
from toolcrib.secrets import Environment
from toolcrib.sink import EventLog

WAITS = ModelAsked | ModelRetried | ModelFellBack | ModelSilent
HELLO = json.dumps({"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}).encode()


class Whole:
    """A whole answer, as an SDK hands it over."""

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {"content-type": "application/json"}

    async def iter_bytes(self) -> AsyncGenerator[bytes]:
        yield HELLO


class Failing(Transport):
    """A transport without a network: it raises its errors one after the other, then answers."""

    sdk_name = "none"
    extra = "none"

    def __init__(self, *errors: ModelError, **named: Any) -> None:
        super().__init__("m", OpenAIChatCodec("openai"), **named)
        self.errors = list(errors)
        self.sent_at: list[float] = []

    @staticmethod
    async def _close(client: Any) -> None:
        """Nothing is open."""

    def _make_client(self) -> Any:
        return object()

    @asynccontextmanager
    async def _send(self, client: Any, body: dict[str, Any]) -> AsyncGenerator[RawResponse, None]:
        self.sent_at.append(asyncio.get_running_loop().time())
        if self.errors:
            raise self.errors.pop(0)
        yield Whole()


def busy(retry_after: float | None = None) -> ModelError:
    return ModelError("openai:m answered 429: slow down", True, 429, retry_after)


def watched(model: Any, **options: Any) -> tuple[Any, list[Event]]:
    """The outcome of a run on a loop that does not wait, and its events."""
    listener = EventLog()
    box = Toolbox([], **options)
    box.subscribe(listener)
    outcome = run_virtually(Agent(model, toolbox=box).run("Hi"))
    return outcome, listener.events


def waits(events: list[Event]) -> list[dict[str, Any]]:
    shared = ("run", "seq", "parent", "time")
    told = [event_to_dict(event) for event in events if isinstance(event, WAITS)]
    return [{name: value for name, value in event.items() if name not in shared} for event in told]


def test_a_request_that_is_sent_again_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolcrib")
    model = Failing(busy(2.0), busy(30.0))
    outcome, events = watched(model)
    assert outcome.text == "Hello."
    assert model.sent_at == [0, 2, 32]
    again = {"turn": 1, "model": "openai:m", "kind": "model_retried", "attempts": 3, "problem": str(busy())}
    assert waits(events) == [
        {"kind": "model_asked", "turn": 1, "model": "openai:m"},
        {**again, "attempt": 2, "delay": 2.0},
        {**again, "attempt": 3, "delay": 30.0},
    ], "and thirty seconds of a pause that is told are no silence"
    assert [record.getMessage() for record in caplog.records] == [
        "asking openai:m (turn 1)",
        "openai:m answered 429: slow down; trying again in 2 s (attempt 2 of 3)",
        "openai:m answered 429: slow down; trying again in 30 s (attempt 3 of 3)",
    ]


def test_a_whole_answer_is_told_in_the_log_too(caplog: pytest.LogCaptureFixture) -> None:
    run_virtually(Failing(busy(2.0)).respond(Request([Message.user("Hi")])))
    assert "trying again in 2 s (attempt 2 of 3)" in caplog.text


@pytest.mark.parametrize(
    ("error", "options", "detail"),
    [
        (busy(3600), {}, "slow down (it asks to wait 3600 s, but at most 60 s are waited)"),
        (busy(30), {"deadline": 5}, "slow down (it asks to wait 30 s, but the deadline of 5 s comes before)"),
        (busy(7), {"max_retries": 0}, "slow down (it asks to wait 7 s, but no attempt is left)"),
        (busy(), {"max_retries": 0}, "slow down"),
        (ModelError("no such model", retry_after=7), {}, "no such model"),
    ],
)
def test_a_wait_that_is_not_kept_says_so(error: ModelError, options: dict[str, Any], detail: str) -> None:
    outcome, events = watched(Failing(error, **options))
    assert outcome.reason == "model_error"
    assert outcome.detail.endswith(detail)
    assert [event["kind"] for event in waits(events)] == ["model_asked"]


class Slow:
    """A model that answers after so many seconds, in two pieces."""

    name = "slow"

    def __init__(self, *seconds: float) -> None:
        self.seconds = seconds

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        for seconds in self.seconds:
            await asyncio.sleep(seconds)
            yield TextChunk("So.")
        yield Response(Message("assistant", []), "end")

    async def respond(self, request: Request) -> Response:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("seconds", "told"),
    [((19.9,), []), ((20.1,), [20]), ((170,), [20, 40, 80, 160]), ((19, 19, 50, 19, 25), [20, 40, 20])],
)
def test_a_silent_model_is_told(
    seconds: tuple[float, ...], told: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    _, events = watched(Slow(*seconds))
    assert [event.seconds for event in events if isinstance(event, ModelSilent)] == told
    assert [record.getMessage() for record in caplog.records] == [
        f"no answer from slow for {one:g} s" for one in told
    ]


def test_another_model_that_is_asked_is_told(caplog: pytest.LogCaptureFixture) -> None:
    outcome, events = watched(Fallback([Failing(busy(), max_retries=0), Scripted(["Hello."])]))
    assert outcome.text == "Hello."
    assert waits(events) == [
        {"kind": "model_asked", "turn": 1, "model": "openai:m,scripted"},
        {"kind": "model_fell_back", "turn": 1, "model": "scripted", "problem": str(busy())},
    ]
    assert "slow down; asking scripted" in caplog.text


def test_what_was_streamed_is_void_before_the_pause_begins() -> None:
    class Breaking(Slow):
        async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
            yield CallChunk(0, "add", "c", "{}", done=True)
            raise ModelError("connection lost", True)

    _, events = watched(Fallback([Breaking(), Slow(25.0)]))
    assert [event.kind for event in events if isinstance(event, WAITS | AnswerRestarted | TurnStarted)] == [
        *(
            "turn_started",
            "model_asked",
            "answer_restarted",
            "turn_started",
            "model_fell_back",
            "model_silent",
        )
    ]
    assert [event.model for event in events if isinstance(event, ModelSilent)] == ["slow"]


def test_a_chunk_that_only_tells_voids_nothing() -> None:
    async def chunks() -> list[Any]:
        model = Fallback([Failing(busy(1.0), busy(1.0), max_retries=1), Scripted(["Hello."])])
        return [item async for item in model.stream(Request([Message.user("Hi")]))]

    kinds = [type(item) for item in run_virtually(chunks())]
    assert kinds == [RetryChunk, FallbackChunk, TextChunk, Response]


def test_a_secret_is_not_cut_in_two_by_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "abcdefghijklmnopqrstuvwxyz")

    class Telling(Slow):
        async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
            yield TextChunk("It is abcdefghijklm")
            await asyncio.sleep(30)
            yield TextChunk("nopqrstuvwxyz.")
            yield Response(Message("assistant", []), "end")

    _, events = watched(Telling(), secrets=Environment(["TOKEN"]))
    assert any(isinstance(event, ModelSilent) for event in events)
    assert "abcdefghijklm" not in "".join(event.text for event in events if isinstance(event, TextDelta))


def shown(*events: Event, terminal: bool = False) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal, color_system=None)
    view = LiveView(console)
    for event in events:
        view.take(event)
    view.pause()
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_the_terminal_shows_the_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    told = (
        ModelAsked(1, "openai:m"),
        ModelRetried(1, "openai:m", 2, 3, 2.0, "openai:m answered 429: slow \x1b[31mdown"),
        ModelSilent(1, "openai:m", 20.0),
        ModelFellBack(1, "scripted", "openai:m answered 500"),
        TextDelta("Hello."),
    )
    text = shown(*told)
    assert "trying again in 2 s (attempt 2 of 3)" in text
    assert "no answer from openai:m for 20 s" in text
    assert "openai:m answered 500; asking scripted" in text
    assert "\x1b" not in text
    now = [0.0]
    monkeypatch.setattr("toolcrib.cli.live_view.time.monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    view = LiveView(console)
    view.take(told[0])
    assert view._waiting() == ""
    now[0] = 3.2
    assert view._waiting().endswith("waiting for openai:m: 3 s")
    view.take(told[-1])
    assert view._waiting() == ""
