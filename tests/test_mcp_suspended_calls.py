"""A run waits at the question of a server, is saved as JSON, and goes on in another process; and calls with tasks."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context as ServerContext
from pydantic import BaseModel

from tests.cases import each
from tests.mcp_calls import calling, toolset_of
from tests.mcp_servers.raw import LEGACY, RawServer, Refusal, tool
from tests.test_mcp_calls import filled, form, raw, replying, said
from tests.virtual_time import run_virtually
from toolcrib import Agent, Answer, Effect, Question, ToolCall, Verdict
from toolcrib.agent import Outcome, Reason
from toolcrib.errors import ErrorCode
from toolcrib.events import StatusChanged
from toolcrib.mcp.concealment import concealing_values
from toolcrib.messages import Request
from toolcrib.models import Scripted
from toolcrib.sink import EventLog

ASKED: list[str] = []  # which round of a call a server of these tests has seen


class Name(BaseModel):
    name: str


def two_rounds() -> Server[Any]:
    """A server that wants a name, and then a confirmation. All that it knows of the call is in its state."""

    def answer(ctx: Any, params: dict[str, Any]) -> Any:
        state, given = params.get("requestState", ""), params.get("inputResponses", {})
        ASKED.append(state or "begin")
        if not state:
            wanted = form("Your name?", name={"type": "string"})
            return {"resultType": "input_required", "inputRequests": {"who": wanted}, "requestState": "named"}
        if state == "named":
            name = given["who"]["content"]["name"]
            return {
                "resultType": "input_required",
                "inputRequests": {"sure": form("Sure?")},
                "requestState": f"sure {name}",
            }
        return said(f"{state} {given['sure']['action']}")

    return raw(answer)


def agent_over(server: Any, era: str = "2026", **named: Any) -> tuple[Agent, Any]:
    tools = toolset_of(server, era, **named)

    def next_turn(request: Request) -> Any:
        asked = any(message.calls for message in request.messages)
        return "That is all." if asked else {"calls": [ToolCall("srv__do", {}, "c1")]}

    return Agent(Scripted(next_turn), [tools], autonomy="full", on_question="suspend"), tools


def result_of(outcome: Outcome) -> str:
    return next(message.results[-1].text for message in reversed(outcome.messages) if message.role == "tool")


def again(outcome: Outcome) -> Any:
    return json.loads(json.dumps(outcome.to_json()))


@pytest.mark.promise("mcp-calls.md", "With a server of 2026-07-28 the call goes on where it was")
@pytest.mark.promise("mcp-calls.md", "No call is sent twice")
async def test_a_run_waits_at_each_round_of_a_stateless_server_and_the_server_goes_on_from_its_state() -> (
    None
):
    ASKED.clear()
    agent, _ = agent_over(two_rounds(), effects={"do": Effect.DESTRUCTIVE})
    async with agent:
        waiting = await agent.run("Do it.")
        assert waiting.reason is Reason.WAITING and ASKED == ["begin"]
        [question] = waiting.questions
        assert (question.action, question.source) == ("Your name?", "srv")
        assert question.to_dict()["form"]["properties"] == {"name": {"type": "string", "title": "name"}}
    agent, _ = agent_over(two_rounds(), effects={"do": Effect.DESTRUCTIVE})
    async with agent:
        wrong = await agent.resume(again(waiting), {question.id: Answer(Verdict.YES, values={"name": 3})})
        assert wrong.reason is Reason.WAITING and "does not fit" in wrong.questions[0].reason
        second = await agent.resume(again(wrong), {question.id: filled(name="Ann")})
        assert second.reason is Reason.WAITING and ASKED == ["begin", "named"]
        [sure] = second.questions
        assert (sure.action, sure.options) == ("Sure?", ("Yes", "No"))
    agent, _ = agent_over(two_rounds(), effects={"do": Effect.DESTRUCTIVE})
    async with agent:
        done = await agent.resume(again(second), {sure.id: Answer(Verdict.YES, chosen=("Yes",))})
    assert done.reason is Reason.ANSWERED and result_of(done) == "sure Ann accept"
    assert ASKED == ["begin", "named", "sure Ann"]


async def test_a_run_that_is_saved_at_a_question_has_no_credential_of_the_server() -> None:
    def answer(ctx: Any, params: dict[str, Any]) -> Any:
        if params.get("inputResponses"):
            return said("done")
        wanted = form("Who uses hunter2-hunter3?", name={"type": "string"})
        return {"resultType": "input_required", "inputRequests": {"who": wanted}, "requestState": "x"}

    agent, tools = agent_over(raw(answer))
    handle = tools.server("srv")
    make_link = handle._link

    async def link(*args: Any) -> Any:
        made = await make_link(*args)
        made.conceal = concealing_values({"hunter2-hunter3": "(hidden: KEY)"})
        return made

    handle._link = link
    async with agent:
        waiting = await agent.run("Do it.")
        saved = json.dumps(waiting.to_json())
        assert "hunter2" not in saved and "Who uses (hidden: KEY)?" in saved
        done = await agent.resume(json.loads(saved), {waiting.questions[0].id: filled(name="Ann")})
    assert result_of(done) == "done"


def older() -> MCPServer[Any]:
    server = MCPServer("older")

    @server.tool()
    async def do(ctx: ServerContext) -> str:
        """Do it."""
        ASKED.append("begin")
        answer = await ctx.elicit("Your name?", Name)
        ASKED.append(answer.action)
        return f"{answer.action} {getattr(answer, 'data', None)}"

    return server


@pytest.mark.promise("mcp-calls.md", "A call that may run twice (read-only or idempotent) is left")
async def test_a_call_of_an_older_server_that_may_run_twice_is_sent_anew_with_the_answer() -> None:
    ASKED.clear()
    agent, _ = agent_over(older(), "2025", effects={"do": Effect.READ})
    async with agent:
        waiting = await agent.run("Do it.")
        assert waiting.reason is Reason.WAITING and [question.action for question in waiting.questions] == [
            "Your name?"
        ]
        done = await agent.resume(again(waiting), {waiting.questions[0].id: filled(name="Ann")})
    assert result_of(done) == "accept name='Ann'"
    assert [what for what in ASKED if what != "cancel"] == ["begin", "begin", "accept"]


@pytest.mark.promise("mcp-calls.md", "A server of 2025 waits on its connection, which cannot be saved.")
async def test_a_call_of_an_older_server_that_may_not_run_twice_does_not_wait() -> None:
    ASKED.clear()
    agent, _ = agent_over(older(), "2025", effects={"do": Effect.WRITE})
    async with agent:
        done = await agent.run("Do it.")
    assert done.reason is Reason.ANSWERED and ASKED == ["begin", "cancel"]
    assert result_of(done).startswith(
        "cancel None\n[This needs approval: Your name?. The call of tool 'srv__do' cannot wait"
    )


CHILD = """
import asyncio, json, sys
from tests.test_mcp_suspended_calls import agent_over, filled, result_of, two_rounds
from toolcrib import Answer, Effect, Verdict

async def main() -> None:
    saved, id, answer = json.load(sys.stdin)
    agent, _ = agent_over(two_rounds(), effects={"do": Effect.DESTRUCTIVE})
    async with agent:
        out = await agent.resume(saved, {id: Answer(**answer)})
        more = {"text": result_of(out)} if not out.questions else {"saved": out.to_json(), "id": out.questions[0].id}
        print(json.dumps(more))

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_run_goes_on_in_other_processes() -> None:
    async def begin() -> Outcome:
        agent, _ = agent_over(two_rounds(), effects={"do": Effect.DESTRUCTIVE})
        async with agent:
            return await agent.run("Do it.")

    waiting = asyncio.run(begin())
    step: Any = {"saved": waiting.to_json(), "id": waiting.questions[0].id}
    for answer in (filled(name="Ann"), Answer(Verdict.YES, chosen=("Yes",))):
        given = json.dumps([step["saved"], step["id"], answer.to_dict()])
        ran = subprocess.run(
            [sys.executable, "-c", CHILD],
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=Path(__file__).parent.parent,
        )
        assert ran.returncode == 0, ran.stderr
        step = json.loads(ran.stdout)
    assert step == {"text": "sure Ann accept"}


# -- tasks


class Job:
    """A task of a server, whose states are given; the last one stays."""

    def __init__(self, *states: Mapping[str, Any], created: Mapping[str, Any] | None = None) -> None:
        self.states = list(states)
        self.created = created or {"status": "working"}
        self.sent: list[tuple[str, Any]] = []
        self.lost = self.failures = 0
        self.polled = asyncio.Event()

    def server(self) -> Server[Any]:
        def answer(ctx: Any, params: dict[str, Any]) -> Any:
            self.sent.append(("tools/call", params.get("name")))
            return self.state(self.created, "task")

        return raw(answer, tasks_get=self.get, tasks_update=self.update, tasks_cancel=self.cancel)

    def state(self, given: Mapping[str, Any], kind: str = "complete") -> dict[str, Any]:
        when = "2026-01-01T00:00:00Z"
        return {
            "taskId": "t1",
            "createdAt": when,
            "lastUpdatedAt": when,
            "ttlMs": None,
            "pollIntervalMs": 1,
            "resultType": kind,
            **given,
        }

    async def get(self, ctx: Any, params: Any) -> Any:
        self.polled.set()
        self.sent.append(("tasks/get", params.model_extra["taskId"]))
        if self.lost:
            raise MCPError(-32602, "Task not found")
        if self.failures:
            self.failures -= 1
            raise MCPError(-32603, "try again")
        return self.state(self.states.pop(0) if len(self.states) > 1 else self.states[0])

    async def update(self, ctx: Any, params: Any) -> Any:
        self.sent.append(("tasks/update", params.model_extra["inputResponses"]))
        return {"resultType": "complete"}

    async def cancel(self, ctx: Any, params: Any) -> Any:
        self.sent.append(("tasks/cancel", params.model_extra["taskId"]))
        return {"resultType": "complete"}


DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}}
WORKING = {"status": "working", "statusMessage": "half of it"}
WANTS = {"status": "input_required", "inputRequests": {"who": form("Your name?", name={"type": "string"})}}
FAILED = {"status": "failed", "error": {"code": -32603, "message": "the disk is full"}}
FAILED_RESULT = {
    "status": "completed",
    "result": {"content": [{"type": "text", "text": "no"}], "isError": True},
}

# the states of a task, and what the model is told
TASKS: list[tuple[str, list[Any], ErrorCode | None, str]] = [
    ("done", [WORKING, WORKING, DONE], None, "done"),
    ("done at once", [DONE], None, "done"),
    ("an error of the tool", [FAILED_RESULT], ErrorCode.TOOL_ERROR, "no"),
    ("failed", [FAILED], ErrorCode.TOOL_ERROR, "The server 'srv' failed: the disk is full."),
    ("cancelled", [{"status": "cancelled"}], ErrorCode.OUTCOME_UNKNOWN, "cancelled the call. Whether"),
    ("without a result", [{"status": "completed"}], None, "The tool gave no content."),
]


@pytest.mark.promise("mcp-calls.md", "A task (`io.modelcontextprotocol/tasks`) is followed to its end")
@each("name, states, code, words", TASKS)
async def test_a_task_is_followed_to_its_end(name: str, states: list[Any], code: Any, words: str) -> None:
    job, log = Job(*states), EventLog()
    async with calling(job.server(), log=log) as box:
        result = await box.call("srv__do", {})
    assert result.code is code and words in result.text
    assert [method for method, _ in job.sent] == ["tools/call"] + ["tasks/get"] * len(states)
    if WORKING in states:
        assert "half of it" in [event.tip for event in log.events if isinstance(event, StatusChanged)]


async def test_a_task_asks_the_person_once_for_each_thing() -> None:
    job, asked = Job(WORKING, WANTS, WANTS, WORKING, DONE), list[Question]()
    async with calling(job.server(), approver=replying(filled(name="Ann"), asked=asked)) as box:
        assert (await box.call("srv__do", {})).text == "done"
    assert len(asked) == 1
    accepted = {"who": {"action": "accept", "content": {"name": "Ann"}}}
    assert [sent for sent in job.sent if sent[0] == "tasks/update"] == [("tasks/update", accepted)]


async def test_a_task_is_cancelled_with_its_call() -> None:
    for stop in ("cancelled", "timed out"):
        job = Job(WORKING)
        async with calling(job.server(), max_timeout=0.2) as box:
            call = asyncio.ensure_future(box.call("srv__do", {}))
            if stop == "cancelled":
                await asyncio.wait_for(job.polled.wait(), 5)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            else:
                assert (await call).code is ErrorCode.OUTCOME_UNKNOWN
        assert job.sent[-1] == ("tasks/cancel", "t1")


async def test_a_task_that_the_server_forgot_has_an_unknown_outcome() -> None:
    job = Job(DONE)
    job.lost = 1
    async with calling(job.server()) as box:
        result = await box.call("srv__do", {})
    assert (
        result.code is ErrorCode.OUTCOME_UNKNOWN
        and "does not know its task any more (Task not found)" in result.text
    )


def test_a_poll_that_fails_is_tried_again() -> None:
    async def result(failures: int) -> Any:
        job = Job(DONE)
        job.failures = failures
        async with calling(job.server(), timeout=60, max_timeout=600) as box:
            return await box.call("srv__do", {})

    assert run_virtually(result(4)).text == "done"
    lost = run_virtually(result(5))
    assert lost.code is ErrorCode.OUTCOME_UNKNOWN and "a task of it may go on" in lost.text


async def test_a_task_that_asks_for_what_it_may_not_have_is_cancelled() -> None:
    ask = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    job = Job({"status": "input_required", "inputRequests": {"m": ask}})
    async with calling(job.server()) as box:
        result = await box.call("srv__do", {})
    assert "which it may not ask" in result.text and job.sent[-1] == ("tasks/cancel", "t1")


async def test_a_task_whose_names_are_too_long_is_left() -> None:
    job = Job(DONE, created={"status": "working", "taskId": "t" * 1_001})
    async with calling(job.server()) as box:
        result = await box.call("srv__do", {})
    assert "whose id is too long" in result.text and job.sent == [("tools/call", "do")]
    job = Job({**WANTS, "inputRequests": {"w" * 1_001: WANTS["inputRequests"]["who"]}})  # type: ignore[index]
    async with calling(job.server()) as box:
        result = await box.call("srv__do", {})
    assert "a name that is too long" in result.text and job.sent[-1] == ("tasks/cancel", "t1")


async def test_a_run_waits_at_the_question_of_a_task_and_goes_on_with_the_task() -> None:
    job = Job(WANTS)
    agent, _ = agent_over(job.server(), effects={"do": Effect.DESTRUCTIVE})
    async with agent:
        waiting = await agent.run("Do it.")
    assert waiting.reason is Reason.WAITING and ("tasks/cancel", "t1") not in job.sent
    later = Job(WANTS, DONE)
    agent, _ = agent_over(later.server(), effects={"do": Effect.DESTRUCTIVE})
    async with agent:
        done = await agent.resume(again(waiting), {waiting.questions[0].id: filled(name="Ann")})
    assert result_of(done) == "done"
    assert [method for method, _ in later.sent] == ["tasks/get", "tasks/update", "tasks/get"]


# -- tasks of revision 2025-11-25: a tool may say that it is called only as a task

RESULT = {"content": [{"type": "text", "text": "done"}]}


class OlderJob:
    """A server with one tool that is called only as a task. The states of the task are given; the last one stays."""

    def __init__(self, *statuses: str, result: Any = RESULT, takes_tasks: bool = True) -> None:
        self.statuses, self.result = list(statuses), result
        self.sent: list[tuple[str, Any]] = []
        self.takes_tasks = takes_tasks
        self.polled = asyncio.Event()

    def server(self) -> RawServer:
        answers = {"tools/call": self.call, "tasks/get": self.get, "tasks/result": self.payload}
        kept = {"tasks/cancel": lambda params: self.noted("tasks/cancel", params["taskId"])}
        can = {"tools": {}, **({"tasks": {"requests": {"tools": {"call": {}}}}} if self.takes_tasks else {})}
        does = tool("do", execution={"taskSupport": "required"})
        return RawServer({**answers, **kept}, tools=(does,), protocol=LEGACY, capabilities=can)

    def noted(self, method: str, what: Any) -> dict[str, Any]:
        self.sent.append((method, what))
        return {}

    def state(self, status: str) -> dict[str, Any]:
        when = "2026-01-01T00:00:00Z"
        told = {"status": status, "statusMessage": f"it is {status}", "ttl": None, "pollInterval": 1}
        return {"taskId": "t1", "createdAt": when, "lastUpdatedAt": when, **told}

    def call(self, params: Any) -> Any:
        self.noted("tools/call", params.get("task"))
        if "task" not in params:
            return Refusal(-32601, "Tool do requires task augmentation")
        return {"task": self.state("working")}

    def get(self, params: Any) -> Any:
        self.polled.set()
        self.noted("tasks/get", params["taskId"])
        return self.state(self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0])

    async def payload(self, params: Any) -> Any:
        self.noted("tasks/result", params["taskId"])
        while self.statuses[0] not in ("completed", "failed"):  # noqa: ASYNC110 - as the protocol says, it waits
            await asyncio.sleep(0.005)
        return self.result


# the states of a task and its result, and what the model is told
OLDER_TASKS: list[tuple[str, list[str], Any, ErrorCode | None, str]] = [
    ("done", ["working", "working", "completed"], RESULT, None, "done"),
    ("done at once", ["completed"], RESULT, None, "done"),
    ("waits for the person", ["working", *["input_required"] * 9, "working", "completed"], RESULT, None, "done"),
    ("an error of the tool", ["failed"], {**RESULT, "isError": True}, ErrorCode.TOOL_ERROR, "done"),
    ("failed", ["failed"], Refusal(-32603, "the disk is full"), ErrorCode.TOOL_ERROR, "failed: the disk is full"),
    ("failed without a word", ["failed"], {}, ErrorCode.TOOL_ERROR, "failed: it is failed"),
    ("lost", ["completed"], Refusal(-32602, "no such task"), ErrorCode.OUTCOME_UNKNOWN, "failed: no such task. Whether"),
    ("cancelled", ["working", "cancelled"], RESULT, ErrorCode.OUTCOME_UNKNOWN, "cancelled the call: it is cancelled"),
]  # fmt: skip


@each("name, statuses, result, code, words", OLDER_TASKS)
async def test_a_tool_that_is_called_as_a_task_alone_is(
    name: str, statuses: list[str], result: Any, code: Any, words: str
) -> None:
    job, log = OlderJob(*statuses, result=result), EventLog()
    async with calling(job.server(), log=log, timeout=0.1) as box:
        answer = await box.call("srv__do", {})
    assert answer.code is code and words in answer.text
    assert job.sent[0] == ("tools/call", {})
    assert [sent for sent in job.sent if sent[0] == "tasks/result"] == [("tasks/result", "t1")] * (
        name != "cancelled"
    )
    assert "it is working" in [event.tip for event in log.events if isinstance(event, StatusChanged)]


class ForgetfulJob(OlderJob):
    """It forgets the task as soon as it is to send the result, or sends none."""

    def get(self, params: Any) -> Any:
        if self.sent[-1][0] != "tasks/result":
            return super().get(params)
        self.statuses = ["completed"]
        return Refusal(-32602, "no such task")

    async def payload(self, params: Any) -> Any:
        given = await super().payload(params)
        await asyncio.sleep(0.02)
        return given


@each(
    "result, code, words",
    [(RESULT, None, "done"), (Refusal(-32602, "no such task"), ErrorCode.OUTCOME_UNKNOWN, "no such task")],
)
async def test_a_result_counts_although_its_server_forgot_the_task(
    result: Any, code: Any, words: str
) -> None:
    """The answer to a poll told that the outcome is unknown, while the result was on its way."""
    job = ForgetfulJob("input_required", result=result)
    async with calling(job.server()) as box:
        answer = await box.call("srv__do", {})
    assert answer.code is code and words in answer.text


async def test_a_task_of_an_older_server_is_cancelled_with_its_call() -> None:
    for status in ("working", "input_required"):
        job = OlderJob(status)
        async with calling(job.server()) as box:
            call = asyncio.ensure_future(box.call("srv__do", {}))
            await asyncio.wait_for(job.polled.wait(), 5)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert ("tasks/cancel", "t1") in job.sent


async def test_no_task_is_wanted_of_a_server_that_takes_none_or_may_make_none() -> None:
    for takes, may in ((False, True), (True, False)):
        job = OlderJob("completed", takes_tasks=takes)
        async with calling(job.server(), tasks=may) as box:
            assert "requires task augmentation" in (await box.call("srv__do", {})).text
        assert job.sent == [("tools/call", None)]
