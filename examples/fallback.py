"""A list of models: the second is asked where the first does not answer, also in the middle of an answer.

    python examples/fallback.py

Without a key: the first model is a server of this program's own that hangs up in the middle of its answer, spoken to
over the real transport; the second is scripted. With names from a shell it is `--model A,B`.
"""

from __future__ import annotations

import asyncio

from toolcrib import Agent, Effect, tool
from toolcrib.events import AnswerRestarted, CallFinished, RunFinished, TextDelta
from toolcrib.models import Fallback, OpenAIChat, Scripted

HALF = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n"
    b'data: {"choices": [{"delta": {"content": "I throw the old ones aw"}}]}\n\n'
    b'data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": '
    b'{"name": "throw_away", "arguments": "{\\"item\\": \\"saws\\"}"}}]}}]}\n\n'
)
thrown: list[str] = []


@tool(effect=Effect.WRITE, secrets=())
def throw_away(item: str) -> str:
    """Throw an item away."""
    thrown.append(item)
    return f"The {item} are gone."


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Half an answer, with a call that looks complete; then the line is dead."""
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().split(b"content-length:")[1].split()[0]))
    writer.write(HALF)
    await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    faint = OpenAIChat("faint", base_url=address, provider="here", max_retries=0)
    second = Scripted([{"calls": [{"name": "throw_away", "arguments": {"item": "blunt saws"}}]}, "Done."])
    async with server:
        agent = Agent(Fallback([faint, second]), [throw_away], autonomy="full", max_turns=5)
        async for event in agent.stream("Throw the blunt saws away."):
            match event:
                case TextDelta():
                    print(event.text)
                case AnswerRestarted():
                    print(f"[void: {event.why}]")
                case CallFinished():
                    print(f"[{event.tool}: {event.result.text}]")
                case RunFinished():
                    print(f"[{event.reason}; thrown away: {', '.join(thrown)}]")
                case _:
                    pass
        await faint.aclose()


if __name__ == "__main__":
    asyncio.run(main())
