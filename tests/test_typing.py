"""Type checkers see what is left out, misspelt or of a wrong type, in every form of a declaration."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SAMPLES = """\
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from pydantic import BaseModel
from typing_extensions import assert_type

from toolcrib import Agent, Answer, Context, Effect, Question, Tool, Toolbox, ToolFactory, ToolResult, Verdict, tool
from toolcrib.access import Access
from toolcrib.agent import Budget, OutputItem, OutputType, Outcome
from toolcrib.events import CallFinished, StatusChanged
from toolcrib.extraction import choose, classify, extract, extract_items, extract_many_sync, extract_sync
from toolcrib.guided import Choice
from toolcrib.prepared import Ready
from toolcrib.toolbox import NextExecute
from toolcrib.toolset import with_middleware


class P(BaseModel):
    a: int


@tool(effect=Effect.READ, secrets=())
def right(a: int, b: str = "") -> str:
    return b


@tool(effect=Effect.WRITE, secrets=("a",), name="other", timeout=3, tags=["x"], idempotent=True)
async def right_async(a: int, *, ctx: Context[dict[str, int]]) -> int:
    return ctx.deps["a"]


class Right(Tool[P, str], name="right", effect=Effect.READ, secrets=(), version="1"):
    async def execute(self, params: P, ctx: Context[None]) -> str:
        assert_type(params, P)
        return str(params.a)


class RightSync(Tool[P, int], name="right_sync", effect=Effect.READ, secrets=()):
    def execute(self, params: P, ctx: Context[None]) -> int:
        return params.a


class Bare(Tool[P, str], name="bare", effect=Effect.READ, secrets=()):
    async def execute(self, params: P, ctx: Context) -> str:
        return str(ctx.deps)


@tool(effect=Effect.READ, secrets=(), precheck=lambda params: None, effect_for=lambda params: Effect.READ)
def bare(a: int, ctx: Context) -> str:
    return ""


async def describe(ctx: Context) -> str | None: ...
def accesses(params: dict[str, str]) -> list[Access]: ...


async def make(ctx: Context) -> Right: ...


factories = Toolbox([ToolFactory("right", make), ToolFactory("bare", lambda ctx: bare)])
class Typed(TypedDict):
    a: int


@dataclass
class Data:
    a: int


def of_params(params: P) -> str: ...
def of_typed(params: Typed) -> str: ...
def of_data(params: Data, ctx: Context) -> str: ...
def refuse_params(params: P) -> str | None: ...


tool(of_params, effect=Effect.READ, secrets=(), params=P, precheck=refuse_params)
tool(of_typed, effect=Effect.READ, secrets=(), params=Typed, precheck=lambda params: str(params["a"] + 1))
tool(of_data, effect=Effect.READ, secrets=(), params=Data, precheck=lambda params: str(params.a + 1))
tool(bare, effect=Effect.READ, secrets=(), params={"type": "object"}, precheck=lambda params: str(params["a"]))
hooked = tool(bare, effect=Effect.READ, secrets=(), dynamic_description=describe, accesses=accesses)
assert_type(right(1), str)
at_run_time = tool(right.fn, effect=Effect.READ, secrets=(), name="run_time")
box = Toolbox([right, right_async, Right, RightSync(), at_run_time])


@tool(secrets=())  # WRONG: no effect
def f1(a: int) -> str: ...


@tool(effect=Effect.READ)  # WRONG: no secrets
def f2(a: int) -> str: ...


@tool()  # WRONG: neither
def f3(a: int) -> str: ...


def plain(a: int) -> str: ...
def refuse(params: dict[str, int]) -> str | None: ...
def takes_nothing() -> str | None: ...


tool(plain, secrets=())  # WRONG: no effect
tool(plain, effect=Effect.READ)  # WRONG: no secrets
tool(plain, effect="read", secrets=())  # WRONG: effect is text
tool(plain, effect=Effect.READ, secrets=(), nonsense=1)  # WRONG: no such fact
tool(plain, effect=Effect.READ, secrets=(), timeout="long")  # WRONG: a timeout is a number
tool(plain, effect=Effect.READ, secrets=(), timeot=3)  # WRONG: misspelt
tool(plain, effect=Effect.READ, secrets=(), prechek=refuse)  # WRONG: a misspelt hook
tool(plain, effect=Effect.READ, secrets=(), precheck=takes_nothing)  # WRONG: a hook of one argument
tool(plain, effect=Effect.READ, secrets=(), effect_for=refuse)  # WRONG: a hook that gives an Effect
tool(plain, effect=Effect.READ, secrets=(), retry=3)  # WRONG: a Retry
tool(plain, effect=Effect.READ, secrets=(), tags=5)  # WRONG: several
tool(plain, effect=Effect.READ, secrets=5)  # WRONG: names
tool(3, effect=Effect.READ, secrets=())  # WRONG: not a function


tool(plain, effect=Effect.READ, secrets=(), precheck=refuse_params)  # WRONG: the arguments are a dict
tool(of_params, effect=Effect.READ, secrets=(), params=P, precheck=refuse)  # WRONG: the params are a P
tool(of_params, effect=Effect.READ, secrets=(), params=P, precheck=lambda p: str(p.b))  # WRONG: P has no b
tool(of_params, effect=Effect.READ, secrets=(), params=P, timeot=3)  # WRONG: misspelt
tool(of_params, effect=Effect.READ, secrets=(), params="P")  # WRONG: not a type


@tool(effect=Effect.READ, secrets=(), dynamic_description=takes_nothing)  # WRONG: it is handed the context
def f4(a: int) -> str: ...


@tool(effect=Effect.READ, secrets=(), open_wrld=False)  # WRONG: misspelt
def f5(a: int) -> str: ...


class C1(Tool[P, str], name="c1", secrets=()):  # WRONG: no effect
    async def execute(self, params: P, ctx: Context[None]) -> str: ...


class C2(Tool[P, str], name="c2", effect=Effect.READ):  # WRONG: no secrets
    async def execute(self, params: P, ctx: Context[None]) -> str: ...


class C3(Tool[P, str]):  # WRONG: nothing
    async def execute(self, params: P, ctx: Context[None]) -> str: ...


class C4(Tool[P, str], effect=Effect.READ, secrets=()):  # WRONG: no name
    async def execute(self, params: P, ctx: Context[None]) -> str: ...


class C5(Tool[P, str], name="c5", effect=Effect.READ, secrets=(), nonsense=1):  # WRONG: no such fact
    async def execute(self, params: P, ctx: Context[None]) -> str: ...


class C6(Tool[P, str], name="c6", effect=Effect.READ, secrets=()):
    async def execute(self, params: int, ctx: Context[None]) -> str: ...  # WRONG: other params


class C7(Tool[P, str], name="c7", effect=Effect.READ, secrets=()):
    async def execute(self, params: P, ctx: Context[None]) -> int: ...  # WRONG: another result


class C8(Tool[P, str], name="c8", effect=Effect.READ, secrets=(), timeot=3):  # WRONG: misspelt
    async def execute(self, params: P, ctx: Context) -> str: ...


class C9(Tool[P, str], name="c9", effect=Effect.READ, secrets=(), timeout="long"):  # WRONG: a number
    async def execute(self, params: P, ctx: Context) -> str: ...


class C10(Tool[P, str], name="c10", effect=Effect.READ, secrets=()):
    async def execute(self, params: P, ctx: Context) -> str: ...
    def precheck(self, params: P, ctx: Context) -> str | None: ...  # WRONG: one argument too many
    def effect_for(self, params: P) -> str: ...  # WRONG: an Effect
    def resources(self, params: int) -> None: ...  # WRONG: other params


class Shop:
    stock = 3


@tool(effect=Effect.READ, secrets=())
async def stock(ctx: Context[Shop]) -> int:
    return ctx.deps.stock


@tool(effect=Effect.READ, secrets=(), delegates=True)
async def delegated(ctx: Context[Shop]) -> str:
    outcome = await Agent("openai:gpt-5", [stock]).run("count", within=ctx)
    assert_type(outcome.nested, list[Outcome[Any]])
    return outcome.text


async def timed(prepared: Ready, next: NextExecute) -> ToolResult:
    return await next(prepared)


async def yes(question: Question) -> Answer:
    return Answer(Verdict.YES)


bare_box: Toolbox = Toolbox([stock])
bare_agent: Agent = Agent("openai:gpt-5", [stock], deps=Shop(), timeout=3, approver=yes)
form: dict[str, str] = {}
bare_agent.resume(bare_agent.run_sync("a task"), form)
bare_agent.resume({}, {"id": True, "other": Answer(Verdict.NO), "third": None})
bare_agent.resume({}, {"id": 1})  # WRONG: an answer is an Answer, a verdict or its word
Agent("openai:gpt-5", on_question="wait")  # WRONG: ask or suspend
shop_box = Toolbox([stock], autonomy="full", deps=Shop(), around_execute=[timed])
assert_type(shop_box, Toolbox[Shop])
shop_agent: Agent[Shop] = Agent("openai:gpt-5", [stock], autonomy="supervised", max_turns=5)
assert_type(Agent("openai:gpt-5", toolbox=shop_box), Agent[Shop])
shop_agent.run_sync("count", deps=Shop(), messages=[])
shop_box.call_sync("stock", {}, deps=Shop(), timeout=3.0)
bare_box.call_sync("stock", deps="anything")
with_middleware([stock], around_execute=[timed])


async def uses(box: Toolbox[Shop], agent: Agent[Shop]) -> None:
    assert_type(await box.call("stock"), ToolResult)
    assert_type(await box.call_turn([]), list[ToolResult])
    await box.call("stock", deps=3)  # WRONG: other dependencies
    await box.call("stock", timeot=3)  # WRONG: misspelt
    await box.call_turn([], tool_lists=None)  # WRONG: misspelt
    await box.prepare("stock")  # WRONG: a ToolCall
    await agent.run("count", dpes=Shop())  # WRONG: misspelt
    agent.stream("count", deps="Shop")  # WRONG: other dependencies
    async for text in agent.stream_text("count", deps=Shop()):
        assert_type(text, str)
    run = agent.start("count", messages=[])
    assert_type(await run, Outcome)
    async for event in run:
        match event:
            case StatusChanged():
                assert_type(event.tip, str | None)
            case CallFinished():
                assert_type(event.duration, float)
            case _:
                pass
    agent.start("count", msgs=[])  # WRONG: misspelt
    agent.stream_text("count", deps="Shop")  # WRONG: other dependencies


Toolbox([shop_agent.as_tool("helper", "It helps.", timeout=60, title="Helper"), delegated])
shop_agent.as_tool("helper")  # WRONG: no description
shop_agent.as_tool("helper", "It helps.", effect=Effect.READ)  # WRONG: its effect is that of its tools
shop_agent.as_tool("helper", "It helps.", timeot=60)  # WRONG: misspelt
Agent("openai:gpt-5", [stock], conversation_budget=Budget(tokens=5), completion_tool=False)
Agent("openai:gpt-5", [stock], conversation_budget=5)  # WRONG: a Budget
Budget(token=5)  # WRONG: misspelt
Toolbox([stock], autonmy="full")  # WRONG: misspelt
Toolbox([stock], autonomy="ful")  # WRONG: no such word
Toolbox([stock], timeot=3)  # WRONG: misspelt
Toolbox([stock], timeout="3")  # WRONG: seconds are a number
Toolbox([stock], approver=lambda question: 1)  # WRONG: an approver gives an Answer, or its verdict
Toolbox([stock], approver=lambda question: True)


def yes_sync(question: Question) -> Answer | None: ...
def always_said(question: Question) -> Literal["always"] | bool: ...


class Desk:
    async def __call__(self, question: Question) -> Verdict: ...


for approver in (yes_sync, always_said, Desk()):
    Toolbox([stock], approver=approver)
Agent("openai:gpt-5", [stock], approver=Desk())
Toolbox([stock], around_execute=[yes])  # WRONG: a step takes the call and next
Toolbox([stock], limits=3)  # WRONG: a list of limits
Agent("openai:gpt-5", [stock], autonmy="full")  # WRONG: misspelt
Agent("openai:gpt-5", [stock], autonomy="ful")  # WRONG: no such word
Agent("openai:gpt-5", [stock], timeot=3)  # WRONG: misspelt
Agent("openai:gpt-5", [stock], max_turn=3)  # WRONG: misspelt
Agent("openai:gpt-5", [stock], budget=3)  # WRONG: a Budget
shop_agent.run_sync("count", dpes=Shop())  # WRONG: misspelt
shop_agent.run_sync("count", deps="Shop")  # WRONG: other dependencies
shop_box.call_sync("stock", {}, timeot=3)  # WRONG: misspelt
shop_box.call_sync("stock", deps="Shop")  # WRONG: other dependencies
shop_box.restricted(autonomy="none")  # WRONG: no such word
Toolbox[Shop]([stock], deps="Shop")  # WRONG: other dependencies
Agent[Shop]("openai:gpt-5", [stock], deps="Shop")  # WRONG: other dependencies
Toolbox([plain])  # WRONG: a function that is not a tool
ToolFactory("t", lambda ctx: 3)  # WRONG: a factory makes a tool
Toolbox(["shell"])  # WRONG: a name is not a tool
right("x")  # WRONG: the function's own types hold
right(1, 2)  # WRONG: the function's own types hold
Context[dict[str, int]]({"a": "b"})  # WRONG: dependencies are typed


async def make_number(a: int) -> float: ...
def make_bytes(a: int) -> bytes: ...
def check_point(value: P) -> None: ...
def needs_text(agent: Agent[Shop]) -> None: ...


class Q(BaseModel):
    b: int


async def typed() -> None:
    assert_type((await Agent("m").run("x")).output, str)
    assert_type((await Agent("m", output=P).run("x")).output, P)
    assert_type((await Agent("m", output=list[P]).run("x")).output, list[P])
    assert_type((await Agent("m", output=Typed).run("x")).output, Typed)
    assert_type((await Agent("m", output=OutputType(P, validators=[check_point])).run("x")).output, P)
    assert_type((await Agent("m", output=OutputType(P, Q)).run("x")).output, P | Q)
    assert_type((await Agent("m", output=OutputType(make_number)).run("x")).output, float)
    assert_type((await Agent("m", output=OutputType(make_bytes)).run("x")).output, bytes)
    assert_type((await Agent("m", output=OutputType(Choice("a", "b"))).run("x")).output, str)
    agent = Agent("m", [stock], output=P, deps=Shop())
    assert_type((await agent.run("x", output=int)).output, int)
    assert_type(agent.run_sync("x", output=OutputType(P, Q)).output, P | Q)
    run = agent.start("x", output=list[P])
    assert_type((await run).output, list[P])
    held: Agent[Shop, P] = agent
    needs_text(agent)  # WRONG: it answers with a P
    (await held.run("x")).output.b  # WRONG: a P has no b
    (await agent.run("x", outptu=int))  # WRONG: misspelt
    assert_type((await extract("m", P, "x")).output, P)
    assert_type(extract_sync("m", list[int], "x", max_tokens=9).output, list[int])
    assert_type(extract_many_sync("m", P, ["a", "b"])[0].output, P)
    assert_type(await choose("m", "x", {"a": 1, "b": 2}), int)
    assert_type((await classify("m", "x", ["a"])).label, str)
    async for item in extract_items("m", P, "x"):
        assert_type(item, OutputItem[P])
    extract_sync("m", P, "x", tools=[])  # WRONG: no such option
    OutputType(P, retrys=3)  # WRONG: misspelt
    OutputType(P, rung="nativ")  # WRONG: no such rung
"""
WRONG = {n for n, line in enumerate(SAMPLES.splitlines(), 1) if "# WRONG" in line}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("typing") / "sample.py"
    path.write_text(SAMPLES)
    return path


def lines_with_errors(output: str) -> set[int]:
    return {int(line) for line in re.findall(r"sample\.py:(\d+)(?::\d+)?(?: -|:) error", output)}


def judge(found: set[int], output: str) -> None:
    missed = sorted(WRONG - found)
    blamed = sorted(found - WRONG)
    assert not missed, f"not seen on lines {missed}\n{output}"
    assert not blamed, f"blamed without reason on lines {blamed}\n{output}"


def test_mypy_sees_every_omission_and_nothing_else(sample: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--disable-error-code=empty-body",
               "--cache-dir", str(sample.parent / "cache"), str(sample)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=sample.parent)
    judge(lines_with_errors(done.stdout), done.stdout + done.stderr)


def test_pyright_sees_every_omission_and_nothing_else(sample: Path) -> None:
    pyright = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if pyright is None:
        pytest.skip("pyright is not installed beside this Python")
    (sample.parent / "pyrightconfig.json").write_text(
        '{"typeCheckingMode": "strict", "reportUnusedClass": false}'
    )
    command = [pyright, "--pythonpath", sys.executable, str(sample)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=sample.parent)
    judge(lines_with_errors(done.stdout), done.stdout + done.stderr)
