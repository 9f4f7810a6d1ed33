"""What a long conversation costs, whole and with its old results removed: `python benchmarks/keep_small.py ATTEMPTS`.

ATTEMPTS is a folder with `tasks.jsonl` and `attempts.jsonl`: edits that models attempted and a tool refused. One
session is made of the attempts of one model: for each task its prompt, a read of the file, the attempts with what the
tool answered, and an edit that succeeds. With old results removed, an edit of a file whose text is no longer in the
request is preceded by a call of read_result, which is counted. One more session reads sources of Python's own library,
a search and a whole file in turn: there nearly everything is results. Nothing is sent anywhere.

Tokens are estimated at four characters each. A cache holds what the request before it sent, for as long as it lasts;
only a beginning that is the same byte for byte is read from it.
"""

from __future__ import annotations

import asyncio
import email
import json
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from toolcrib.agent import ClearOldResults
from toolcrib.agent.clear_results import ClearedRequests, _start
from toolcrib.agent.read_result import READ_RESULT, handle_of
from toolcrib.call import ToolCall
from toolcrib.codecs.catalog import codec_named
from toolcrib.messages import Message, Request, Response, ResultPart, Usage
from toolcrib.result import ToolResult

HEAD = 3_000  # tokens of instructions and tools, which every request begins with
ATTEMPTS = 20  # of a model, at least
READ = (asyncio, email)  # packages whose sources the last session reads
LIFETIME = 300.0
PAUSE_EVERY, PAUSE = 20, 3_600.0  # a person answers an hour later, once in so many requests


# What reading from the cache and writing to it cost, in parts of the price of input that is not cached.
PRICES = {
    "no cache": (1.0, 1.0),
    "read at 0.1, written at 1": (0.1, 1.0),
    "read at 0.1, written at 1.25": (0.1, 1.25),
}


Removing = Callable[..., ClearedRequests] | None  # how old results are removed; None: not at all


@dataclass
class Bill:
    """The input of a session: requests, tokens, those of them that a cache holds, and results opened again."""

    requests: int = 0
    tokens: int = 0
    cached: int = 0
    opened: int = 0

    def cost(self, prices: str) -> float:
        """The input in tokens of full price."""
        read, written = PRICES[prices]
        return self.cached * read + (self.tokens - self.cached) * written


class EveryTurn(ClearedRequests):
    """Removes old results in each request, without regard to the cache: what the batches are compared with."""

    def _starts(self, messages: Sequence[Message], now: float) -> tuple[int, int]:
        start = _start(messages, self._settings.keep)
        return start, start


class Session:
    """A conversation whose requests are billed as they are sent."""

    def __init__(self, removing: Removing, pauses: bool) -> None:
        self.messages = [Message.system("x")]
        self.bill = Bill()
        self._now, self._pauses = 0.0, pauses
        self._cleared = removing(clock=lambda: self._now) if removing else None
        self._codec = codec_named("anthropic_messages")
        self._cached: list[str] = []
        self._asked = 0.0
        self.sent: list[Message] = []

    async def call(self, name: str, arguments: str, result: str, *, failed: bool = False) -> ResultPart:
        """One request, whose answer is this call with this result."""
        call = ToolCall(name, arguments, f"call_{self.bill.requests}")
        answer = Message("assistant", [call])

        async def read(request: Request) -> Response:
            usage = Usage(self._billed(request.messages), len(arguments) // 4)
            return Response(answer, usage=usage)

        pause = self._pauses and self.bill.requests % PAUSE_EVERY == PAUSE_EVERY - 1
        self._now += PAUSE if pause else 10.0
        request = Request(list(self.messages))
        if self._cleared is None:
            response = await read(request)
        else:
            response = await self._cleared.ask(request, read, lambda words: None)
        told = ToolResult.of(result)
        told.is_error = failed
        part = ResultPart(call, told)
        self.messages += [response.message, Message("tool", [part])]
        return part

    def _billed(self, messages: list[Message]) -> int:
        self.sent = messages
        body = self._codec.request(Request(messages), model="claude", stream=False)
        pieces = [json.dumps(block) for turn in body["messages"] for block in turn["content"]]
        same = 0
        if warm := self._now - self._asked <= LIFETIME:
            while same < min(len(pieces), len(self._cached)) and pieces[same] == self._cached[same]:
                same += 1
        read = sum(len(piece) // 4 for piece in pieces[:same]) + (HEAD if warm and self._cached else 0)
        total = sum(len(piece) // 4 for piece in pieces) + HEAD
        self._cached, self._asked = pieces, self._now
        self.bill.requests += 1
        self.bill.tokens += total
        self.bill.cached += read
        return total

    async def see(self, part: ResultPart) -> ResultPart:
        """Open a result again if the last request left it out; returns the one that is shown."""
        shown = next(
            p for m in self.sent for p in m.parts if isinstance(p, ResultPart) and p.call is part.call
        )
        if shown.result.text != part.result.text:
            self.bill.opened += 1
            return await self.call(READ_RESULT, json.dumps({"handle": handle_of(part)}), part.result.text)
        return part


def sessions(folder: Path) -> Iterator[tuple[str, list[tuple[dict[str, Any], list[dict[str, Any]]]]]]:
    """The tasks and attempts of each model that made enough of them."""
    tasks = {task["task"]: task for task in map(json.loads, (folder / "tasks.jsonl").open())}
    attempts = list(map(json.loads, (folder / "attempts.jsonl").open()))
    for model, count in Counter(attempt["model"] for attempt in attempts).most_common():
        if count >= ATTEMPTS:
            own = [attempt for attempt in attempts if attempt["model"] == model]
            by_task = {
                name: [a for a in own if a["task"] == name] for name in dict.fromkeys(a["task"] for a in own)
            }
            yield model, [(tasks[name], tried) for name, tried in by_task.items() if name in tasks]


async def bill_of(
    work: list[tuple[dict[str, Any], list[dict[str, Any]]]],
    removing: Removing,
    pauses: bool,
) -> Bill:
    session = Session(removing, pauses)
    for task, tried in work:
        session.messages.append(Message.user(task["prompt"]))
        seen = await session.call("read_file", json.dumps({"path": task["file"]}), task["input"])
        for number, attempt in enumerate(tried):
            if number:
                seen = await session.see(seen)
            arguments = attempt["args"] if isinstance(attempt["args"], str) else json.dumps(attempt["args"])
            await session.call("edit_file", json.dumps({"edit": arguments}), attempt["error"], failed=True)
        await session.call("edit_file", json.dumps({"edit": task["mutated_snippet"]}), "Done.")
    return session.bill


async def bill_of_reading(removing: Removing, pauses: bool) -> Bill:
    session = Session(removing, pauses)
    session.messages.append(Message.user("Explain how these packages work."))
    folders = [Path(package.__path__[0]) for package in READ]
    for path in [path for folder in folders for path in sorted(folder.glob("*.py"))]:
        text = path.read_text(encoding="utf-8")
        found = [f"{number}: {line}" for number, line in enumerate(text.splitlines(), 1) if "def " in line]
        await session.call("grep", json.dumps({"pattern": "def ", "path": path.name}), "\n".join(found))
        await session.call("read_file", json.dumps({"path": path.name}), text)
    return session.bill


def main() -> None:
    work: dict[str, Callable[[Removing, bool], Coroutine[Any, Any, Bill]]] = {
        name: partial(bill_of, tried) for name, tried in sessions(Path(sys.argv[1]))
    }
    work["reading sources"] = bill_of_reading
    settings = ClearOldResults()
    if limits := sys.argv[2:]:
        settings = replace(settings, tokens=int(limits[0]))
    print("| session | requests | tokens, whole | opened again |", " | ".join(PRICES), "|")
    print("| --- " * (4 + len(PRICES)), "|", sep="")
    for ending, kind, pauses in (
        ("", ClearedRequests, False),
        (", pauses", ClearedRequests, True),
        (", every turn", EveryTurn, False),
    ):
        totals: dict[str, list[float]] = {name: [0.0, 0.0] for name in PRICES}
        for model, session in work.items():
            whole = asyncio.run(session(None, pauses))
            small = asyncio.run(session(partial(kind, settings, LIFETIME), pauses))
            less = [f"{1 - small.cost(name) / whole.cost(name):.0%}" for name in PRICES]
            print(
                f"| {model}{ending} | {whole.requests} | {whole.tokens:,} | {small.opened} |",
                " | ".join(less),
                "|",
            )
            for name, sums in totals.items() if session is not bill_of_reading else ():
                sums[0] += whole.cost(name)
                sums[1] += small.cost(name)
        less = [f"{1 - small_cost / whole_cost:.0%}" for whole_cost, small_cost in totals.values()]
        print(f"| all of the attempts{ending} | | | |", " | ".join(less), "|")


if __name__ == "__main__":
    main()
