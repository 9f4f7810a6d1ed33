"""Streamed answers as bytes of server-sent events, and an HTTP transport that plays them from memory."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

Calls = list[tuple[str, Any]]  # name and arguments of each
Frame = bytes
EVENT_STREAM = {"content-type": "text/event-stream"}
TOOLS = ("get_weather", "edit_file", "search", "place_order")


class Answer(NamedTuple):
    """One answer: what was said first, the calls, and how many characters of arguments a delta holds."""

    text: str
    calls: Calls
    delta: int


def _arguments(number: int, size: int) -> dict[str, Any]:
    filler = f'line {number}: value = "x" * {number}\n'
    lines = (filler * (size // len(filler) + 1))[: max(0, size - 60)]
    return {"path": f"src/module_{number}.py", "line": number, "content": lines}


ANSWERS = {
    "4 calls": Answer(
        "I will look at the weather and at two files, and then place the order. " * 2,
        [(TOOLS[number % 4], _arguments(number, 60 + 90 * number)) for number in range(4)],
        5,
    ),
    "100 calls of 1 kB": Answer(
        "All at once.", [(TOOLS[number % 4], _arguments(number, 1_000)) for number in range(100)], 16
    ),
}


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _chat_events(answer: Answer) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(answer.text, 5):
        yield chunk({"content": piece})
    for index, (name, arguments) in enumerate(answer.calls):
        function = {"name": name, "arguments": ""}
        yield chunk(
            {
                "tool_calls": [
                    {"index": index, "id": f"call_{index}", "type": "function", "function": function}
                ]
            }
        )
        for piece in _pieces(json.dumps(arguments), answer.delta):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls")


def _messages_events(answer: Answer) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    yield {
        "type": "message_start",
        "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
    }

    def block(index: int, begun: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}

    said = [{"type": "text_delta", "text": piece} for piece in _pieces(answer.text, 5)]
    yield from block(0, {"type": "text", "text": ""}, said)
    for number, (name, arguments) in enumerate(answer.calls):
        begun = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        pieces = _pieces(json.dumps(arguments), answer.delta)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield from block(number + 1, begun, deltas)
    ended = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 99}}
    yield {"type": "message_stop"}


def chat(answer: Answer) -> list[Frame]:
    """The bytes of a Chat Completions stream, an event each."""
    return [
        *(f"data: {json.dumps(event)}\n\n".encode() for event in _chat_events(answer)),
        b"data: [DONE]\n\n",
    ]


def messages(answer: Answer) -> list[Frame]:
    """The bytes of an Anthropic Messages stream, an event each."""
    return [
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        for event in _messages_events(answer)
    ]


WIRES: dict[str, Callable[[Answer], list[Frame]]] = {"chat": chat, "messages": messages}


def floor(frames: list[Frame]) -> list[str]:
    """The least that anybody does: the JSON of each event's data, and the pieces of each call joined."""
    pieces: dict[int, list[str]] = {}
    for frame in frames:
        data = frame.partition(b"data: ")[2]
        if data.startswith(b"[DONE]"):
            break
        event = json.loads(data)
        if choices := event.get("choices"):
            for call in choices[0]["delta"].get("tool_calls", ()):
                pieces.setdefault(call["index"], []).append(call["function"]["arguments"])
        elif event.get("type") == "content_block_delta" and "partial_json" in event["delta"]:
            pieces.setdefault(event["index"], []).append(event["delta"]["partial_json"])
    return ["".join(parts) for parts in pieces.values()]


class Memory:
    """Plays frames to the clients of an SDK; `frames` is what the next request is answered with."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def client(self) -> Any:
        import httpx2

        def answer(request: Any) -> Any:
            request.read()
            return httpx2.Response(200, headers=EVENT_STREAM, content=iter(self.frames))

        return httpx2.Client(transport=httpx2.MockTransport(answer))

    def async_client(self) -> Any:
        import httpx2

        async def body() -> AsyncIterator[bytes]:
            for frame in self.frames:
                yield frame

        async def answer(request: Any) -> Any:
            await request.aread()
            return httpx2.Response(200, headers=EVENT_STREAM, content=body())

        return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def openai_client(memory: Memory, *, use_async: bool = False) -> Any:
    import openai

    if use_async:
        return openai.AsyncOpenAI(api_key="none", http_client=memory.async_client(), max_retries=0)
    return openai.OpenAI(api_key="none", http_client=memory.client(), max_retries=0)


def anthropic_client(memory: Memory, *, use_async: bool = False) -> Any:
    import anthropic

    if use_async:
        return anthropic.AsyncAnthropic(api_key="none", http_client=memory.async_client(), max_retries=0)
    return anthropic.Anthropic(api_key="none", http_client=memory.client(), max_retries=0)
