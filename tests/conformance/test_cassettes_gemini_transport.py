"""Recorded bytes of Gemini over a real socket, through the transport."""

from __future__ import annotations

from typing import Any

from tests.cases import each
from tests.conformance.cassettes import check_chunks, records
from tests.conformance.test_cassettes_gemini import check
from tests.conformance.test_cassettes_transports import Server, server
from toolcrib.messages import Message, Request, Response
from toolcrib.models.gemini import Gemini
from toolcrib.spec import ToolSpec

__all__ = ["server"]

PER_PROVIDER = 12  # one socket and client each: enough to meet every kind, not every recording
REQUEST = Request([Message.user("Hi")], [ToolSpec("f", "Does f.", {"type": "object", "properties": {}})])


def sample() -> list[Any]:
    chosen: dict[tuple[str, str, bool], list[Any]] = {}
    for param in records("generateContent"):
        record = param.values[0]
        answer = record["response"]
        if (
            (answer["status"] or 200) == 200
            and record["finish_reason"]
            and answer["framing"] in ("sse", "json")
        ):
            kind = (record["provider"], answer["framing"], record["has_tool_calls"])
            group = chosen.setdefault(kind, [])
            if len(group) < PER_PROVIDER:
                group.append(param)
    return [param for group in chosen.values() for param in group]


@each("record", sample)
async def test_recorded_bytes_through_the_transport(record: dict[str, Any], server: Server) -> None:
    server.answer = record["response"]
    model = Gemini("gemini-3-pro", base_url=f"http://127.0.0.1:{server.server_port}", api_key="a-key-of-ours")
    streamed = record["response"]["framing"] == "sse"
    if streamed:
        items = [item async for item in model.stream(REQUEST)]
        assert [item for item in items if isinstance(item, Response)] == items[-1:]
        response = items[-1]
        assert isinstance(response, Response)
        check_chunks([item for item in items if not isinstance(item, Response)], response)
    else:
        response = await model.respond(REQUEST)
    await model.aclose()
    check(record, response)
    assert server.received == model.codec.request(REQUEST, model="gemini-3-pro", stream=streamed)
    assert server.headers["x-goog-api-key"] == "a-key-of-ours"
