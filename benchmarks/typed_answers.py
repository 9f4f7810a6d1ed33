"""One typed answer of Chat Completions, whole and streamed, and an HTTP transport that plays it from memory."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic import BaseModel

LINES = 40
PIECE = 8  # characters of a delta


class Line(BaseModel):
    """A line of an invoice."""

    what: str
    pieces: int
    price: float


class Invoice(BaseModel):
    """An invoice as it was sent."""

    number: str
    customer: str
    lines: list[Line]
    total: float


TEXT = "Invoice 2024-7 of forty lines."
VALUE = {
    "number": "2024-7",
    "customer": "Ann",
    "lines": [{"what": f"thing number {n}", "pieces": n, "price": n + 0.5} for n in range(LINES)],
    "total": 12.5,
}
SAID = json.dumps(VALUE)


def tool_in(request: dict[str, Any]) -> str:
    """The name of the tool that the answer is a call of; "" where it is text."""
    tools = request.get("tools") or []
    return tools[0]["function"]["name"] if tools else ""


@functools.cache
def whole(name: str) -> bytes:
    """The body of a whole answer: a call of the tool of this name, or text. It is made once, before it is measured."""
    message: dict[str, Any] = {"role": "assistant", "content": None if name else SAID}
    if name:
        function = {"name": name, "arguments": SAID}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if name else "stop",
    }
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(body).encode()


@functools.cache
def frames(name: str) -> list[bytes]:
    """The events of a streamed answer, like `whole`."""

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        data = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return f"data: {json.dumps(data)}\n\n".encode()

    made = [event({"role": "assistant", "content": None})]
    if name:
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
        made.append(event({"tool_calls": [call]}))
    for at in range(0, len(SAID), PIECE):
        piece = SAID[at : at + PIECE]
        function = {"index": 0, "function": {"arguments": piece}}
        made.append(event({"tool_calls": [function]} if name else {"content": piece}))
    return [*made, event({}, "tool_calls" if name else "stop"), b"data: [DONE]\n\n"]


class Served:
    """Answers the requests of an OpenAI client; `request` is the body of the last one."""

    def __init__(self) -> None:
        self.request: dict[str, Any] = {}

    def client(self) -> Any:
        import httpx2
        import openai

        async def streamed(made: list[bytes]) -> AsyncIterator[bytes]:
            for frame in made:
                yield frame

        async def answer(request: Any) -> Any:
            self.request = json.loads(await request.aread())
            if self.request.get("stream"):
                kind = {"content-type": "text/event-stream"}
                return httpx2.Response(200, headers=kind, content=streamed(frames(tool_in(self.request))))
            kind = {"content-type": "application/json"}
            return httpx2.Response(200, headers=kind, content=whole(tool_in(self.request)))

        http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        return openai.AsyncOpenAI(api_key="none", http_client=http, max_retries=0)
