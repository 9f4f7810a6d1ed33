"""A model that plays recorded wire exchanges through the real codecs."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from toolcrib.codecs.anthropic_messages import AnthropicMessagesCodec
from toolcrib.codecs.codec import Codec, ModelError
from toolcrib.codecs.openai_chat import OpenAIChatCodec
from toolcrib.codecs.sse import JSONEvents, parse_event
from toolcrib.messages import Chunk, Request, Response
from toolcrib.models.model import chunks_of, last_of

CODECS: dict[str, Codec] = {"chat": OpenAIChatCodec(), "messages": AnthropicMessagesCodec()}


class Replay:
    """Answers each request with the next recorded exchange, whatever was asked.

    An exchange is a mapping with `api` ("chat" or "messages") and `response`: `status`, `framing` ("json"
    with `body`, or "sse" with `sse_raw` as text or `sse_events` as a list of `{event?, data}`). Raises
    ModelError when all were played, and for a recorded error what the model raised.

    >>> hello = {"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}
    >>> model = Replay([{"api": "chat", "response": {"framing": "json", "body": hello}}])
    """

    def __init__(self, exchanges: Iterable[Mapping[str, Any]], name: str = "replay") -> None:
        self.name = name
        self.played = 0
        self._exchanges = list(exchanges)

    @classmethod
    def from_jsonl(cls, path: str | Path) -> Replay:
        """The exchanges of a JSON Lines file, one a line; ValueError naming a line that cannot be read."""
        exchanges: list[Mapping[str, Any]] = []
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                exchange = json.loads(line)
            except ValueError as problem:
                raise ValueError(f"{path}, line {number}: not JSON: {problem}") from None
            if not isinstance(exchange, dict) or not isinstance(exchange.get("response"), dict):
                raise ValueError(f"{path}, line {number}: an exchange needs 'api' and 'response'")
            exchanges.append(exchange)
        return cls(exchanges, name=f"replay:{Path(path).name}")

    def __repr__(self) -> str:
        return f"Replay({self.name!r}, {self.played} of {len(self._exchanges)} played)"

    async def stream(self, request: Request) -> AsyncGenerator[Chunk | Response, None]:
        """The next exchange's chunks, then its Response. Raises ModelError."""
        for item in self._play(request):
            yield item

    async def respond(self, request: Request) -> Response:
        """The next exchange's Response. Raises ModelError."""
        return await last_of(self.stream(request))

    def _play(self, request: Request) -> Iterator[Chunk | Response]:
        if self.played >= len(self._exchanges):
            raise ModelError(
                f"{self.name} holds {len(self._exchanges)} exchanges and all of them were played"
            )
        exchange = self._exchanges[self.played]
        self.played += 1
        return play(exchange, request)


def play(exchange: Mapping[str, Any], request: Request | None = None) -> Iterator[Chunk | Response]:
    """One exchange as a model would have streamed it. Raises ModelError."""
    codec = CODECS.get(str(exchange.get("api")))
    if codec is None:
        raise ModelError(f"cannot play api {exchange.get('api')!r}; known are {sorted(CODECS)}")
    recorded = exchange["response"]
    status = recorded.get("status") or 200
    if status >= 400:
        raise codec.error(recorded.get("body") or recorded.get("body_text", ""), status)
    if recorded.get("framing") == "sse":
        decoder = codec.decoder(request)
        for event in recorded_events(recorded):
            yield from decoder.feed(event)
        yield decoder.finish()
    elif isinstance(body := recorded.get("body"), dict):
        response = codec.response(body, request)
        yield from chunks_of(response)
        yield response
    else:
        raise ModelError(f"cannot play framing {recorded.get('framing')!r}; known are 'json' and 'sse'")


def recorded_events(recorded: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The parsed events of a recorded stream."""
    if isinstance(raw := recorded.get("sse_raw"), str):
        events = JSONEvents()
        yield from events.feed(raw.encode())
        yield from events.finish()
        return
    for item in recorded.get("sse_events", ()):
        event = parse_event(str(item.get("data", "")), str(item.get("event") or ""))
        if event is not None:
            yield event
