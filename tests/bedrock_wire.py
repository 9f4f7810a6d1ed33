"""What the tests of Bedrock say on the wire: blocks, events and frames."""

from __future__ import annotations

import itertools
import json
from typing import Any
from zlib import crc32

from toolcrib.call import ToolCall
from toolcrib.models.bedrock_frames import ConverseFrames

CALL = ToolCall("weather", {"city": "Oslo"}, "tooluse_1")
USE = {"toolUse": {"toolUseId": "tooluse_1", "name": "weather", "input": {"city": "Oslo"}}}
CITATIONS = [{"title": "t", "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 2}}}]
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}
SERVER_USE = {
    "toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {"q": 1}, "type": "server_tool_use"}
}
SERVER_RESULT = {
    "toolResult": {"toolUseId": "s", "content": [{"text": "x"}], "type": "nova_grounding_result"}
}


def answer(*blocks: dict[str, Any], stop: str = "end_turn", **rest: Any) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": [*blocks]}}, "stopReason": stop, **rest}


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": block}}


def delta(index: int, **piece: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece, "p": "abc"}}


def stop(index: int) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}


END = {"messageStop": {"stopReason": "tool_use"}}
STREAM = [
    {"messageStart": {"role": "assistant"}},
    delta(0, reasoningContent={"text": "h"}),
    delta(0, reasoningContent={"text": "m"}),
    delta(0, reasoningContent={"signature": "c2ln"}),
    stop(0),
    delta(1, text="He"),
    delta(1, text="y"),
    start(2, toolUse={"toolUseId": "a", "name": "weather", "type": "tool_use"}),
    start(3, toolUse={"toolUseId": "b", "name": "clock"}),
    delta(2, toolUse={"input": '{"city":'}),
    delta(3, toolUse={"input": ""}),
    delta(2, toolUse={"input": '"Oslo"}'}),
    stop(3),
    stop(2),
    END,
    {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}}},
]


# Frames, as https://smithy.io/2.0/aws/amazon-eventstream.html has them.
def frame(payload: Any, **headers: str) -> bytes:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    head = b""
    for name, value in headers.items():
        named, said = b":" + name.replace("_", "-").encode(), value.encode()
        head += bytes([len(named)]) + named + b"\x07" + len(said).to_bytes(2) + said
    prelude = (len(body) + len(head) + 16).to_bytes(4) + len(head).to_bytes(4)
    message = prelude + crc32(prelude).to_bytes(4) + head + body
    return message + crc32(message).to_bytes(4)


def framed(event: dict[str, Any]) -> bytes:
    ((name, data),) = event.items()
    return frame(data, event_type=name, content_type="application/json", message_type="event")


FRAMES = b"".join(framed(event) for event in STREAM)


def read(data: bytes, cuts: list[int]) -> list[dict[str, Any]]:
    reader, events, places = ConverseFrames(), [], [0, *sorted(cuts), len(data)]
    for start, end in itertools.pairwise(places):
        events += reader.feed(data[start:end])
    return [*events, *reader.finish()]
