"""An agent whose model knows no function calling: its calls are read out of the text that it writes.

    python examples/text_model.py "What is out of stock?"

With TOOLCRIB_MODEL set (say, vllm:Qwen/Qwen2.5-7B-Instruct, with that server running), that model is taught the
format that its family writes. Without it the answers below are played, which needs no key and no network; the
prompt, the parser, the agent and the tool are real.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from toolcrib import Agent, Effect, tool
from toolcrib.codecs import OpenAIChatCodec
from toolcrib.codecs.text import TextCodec
from toolcrib.events import CallFinished, RunFinished, TextDelta
from toolcrib.messages import Chunk, Request, Response
from toolcrib.models import Model, ModelError, resolve_model

STOCK = {"saws": 3, "drills": 0, "planes": 1}
ANSWERS = (
    """I look at both.
<tool_call>
{"name": "count", "arguments": {"item": "saws"}}
</tool_call>
<tool_call>
{"name": "count", "arguments": {"item": "drils"}}
</tool_call>""",
    """A slip.
<tool_call>
{"name": "count", "arguments": {"item": "drills"}}
</tool_call>""",
    "The drills are out of stock; of saws there are 3.",
)


@tool(effect=Effect.READ, secrets=())
async def count(item: str) -> str:
    """Count how many of an item are in the store.

    Args:
        item: The item's name in the plural, such as "saws".
    """
    if item not in STOCK:
        return f"There is nothing called {item!r}. There are: {', '.join(STOCK)}."
    return f"{STOCK[item]} {item}"


class Played:
    """A text-only server, from memory: it gives the answers above in pieces, whatever it is asked."""

    name = "played"

    def __init__(self, codec: TextCodec) -> None:
        self.codec = codec
        self.prompts: list[str] = []
        self._answers = iter(ANSWERS)

    async def stream(self, request: Request) -> AsyncIterator[Chunk | Response]:
        body = self.codec.request(request, model=self.name, stream=True)  # what a server would be sent
        self.prompts.append(body["messages"][0]["content"])
        answer = next(self._answers, None)
        if answer is None:
            raise ModelError("all answers were played")
        decoder = self.codec.decoder(request)
        for start in range(0, len(answer), 9):
            piece = {"choices": [{"delta": {"content": answer[start : start + 9]}}]}
            for chunk in decoder.feed(piece):
                yield chunk
        decoder.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        for chunk in decoder.end():
            yield chunk
        yield decoder.finish()

    async def respond(self, request: Request) -> Response:
        async for item in self.stream(request):
            if isinstance(item, Response):
                return item
        raise ModelError("the answer had no end")


async def main(task: str) -> None:
    played = Played(TextCodec(OpenAIChatCodec("played"), "hermes"))
    name = os.environ.get("TOOLCRIB_MODEL")
    model: Model = resolve_model(f"text:{name}") if name else played
    async for event in Agent(model, [count]).stream(task):
        match event:
            case TextDelta():
                print(event.text, end="", flush=True)
            case CallFinished():
                print(f"\n[{event.tool}: {event.result.text}]")
            case RunFinished():
                print(f"\n[{event.reason}]")
            case _:
                pass
    if played.prompts:
        print("\nThe model was told:\n")
        print(played.prompts[0])


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What is out of stock?"))
