"""A model that plays recorded wire exchanges through the real codecs."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from toolcrib.codecs.catalog import CODECS, codec_named
from toolcrib.codecs.codec import Codec, ModelError, last_chunks
from toolcrib.codecs.sse import JSONEvents, parse_event
from toolcrib.messages import Chunk, Request, Response
from toolcrib.models.model import chunks_of, last_of
from toolcrib.text_file import read_text_file

# Beside the codecs' own names, those of the providers' interfaces.
APIS = {
    "chat": "openai_chat",
    "responses": "openai_responses",
    "messages": "anthropic_messages",
    "generateContent": "gemini",
    "interactions": "gemini_interactions",
    "converse": "bedrock_converse",
    "cohere_v2": "cohere",
}
STREAMED = frozenset({"sse", "ndjson", "aws-eventstream", "decoded-eventstream", "json-array-stream"})


class Replay:
    """Answers each request with the next recorded exchange, whatever was asked.

    An exchange is a mapping with `api` (a codec's name, or a key of `APIS`) and `response`, which holds
    `status`, `framing` and the framed data: "json" with `body`; "sse" with `sse_raw` as text or `sse_events` as
    a list of `{event?, data}`; "ndjson" with `ndjson_lines`; "aws-eventstream" with `events` as a list of
    `{event, data}`; "json-array-stream" with `body`. Raises ModelError after the last exchange, and for a
    recorded error.

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
        try:
            text = read_text_file(path)
        except ValueError as problem:
            raise ValueError(f"{path}: {problem}") from None
        for number, line in enumerate(text.split("\n"), 1):
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
    codec = codec_of(exchange)
    recorded = exchange["response"]
    status = recorded.get("status") or 200
    if status >= 400:
        raise codec.error(recorded.get("body") or recorded.get("body_text", ""), status)
    framing = recorded.get("framing")
    if framing in STREAMED:
        decoder = codec.decoder(request)
        for event in recorded_events(recorded):
            yield from decoder.feed(event)
        yield from last_chunks(decoder)
        yield decoder.finish()
    elif isinstance(body := recorded.get("body"), dict):
        response = codec.response(body, request)
        yield from chunks_of(response)
        yield response
    else:
        raise ModelError(f"cannot play framing {framing!r}; known are 'json', {', '.join(sorted(STREAMED))}")


def codec_of(exchange: Mapping[str, Any]) -> Codec:
    """The codec that an exchange was recorded with. Raises ModelError for an unknown interface."""
    api = str(exchange.get("api"))
    name = APIS.get(api, api)
    if name not in CODECS:
        raise ModelError(f"cannot play api {api!r}; known are {sorted({*APIS, *CODECS})}")
    return codec_named(name)


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
    for line in recorded.get("ndjson_lines", ()):
        event = line if isinstance(line, dict) else parse_event(str(line))
        if event is not None:
            yield event
    for item in recorded.get("events", ()):  # of Bedrock: the name of an event is the only key of its object
        data = item.get("data")
        yield {str(item.get("event")): parse_event(data) if isinstance(data, str) else data}
    if isinstance(body := recorded.get("body"), list):
        yield from (event for event in body if isinstance(event, dict))
