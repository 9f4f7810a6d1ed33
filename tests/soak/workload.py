"""Calls of every kind through one toolbox, from several threads and loops at once."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.soak.account import OVER, Calls, Events, Memory
from toolcrib import (
    Agent,
    Answer,
    Context,
    Effect,
    Question,
    Tool,
    Toolbox,
    ToolError,
    ToolFactory,
    ToolResult,
    Verdict,
    tool,
)
from toolcrib.agent import Outcome, Reason
from toolcrib.call import CallKey
from toolcrib.errors import ErrorCode
from toolcrib.events import Notice
from toolcrib.messages import Request
from toolcrib.models import Scripted
from toolcrib.retry import Retry
from toolcrib.rules import Limit, Rule, RulePolicy
from toolcrib.toolbox import Verb

READS: Any = {"effect": Effect.READ, "secrets": (), "open_world": False}
WRITES: Any = {"effect": Effect.WRITE, "secrets": (), "open_world": False}
BATCH = 40


class Objects:
    """Counts the objects that were made for calls and those that were closed."""

    made = closed = 0
    lock = threading.Lock()

    @classmethod
    def count(cls, made: int, closed: int) -> None:
        with cls.lock:
            cls.made += made
            cls.closed += closed


@dataclass
class Number:
    """A number."""

    n: int


class Made(Tool[Number, str], name="made", effect=Effect.READ, secrets=(), open_world=False):
    """Made for one call."""

    def __init__(self) -> None:
        Objects.count(1, 0)

    async def execute(self, params: Number, ctx: Context[Any]) -> str:
        await asyncio.sleep(0)
        return "made"

    async def aclose(self) -> None:
        Objects.count(0, 1)
        await asyncio.sleep(0)


async def make(ctx: Context[Any]) -> Made:
    await asyncio.sleep(0)
    return Made()


@tool(**READS)
def thread(n: int) -> str:
    "Runs on a worker."
    return f"{n}"


@tool(inline=True, **READS)
def inline(n: int) -> str:
    "Runs where it is called."
    return f"{n}"


@tool(**READS)
async def quick(n: int) -> str:
    "Never waits."
    return f"{n}"


@tool(**READS)
async def waits(n: int) -> str:
    "Waits a moment."
    await asyncio.sleep(0.001)
    return f"{n}"


@tool(**WRITES)
async def change(n: int) -> str:
    "Changes something."
    await asyncio.sleep(0)
    return f"{n}"


@tool(**READS)
async def pieces(n: int) -> AsyncIterator[str]:
    "Gives pieces."
    for piece in range(n % 4):
        yield f"{piece}"
        await asyncio.sleep(0)


@tool(**READS)
def steps(n: int) -> Iterator[int]:
    "Gives steps from a worker."
    yield from range(n % 4)


@tool(**READS)
async def rows(n: int) -> list[dict[str, int]]:
    "Gives data."
    return [{"n": n}] * 20


@tool(**READS)
async def large(n: int) -> str:
    "Gives much."
    return f"{n}\n" * 100_000


@tool(**READS)
async def fails(n: int) -> str:
    "Says that it failed."
    raise ToolError("no")


@tool(**READS)
async def breaks(n: int) -> str:
    "Raises what it should not."
    raise [ValueError("odd"), SystemExit(1), asyncio.CancelledError(), RecursionError()][n % 4]


@tool(timeout=0.005, **READS)
async def late(n: int) -> str:
    "Takes too long."
    await asyncio.sleep(60)
    return "never"


@tool(timeout=0.02, **READS)
def late_thread(n: int, ctx: Context[Any]) -> str:
    "Takes too long on a worker."
    while True:
        time.sleep(0.002)
        ctx.check_cancelled()


@tool(idempotent=True, retry=Retry(attempts=3, delay=0.001), **READS)
async def flaky(n: int, ctx: Context[Any]) -> str:
    "Fails the first time."
    if n % 2 and random.random() < 0.3:
        raise ConnectionError("reset")
    return "flaky"


@tool(**WRITES)
async def pay(n: int) -> str:
    "Is asked about."
    return f"paid {n}"


@tool(effect=Effect.DESTRUCTIVE, secrets=(), open_world=False)
async def wipe(n: int) -> str:
    "Is denied."
    return "wiped"


@tool(**READS)
async def outer(n: int, ctx: Context[Any]) -> str:
    "Calls others side by side."
    results = await asyncio.gather(
        *(ctx.call(name, n=n) for name in ("quick", "thread", "fails", "outer_sync"))
    )
    return " ".join(result.text for result in results)


@tool(**READS)
def outer_sync(n: int, ctx: Context[Any]) -> str:
    "Calls another from a worker."
    return ctx.run(ctx.call("waits", n=n)).text


TOOLS: list[Any] = [
    Made, thread, inline, quick, waits, change, pieces, steps, rows, large, fails, breaks, late, late_thread, flaky,
    pay, wipe, outer, outer_sync, ToolFactory("factory", make),
]  # fmt: skip

GOOD = (None,)
KINDS: list[
    tuple[str, str, tuple[Any, ...], int]
] = [  # what it is, the tool, the codes that it may give, how often
    *(
        (name, name, GOOD, 6)
        for name in ("thread", "inline", "quick", "waits", "change", "pieces", "steps", "rows")
    ),
    *((name, name, GOOD, 2) for name in ("made", "factory", "outer", "outer_sync")),
    ("large", "large", GOOD, 1),
    ("fails", "fails", (ErrorCode.TOOL_ERROR,), 2),
    ("breaks", "breaks", (ErrorCode.FAILED, ErrorCode.CANCELLED), 2),
    ("late", "late", (ErrorCode.TIMED_OUT,), 1),
    ("late thread", "late_thread", (ErrorCode.TIMED_OUT,), 1),
    ("flaky", "flaky", (None, ErrorCode.FAILED), 2),
    ("asked", "pay", (None, ErrorCode.REJECTED), 2),
    ("denied", "wipe", (ErrorCode.DENIED,), 2),
    ("invalid", "invalid", (ErrorCode.INVALID_ARGUMENTS,), 2),
    ("unknown", "nothing", (ErrorCode.UNKNOWN_TOOL,), 1),
    ("cancelled", "waits", (None, ErrorCode.CANCELLED), 2),
    ("cancelled thread", "late_thread", (ErrorCode.CANCELLED, ErrorCode.TIMED_OUT), 1),
    ("cancelled object", "made", (None, ErrorCode.CANCELLED), 2),
    ("comes and goes", "passing", (None, ErrorCode.UNKNOWN_TOOL), 2),
]
DEALT = [kind for kind in KINDS for _ in range(kind[3])]


async def approve(question: Question) -> Answer:
    await asyncio.sleep(0)
    return Answer(Verdict.NO if question.arguments["n"] % 3 else Verdict.YES)


class Workload:
    """One toolbox, and what several threads do with it at once."""

    def __init__(self, overflow: Path) -> None:
        self.until = 0.0
        self.calls, self.events = Calls(), Events()
        rules = [Rule(verb=Verb.ASK, tools=("pay",)), Rule(verb=Verb.DENY, tools=("wipe",))]
        self.overflow = overflow
        self.box: Toolbox[Any] = Toolbox(
            TOOLS,
            policy=RulePolicy("full", rules),
            approver=approve,
            limits=[Limit(10**9, seconds=60), Limit(10**9)],
            overflow=overflow,
            grace=1.0,
        )
        self.box.subscribe(self.events)
        helper = Agent(Scripted(_helps), toolbox=self.box.restricted(("quick", "thread")))
        self.box.add(helper.as_tool("helper", "Helps."))
        self.agent = Agent(Scripted(_works), toolbox=self.box)
        self.waiting = Agent(Scripted(_pays), [pay, quick], on_question="suspend")
        self.broken: list[BaseException] = []
        self.runs = 0

    def round(self, seconds: float) -> Memory:
        """Let all threads work so long, and wait for their end: what is held then, is kept."""
        self.until = time.monotonic() + seconds
        threads = self._threads()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for kept in self.overflow.iterdir():
            kept.unlink()
        return Memory.after(self.calls.count)

    def _threads(self) -> list[threading.Thread]:
        work: list[Callable[[random.Random], None]] = [
            *[lambda dice: asyncio.run(self.batch(dice))] * 3,
            lambda dice: asyncio.run(self.batch(dice, calls=1)),
            *[self.sync_calls] * 2,
            lambda dice: asyncio.run(self.agents(dice)),
            self.come_and_go,
        ]
        return [
            threading.Thread(target=self._repeat, args=item, name=f"soak-{item[0]}")
            for item in enumerate(work, self.runs)
        ]

    def _repeat(self, seed: int, work: Callable[[random.Random], None]) -> None:
        dice = random.Random(seed)
        try:
            while time.monotonic() < self.until:
                work(dice)
        except BaseException as problem:
            self.broken.append(problem)

    async def batch(self, dice: random.Random, calls: int = BATCH) -> None:
        """Calls side by side in a loop of their own, as one run."""
        run = f"run{dice.getrandbits(64):x}"
        await asyncio.gather(*(self.one(dice, CallKey(run, 0, index)) for index in range(calls)))
        self.end(run)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        self.calls.wrong.extend(f"the task {task!r} is left" for task in left)

    def end(self, run: str) -> None:
        self.box.emit(run, Notice(OVER))
        self.box.forget(run)

    async def one(self, dice: random.Random, key: CallKey) -> None:
        kind, name, codes, _ = dice.choice(DEALT)
        recorded: list[ToolResult] = []
        begun = False

        async def begin() -> ToolResult:
            nonlocal begun
            begun = True
            return await self.box.call(
                *self.given(dice, name), key=key, record=lambda _, made: recorded.append(made)
            )

        if not kind.startswith("cancelled"):
            self.calls.ended(kind, recorded, await begin(), codes)
            return
        task = asyncio.ensure_future(begin())
        for _ in range(dice.randrange(4)):
            await asyncio.sleep(0)
        if dice.random() < 0.5:
            await asyncio.sleep(dice.random() * 0.003)
        task.cancel()
        result = (await asyncio.gather(task, return_exceptions=True))[0]
        if begun:
            self.calls.ended(kind, recorded, result if isinstance(result, ToolResult) else None, codes)

    def given(self, dice: random.Random, name: str) -> tuple[str, dict[str, Any]]:
        if name == "invalid":
            return "quick", {"n": "no number"}
        return name, {} if name == "passing" else {"n": dice.randrange(100)}

    def sync_calls(self, dice: random.Random) -> None:
        """Calls of code without a loop, through the portal of the box."""
        run = f"sync{dice.getrandbits(64):x}"
        for index in range(BATCH):
            self.sync_call(dice, CallKey(run, 0, index))
        self.end(run)

    def sync_call(self, dice: random.Random, key: CallKey) -> None:
        kind, name, codes, _ = dice.choice([dealt for dealt in DEALT if not dealt[0].startswith("cancelled")])
        recorded: list[ToolResult] = []
        result = self.box.call_sync(
            *self.given(dice, name), key=key, record=lambda _, made: recorded.append(made)
        )
        self.calls.ended(kind, recorded, result, codes)

    def come_and_go(self, dice: random.Random) -> None:
        """Adds a tool, lists the tools, removes it again."""

        async def passing() -> str:
            "Comes and goes."
            return "here"

        self.box.add(tool(passing, **READS))
        asyncio.run(self.box.tool_list())
        time.sleep(0.01)
        self.box.remove("passing")
        asyncio.run(self.box.tool_list())
        time.sleep(0.01)

    async def agents(self, dice: random.Random) -> None:
        """Runs that call tools and each other, are streamed, are cancelled, or wait for an answer and go on."""
        cancelled = self.agent.start("go")
        streamed, first, _ = await asyncio.gather(
            self._streamed(self.agent), self.waiting.run("go"), self._cancel(dice, cancelled)
        )
        last = await self.waiting.resume(first, {question.id: "yes" for question in first.questions})
        reasons = [outcome and outcome.reason for outcome in (streamed, first, last)]
        if reasons != [Reason.ANSWERED, Reason.WAITING, Reason.ANSWERED] or cancelled.outcome is None:
            self.calls.wrong.append(f"runs ended as {reasons}, {cancelled.outcome}")
        self.runs += 3

    async def _streamed(self, agent: Agent[Any]) -> Outcome | None:
        run = agent.start("go")
        async for _ in run:
            pass
        return await run

    async def _cancel(self, dice: random.Random, run: Any) -> None:
        await asyncio.sleep(dice.random() * 0.005)
        run.cancel()
        await run


def _calls(*named: tuple[str, Any]) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in named]}


def _turn(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


def _helps(request: Request) -> Any:
    return "found" if _turn(request) else _calls(("quick", {"n": 1}), ("thread", {"n": 2}))


def _works(request: Request) -> Any:
    n = {"n": 3}
    turns: list[Any] = [
        _calls(("helper", {"task": "look"})),
        _calls(("waits", n), ("change", n), ("outer", n), ("fails", n)),
        _calls(("helper", {"task": "look"}), ("made", n), ("late", n)),
        "done",
    ]
    return turns[_turn(request)]


def _pays(request: Request) -> Any:
    return "paid" if _turn(request) else _calls(("pay", {"n": 3}), ("quick", {"n": 1}))
