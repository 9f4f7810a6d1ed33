"""A classifier with probabilities: mails sorted, and those that the model is not sure about put aside for a person.

    python examples/classifier.py
    TOOLCRIB_MODEL=http://localhost:8000/v1#qwen3 python examples/classifier.py

Without TOOLCRIB_MODEL the answers come from a server of this program's own, which speaks Chat Completions over the real
transport and gives log-probabilities, as OpenAI, vLLM and llama.cpp do.
"""

from __future__ import annotations

import asyncio
import json
import math
import os

from toolcrib.extraction import classify
from toolcrib.models import Model, OpenAIChat, resolve_model

LABELS = {"order": "wants to buy something", "complaint": "something is wrong", "other": "all else"}
MAILS = ["Three saws, please.", "The drill came broken. And send me two more.", "Lunch on Friday?"]
SURE = 0.8
# What the server's model thinks of each mail: the first token of each label with its probability.
THOUGHTS = [{"order": 0.97, "other": 0.02}, {"comp": 0.55, "order": 0.42}, {"other": 0.91, "order": 0.05}]


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request as a server of Chat Completions would."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    request = json.loads(await reader.readexactly(int(head.split(b"content-length:")[1].split()[0])))
    thought = THOUGHTS[MAILS.index(request["messages"][-1]["content"])]
    first = max(thought, key=lambda token: thought[token])
    tokens = [first, "laint"] if first == "comp" else [first]
    others = [{"token": token, "logprob": math.log(share)} for token, share in thought.items()]
    shown = [{"token": first, "logprob": math.log(thought[first]), "top_logprobs": others}]
    shown += [{"token": token, "logprob": 0.0, "top_logprobs": []} for token in tokens[1:]]
    choice = {
        "index": 0, "finish_reason": "stop", "logprobs": {"content": shown},
        "message": {"role": "assistant", "content": "".join(tokens)},
    }  # fmt: skip
    body = json.dumps({"id": "1", "model": request["model"], "choices": [choice]}).encode()
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n")
    writer.write(f"content-length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    writer.close()


async def sort(model: Model) -> None:
    for mail in MAILS:
        found = await classify(model, mail, LABELS)
        shares = ", ".join(f"{label} {share:.0%}" for label, share in found.probabilities.items())
        sure = found.probability is None or found.probability >= SURE
        print(f"{mail!r}: {found.label if sure else f'{found.label}? a person looks at it'} ({shares})")
        print(f"   asked by {found.outcome.rung!r}: {found.outcome.guarantee}")


async def main() -> None:
    if name := os.environ.get("TOOLCRIB_MODEL"):
        await sort(resolve_model(name))
        return
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server, OpenAIChat("small", base_url=address, provider="vllm") as model:
        await sort(model)


if __name__ == "__main__":
    asyncio.run(main())
