"""What other systems do with calls, approvals, statuses and long results, held against ours.

A name in a table of differences says what we do instead, and the test of that case holds us to it.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib import Agent, Answer, Effect, Message, Retry, Toolbox, ToolCall, ToolError, ToolFactory, Verdict
from toolcrib.agent import Budget, Reason
from toolcrib.call import CallKey, CallState
from toolcrib.content import Image, Text
from toolcrib.events import StatusBoard, StatusChanged
from toolcrib.facts import MaxOutput
from toolcrib.fingerprint import fingerprint
from toolcrib.function import tool
from toolcrib.messages import Response, Usage
from toolcrib.result import ToolResult
from toolcrib.toolbox import Decision, PolicyRequest, Verb
from toolcrib.toolset import StaticToolset, filtered

EFFECTS = {
    "read_only": Effect.READ, "read": Effect.READ, "ro": Effect.READ,
    "mutating": Effect.WRITE, "write": Effect.WRITE, "mut": Effect.WRITE,
    "destructive": Effect.DESTRUCTIVE, "execute": Effect.DESTRUCTIVE,
}  # fmt: skip


def cases(relative: str, *starts: str) -> Any:
    """The cases of a file as parameters, those whose name begins with one of `starts` (all, when none)."""
    found = [c for c in load_cases(f"cases/{relative}") if not starts or c["name"].startswith(starts)]
    return each("case", found, ids=[c["name"] for c in found])


def named_tool(name: str, effect: Effect = Effect.READ, ran: list[Any] | None = None) -> Any:
    def act(**arguments: Any) -> str:
        if ran is not None:
            ran.append((name, arguments))
        return f"{name} done"

    return tool(act, name=name, effect=effect, secrets=(), inline=True)


class Desk:
    def __init__(self, *answers: Answer | None) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def __call__(self, question: Any) -> Answer | None:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else Answer(Verdict.YES)


# -- statuses

STATUS_DIFFERENCES = {
    "metadata_merge": "a report has tip, progress, params and result; free metadata belongs into params, which merge alike",
    "params_shallow_merge": "durations run from the first state to the last, WAIT included, so that queueing is seen",
    "request_change_resets": "calls have keys of their own and are folded apart; nothing is ever reset",
}


@cases("schoober/status_merge.json")
def test_statuses_merge(case: Any) -> None:
    board = StatusBoard()
    keys: dict[str, CallKey] = {}
    for update, expected in zip(case["input"]["updates"], case["expected"], strict=True):
        key = keys.setdefault(update["requestId"], CallKey("run", 1, len(keys)))
        options = dict(update["options"])
        params = options.pop("params", None) or options.pop("metadata", None)
        event = StatusChanged(
            key,
            case["input"]["toolName"],
            CallState(update["status"]),
            tip=options.pop("showTip", None),
            params=params,
            result=options.pop("result", None),
        )
        event.time = float(update["at"])
        board.apply(event)
        status = board.statuses[key]
        assert status.state.value == expected["status"]
        assert status.params == (expected.get("params") or expected.get("metadata") or {})
        assert status.tip == expected.get("showTip", "")
        assert status.result == expected.get("result")
        if "endTime" in expected:
            assert status.ended == expected["endTime"]
            if case["name"] not in STATUS_DIFFERENCES:
                assert status.duration == expected["duration"]


# -- identity of arguments, duplicates

IDENTITY_DIFFERENCES: dict[str, str] = {}


@cases("zeroclaw/argument_identity.json")
def test_the_identity_of_arguments(case: Any) -> None:
    same = fingerprint("t", case["input"]["a"]) == fingerprint("t", case["input"]["b"])
    assert same == case["expected"]["same_identity"]


@cases("zeroclaw/dedupe.json")
async def test_calls_with_equal_arguments(case: Any) -> None:
    """A model that asks for the same twice means it twice; only a call that was sent twice (same id) runs once."""
    ran: list[Any] = []
    calls = case["input"]["calls"]
    names = sorted({name for name, _ in calls})
    box = Toolbox([named_tool(name, ran=ran) for name in names])
    results = await box.call_turn([ToolCall(name, arguments, id="same") for name, arguments in calls])
    distinct = {json.dumps(call, sort_keys=True) for call in calls}
    assert len(ran) == len(distinct)
    assert len(results) == len(calls)
    ran.clear()
    await box.call_turn([ToolCall(name, arguments, id=str(n)) for n, (name, arguments) in enumerate(calls)])
    assert len(ran) == len(calls)


# -- approval


@cases("entelix/approval_gate.json", "await_external")
async def test_an_approval_elsewhere_is_a_question_as_data(case: Any) -> None:
    given = case["input"]
    box = Toolbox([named_tool(given["tool"], Effect.WRITE)])
    prepared = await box.prepare(ToolCall(given["tool"], given["arguments"], id=given["tool_use_id"]))
    assert prepared.kind == "pending"
    payload = case["expected"]["payload"]
    assert (prepared.call.id, prepared.question.tool, prepared.question.arguments) == (
        payload["tool_use_id"],
        payload["tool"],
        payload["input"],
    )


# -- dispatch, beyond what upstreams do


async def executed(box: Toolbox, call: ToolCall, ran: list[Any]) -> bool:
    await box.call(call)
    return bool(ran)


async def self_approval(case: Any) -> None:
    ran: list[Any] = []
    given = case["input"]["call"]

    def shell(command: str) -> str:
        ran.append(command)
        return ""

    made = tool(shell, name=given["name"], effect=Effect.DESTRUCTIVE, secrets=())
    for autonomy in ("supervised", "read_only"):
        result = await Toolbox([made], autonomy=autonomy).call(ToolCall(given["name"], given["arguments"]))
        assert result.is_error
    assert bool(ran) == case["expected"]["executed"]


async def always_scope(case: Any) -> None:
    desk = Desk(Answer(Verdict.ALWAYS))
    box = Toolbox([named_tool("shell", Effect.WRITE)], approver=desk)
    for name, command, _ in case["input"]["answers"]:
        await box.call(name, {"command": command}, key=CallKey("r", 1, 0))
    name, command = case["input"]["next"]
    await box.call(name, {"command": command}, key=CallKey("r", 1, 1))
    assert (len(desk.asked) == 2) == case["expected"]["asks"]


async def silent_operator(case: Any) -> None:
    async def silent(question: Any) -> None:
        return None

    rejected = await Toolbox([named_tool("t", Effect.WRITE)], approver=Desk(Answer(Verdict.NO))).call("t")
    result = await Toolbox([named_tool("t", Effect.WRITE)], approver=silent).call("t")
    assert result.is_error and result.code != rejected.code and result.text != rejected.text


async def readonly(case: Any) -> None:
    ran: list[Any] = []
    box = Toolbox([named_tool("t", Effect.WRITE, ran)], autonomy="read_only", approver=Desk())
    assert await executed(box, ToolCall("t"), ran) == case["expected"]["executed"]


async def undeclared_effect(case: Any) -> None:
    with pytest.raises(TypeError, match="effect"):  # it cannot be left out
        tool(lambda: "", name="t", secrets=())  # type: ignore[call-overload]


async def duplicate_id(case: Any) -> None:
    ran: list[Any] = []
    box = Toolbox([named_tool("t", ran=ran)])
    results = await box.call_turn([ToolCall("t", {}, id=call["id"]) for call in case["input"]["calls"]])
    assert len(ran) == case["expected"]["executions"]
    assert len(results) == len(case["input"]["calls"])


async def reads_and_writes(case: Any) -> None:
    log: list[str] = []

    async def act(n: int) -> str:
        log.append(f"+{n}")
        for _ in range(4):
            await asyncio.sleep(0)
        log.append(f"-{n}")
        return ""

    kinds = case["input"]["calls"]
    box = Toolbox(
        [tool(act, name=name, effect=EFFECTS[kind], secrets=()) for name, kind in dict(kinds).items()],
        autonomy="full",
    )
    await box.call_turn([ToolCall(name, {"n": n}) for n, (name, _) in enumerate(kinds)])
    for later, (_, kind) in enumerate(kinds):
        for earlier, (_, other) in enumerate(kinds[:later]):
            ordered = log.index(f"-{earlier}") < log.index(f"+{later}")
            assert ordered or EFFECTS[kind] is EFFECTS[other] is Effect.READ


async def quarantine(case: Any) -> None:
    def broken(culprit: asyncio.Lock) -> str:
        return ""

    tools = {
        "good": named_tool("good"),
        "bad_schema": tool(broken, name="bad_schema", effect=Effect.READ, secrets=()),
    }
    with pytest.warns(UserWarning, match=case["expected"]["warning_names"]):
        tool_list = await Toolbox([tools[name] for name in case["input"]["tools"]]).tool_list()
    assert [spec.name for spec in tool_list.specs] == case["expected"]["sent"]


async def ran_by_shell(command: str) -> ToolResult:
    from toolcrib.command.sandbox import NoSandbox
    from toolcrib.tools import Shell, Workspace

    with tempfile.TemporaryDirectory() as folder:
        box = Toolbox([Shell(Workspace(folder), sandbox=NoSandbox())], autonomy="full")
        return await box.call("shell", {"command": command})


async def all_output(case: Any) -> None:
    result = await ran_by_shell(case["input"]["command"])
    assert all(said in result.text for said in case["expected"]["model_sees"])


async def odd_bytes(case: Any) -> None:
    pairs = re.findall("..", case["input"]["bytes_hex"])
    result = await ran_by_shell("printf '" + "".join(rf"\x{pair}" for pair in pairs) + "'")
    assert not result.is_error and case["expected"]["contains"] in result.text


BEYOND = {
    "model_cannot_self_approve": self_approval,
    "always_is_scoped_to_the_command": always_scope,
    "silent_operator_rejects": silent_operator,
    "readonly_denies_even_if_approved": readonly,
    "undeclared_effect_is_not_read_only": undeclared_effect,
    "duplicate_call_id_runs_once": duplicate_id,
    "parallel_read_only_serial_writes": reads_and_writes,
    "stdout_and_stderr_and_code_kept": all_output,
    "non_utf8_output": odd_bytes,
    "schema_rejected_by_provider_quarantines_one_tool": quarantine,
}


@cases("beyond/dispatch_and_approval.json")
async def test_dispatch_beyond_what_upstreams_do(case: Any) -> None:
    name = case["name"]
    if name not in BEYOND:
        pytest.skip("no property of the core")
    await BEYOND[name](case)


# -- registry


async def system_and_user(case: Any) -> None:
    given = case["input"]

    def made(who: str, name: str) -> Any:
        return tool(lambda: who, name=name, effect=Effect.READ, secrets=(), inline=True)

    box = Toolbox(
        [made("user", n) for n in given["user"]], builtin=[made("system", n) for n in given["system"]]
    )
    assert (await box.call(given["call"])).text == case["expected"]["instance"]


async def one_object_a_call(case: Any) -> None:
    made: list[Any] = []

    def build(ctx: Any) -> Any:
        made.append(named_tool("t"))
        return made[-1]

    box = Toolbox([ToolFactory("t", build)])
    key = CallKey("run", 1, 0)
    stream = await box.open_call("t", key)
    stream.feed('{"a"')
    await box.execute(await box.prepare(ToolCall("t", '{"a": 1}', id="id1"), key=key, stream=stream))
    assert len(made) == case["expected"]["factory_runs"]


async def empty_name(case: Any) -> None:
    from pydantic import BaseModel

    from toolcrib import Context, Tool

    with pytest.raises(TypeError, match="name"):

        class Nameless(Tool[BaseModel, str], name=case["input"]["user"][0], effect=Effect.READ, secrets=()):
            def execute(self, params: BaseModel, ctx: Context[Any]) -> str:
                return ""


async def failing_factory(case: Any) -> None:
    def throws(ctx: Any) -> Any:
        raise RuntimeError

    build = {"ok": lambda ctx: named_tool("ok"), "throws": throws}
    box = Toolbox([ToolFactory(name, build.get(name, build["ok"])) for name in case["input"]["user"]])
    with pytest.warns(UserWarning, match="throws"):  # and not silently, as upstream does
        tool_list = await box.tool_list()
    assert [spec.name for spec in tool_list.specs] == case["expected"]["names"]


async def validation_error(case: Any) -> None:
    def act(city: str) -> str:
        return city

    result = await Toolbox([tool(act, name=case["input"]["tool"], effect=Effect.READ, secrets=())]).call(
        case["input"]["tool"], {}
    )
    assert result.is_error and "city" in result.text and case["input"]["tool"] in result.text


REGISTRY = {
    "user_overrides_system": system_and_user,
    "system_fallback": system_and_user,
    "same_tool_use_id_reuses_instance": one_object_a_call,
    "empty_name": empty_name,
    "list_with_failing_factory": failing_factory,
    "validation_error_to_model": validation_error,
}


@cases("schoober/registry_and_execution.json")
async def test_registry_and_execution(case: Any) -> None:
    if case["name"] not in REGISTRY:
        pytest.skip("no property of the core")
    await REGISTRY[case["name"]](case)


ENTELIX_DIFFERENCES = {
    "layer_order": "there are no layers around a call yet; the steps of the path are named",
    "restricted_to_unknown": "a filter is a function of names; names that no tool has filter nothing",
    "restrict_duplicate": "the same",
    "toolset_id_rejected": "toolsets have no ids",
    "toolset_id_rejected#2": "toolsets have no ids",
}


@cases("entelix/registry.json")
async def test_registry_of_entelix(case: Any) -> None:
    given, expected = case["input"], case["expected"]
    if case["name"] in ENTELIX_DIFFERENCES:
        pytest.skip(ENTELIX_DIFFERENCES[case["name"]])
    if "dispatch" in given:
        result = await Toolbox([named_tool(n) for n in given["register"]]).call(given["dispatch"])
        assert result.code == "unknown_tool" and given["dispatch"] in result.text
    elif "filter_out" in given:
        inner = StaticToolset([named_tool(n) for n in given["register"]])
        view = filtered(inner, lambda name: name not in given["filter_out"])
        assert await view.names() == expected["names"]
        assert len(await inner.names()) == expected["parent_len"]
    elif "names" in expected:
        specs = (await Toolbox([named_tool(n) for n in given["register"]]).tool_list()).specs
        assert [spec.name for spec in specs] == expected["names"]
    elif "function" in given:

        def square(n: int) -> int:
            """Square an integer."""
            return n * n

        args = given["args"]
        made = tool(square, effect=Effect.READ, secrets=(), name=args.get("name", "square"), idempotent=args.get("idempotent", False),
                    version=args.get("version", ""), retry=Retry() if args.get("retry_hint") else None)  # fmt: skip
        assert (made.definition().spec.name, made.definition().spec.description) == (
            expected["name"],
            expected["description"],
        )
        assert (made.facts.idempotent, made.facts.version) == (expected["idempotent"], expected["version"])
    elif "arguments" in given:

        def add(a: int, b: int) -> int:
            return a + b

        box = Toolbox([tool(add, name=given["tool"], effect=Effect.READ, secrets=())])
        assert expected["error_contains"] in (await box.call(given["tool"], given["arguments"])).text
    else:
        pytest.skip("no property of the core")


# -- failures in a row

TRACKER_DIFFERENCES = {
    "every case": "we count a tool's failures in a row whatever they say: a model that fails in three ways is as stuck",
}


class Repeating:
    """A model that calls one tool again and again, or answers when it has nothing left."""

    name = "repeating"

    def __init__(self, *turns: Message, usage: list[Usage] | None = None) -> None:
        self.turns, self.usage = list(turns), usage or []

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        message = self.turns.pop(0) if self.turns else Message("assistant", [Text("done")])
        yield Response(message, usage=self.usage.pop(0) if self.usage else Usage())

    async def respond(self, request: Any) -> Response:
        raise NotImplementedError


def calling(name: str) -> Message:
    return Message("assistant", [ToolCall(name, {}, id="c")])


@cases("schoober/error_tracker.json")
async def test_failures_in_a_row_pause(case: Any) -> None:
    errors = iter(case["input"]["errors"])
    limit = case["input"]["max_same_error"]

    def fail() -> str:
        raise ToolError(next(errors)["message"])

    count = len(case["input"]["errors"])
    agent = Agent(
        Repeating(*[calling("fail")] * count),
        [tool(fail, effect=Effect.READ, secrets=())],
        max_failures=limit,
    )
    outcome = await agent.run("x")
    assert (outcome.reason is Reason.PAUSED) == (count >= limit)
    if outcome.reason is Reason.PAUSED:
        assert outcome.turns == limit


@cases("schoober/no_tool_turns.json")
async def test_an_answer_without_calls_ends_the_run(case: Any) -> None:
    """Upstream nags for a call and pauses; for us the answer is the end, and the outcome says so."""
    outcome = await Agent(Repeating(), []).run("x")
    assert (outcome.reason, outcome.turns) == (Reason.ANSWERED, 1)


# -- truth values in strings

BOOLEAN_DIFFERENCES = {
    "everything": "upstream turns every string in the arguments; we do so only where the schema wants a boolean",
}


@cases("schoober/boolean_strings.json")
async def test_truth_values_in_strings(case: Any) -> None:
    seen: list[Any] = []

    def act(flag: bool) -> str:
        seen.append(flag)
        return ""

    def keep(text: str) -> str:
        seen.append(text)
        return ""

    box = Toolbox([tool(fn, effect=Effect.READ, secrets=()) for fn in (act, keep)])
    value, expected = case["input"], case["expected"]
    result = await box.call("act", {"flag": value})
    if isinstance(expected, bool):
        assert seen == [expected]
    else:
        assert result.code == "invalid_arguments"
    if isinstance(value, str):
        seen.clear()
        await box.call("keep", {"text": value})
        assert seen == [value]


# -- what an error says to a model


@cases("entelix/error_text_to_model.json")
async def test_the_model_is_told_no_operators_detail(case: Any) -> None:
    given = case["input"]
    detail = " ".join(str(value) for value in given.values())

    async def author() -> str:
        raise ToolError(given["hint"])

    async def crash() -> str:
        raise RuntimeError(detail)

    if "hint" in given:
        result = await Toolbox([tool(author, effect=Effect.READ, secrets=())]).call("author")
        assert result.text == case["expected"]["text"]
        return
    result = await Toolbox([tool(crash, effect=Effect.READ, secrets=())]).call("crash")
    for word in [*case["expected"]["not_contains"], detail]:
        assert word not in result.text


# -- retries


@cases("entelix/retry_and_metadata.json")
async def test_retries(case: Any) -> None:
    given, expected = case["input"], case["expected"]
    if given.get("hint") == "idempotent_transport":
        retry = Retry.idempotent_transport()
        assert (retry.attempts, retry.delay * 1000) == (
            expected["max_attempts"],
            expected["initial_backoff_ms"],
        )
    elif "hint" in given:
        with pytest.raises((TypeError, ValueError)):
            Retry(attempts=given["hint"]["max_attempts"])
    elif "calls" in given:
        keys: list[str] = []

        async def flaky(ctx: Any) -> str:
            keys.append(ctx.idempotency_key)
            if len(keys) < given["calls"]:
                raise ConnectionError
            return ""

        from toolcrib import Context

        flaky.__annotations__["ctx"] = Context
        box = Toolbox(
            [tool(flaky, effect=Effect.READ, secrets=(), retry=Retry.idempotent_transport(delay=0))]
        )
        assert not (await box.call("flaky")).is_error
        assert (len(keys), len(set(keys))) == (given["calls"], 1)
    else:
        # What a service answered is known to its tool alone: it says so with ToolError(transient=...).
        wants = bool(expected.get("retry"))
        error: Exception = (
            ConnectionError() if given.get("provider") == "network" else ToolError("x", transient=wants)
        )
        assert Retry().is_transient(error) == wants
        after = given.get("retry_after") or expected.get("after_s")
        if after:
            assert Retry().delay_after(1, ToolError("x", transient=True, retry_after=after), 0.5) == min(
                after, 30.0
            )


# -- budgets

BUDGET_DIFFERENCES = {
    "input_tokens": "one limit for tokens in and out together",
    "output_tokens": "one limit for tokens in and out together",
    "shared_with_child": "requests are limited by max_turns; what children spend is counted when delegation comes",
}


@cases("entelix/run_budget.json")
async def test_budgets(case: Any) -> None:
    limits = case["input"]["limits"]
    if case["name"] in BUDGET_DIFFERENCES:
        pytest.skip(BUDGET_DIFFERENCES[case["name"]])
    unknown = set(limits) - {"total_tokens", "cost_usd"}
    if unknown:
        pytest.skip(f"we have no limit of {sorted(unknown)}")
    budget = Budget(
        tokens=limits.get("total_tokens"), cost=float(limits["cost_usd"]) if "cost_usd" in limits else None
    )
    usage = Usage()
    for operation, expected in zip(case["input"]["ops"], case["expected"], strict=True):
        word, *numbers = operation.split()
        if word not in ("usage", "cost"):
            continue
        if word == "usage":
            usage = usage + Usage(int(numbers[0]), int(numbers[1]))
        else:
            usage = usage + Usage(cost=float(numbers[0]))
        assert (budget.spent(usage, 0.0) == "") == (expected == "ok")


# -- hooks

HOOK_DIFFERENCES = {
    "before_hooks_run_in_registration_order": "nothing rewrites arguments on the way: what was decided on is what runs",
}


@cases("entelix/hooks.json")
async def test_hooks(case: Any) -> None:
    if case["name"] in HOOK_DIFFERENCES:
        pytest.skip(HOOK_DIFFERENCES[case["name"]])
    ran: list[Any] = []
    if "tool_error" in case["input"]:
        observed: list[str] = []

        async def boom() -> str:
            raise ToolError(case["input"]["tool_error"])

        box = Toolbox([tool(boom, effect=Effect.READ, secrets=())])
        subscription = box.subscribe(lambda event: observed.append(event.kind))
        result = await box.call("boom")
        assert result.text == case["expected"]["error"]
        assert subscription.flush(5) and "call_finished" in observed
    elif any("reject" in hook.get("before", {}) for hook in case["input"]["hooks"]):

        class Rejecting:
            def decide(self, case: PolicyRequest) -> Decision:
                return Decision(Verb.DENY, "no")

            def shows(self, facts: Any) -> bool:
                return True

        result = await Toolbox([named_tool("t", ran=ran)], policy=Rejecting()).call("t")
        assert result.is_error == case["expected"]["error"]
        assert len(ran) == case["expected"]["tool_executions"]
    else:
        pytest.skip("no property of the core")


# -- caps


def text_of(given: dict[str, Any]) -> str | None:
    if "cycle" in given:
        return (given["cycle"] * (given["length"] // len(given["cycle"]) + 1))[: given["length"]]
    if "repeat" in given:
        return str(given["repeat"]) * int(given["times"])
    if "text_lines" in given:
        last = int(re.search(r"\.\.line(\d+)", given["text_lines"]).group(1))  # type: ignore[union-attr]
        return "\n".join(f"line{n}" for n in range(last + 1))
    if isinstance(given.get("text"), str):
        built = re.fullmatch(r"(.)\*(\d+)", given["text"])
        return built.group(1) * int(built.group(2)) if built else given["text"]
    return None


async def capped(value: Any, limit: MaxOutput, folder: Any = None) -> ToolResult:
    async def give() -> Any:
        return value

    box = Toolbox([tool(give, effect=Effect.READ, secrets=())], max_output=limit, overflow=folder)
    return await box.call("give")


def parted(shown: str) -> tuple[str, str]:
    head, _, rest = shown.partition("[… ")
    return head, rest.partition(" …]\n")[2]


@cases("zeroclaw/truncate_tool_result.json")
async def test_truncation_of_zeroclaw(case: Any) -> None:
    """Same shares of head and tail; our limit is in bytes, and our note says how much and where it is whole."""
    given, expected = case["input"], case["expected"]
    text = text_of(given)
    if text is None:
        pytest.skip("no property of the core")
    if given["max"] == 0 and expected.get("equals") == text:
        pytest.skip("0 is no limit upstream; for us it is a limit of nothing")
    shown = (await capped(text, MaxOutput(bytes=given["max"]))).text
    if "equals" in expected:
        assert shown == expected["equals"]
    if "head_len" in expected:
        head, tail = (len(part.strip("\n")) for part in parted(shown))
        assert expected["head_len"][0] <= head <= expected["head_len"][1]
        assert expected["tail_len"][0] <= tail <= expected["tail_len"][1]
    shown.encode()


OPENCODE_DIFFERENCES = {
    "lines": "our own words for the note",
    "tail": "head and tail are always both kept: a tail alone loses how it began",
    "defaults": "50,000 bytes and 2,000 lines",
    "cleanup_by_mtime": "who hands in the folder cleans it",
    "v2_cleanup": "who hands in the folder cleans it",
    "v2_structured_only": "a structured value that is too large is an error that says so, and asks for less",
    "v2_store_failure_fails_call": "the note names no file then; the head and the tail are still worth having",
}


@cases("opencode/truncation.json")
async def test_truncation_of_opencode(case: Any, tmp_path: Any) -> None:
    given, expected = case["input"], case["expected"]
    text = text_of(given)
    if case["name"] == "defaults":
        assert (MaxOutput().bytes, MaxOutput().lines) == (50_000, expected["max_lines"])
    elif text is not None:
        limit = MaxOutput(bytes=given.get("max_bytes", 50_000), lines=given.get("max_lines", 2_000))
        result = await capped(text, limit, tmp_path)
        truncated = expected.get(
            "truncated", "not_contains" not in expected or given.get("direction") == "tail"
        )
        assert (result.text != text) == bool(truncated)
        if truncated:
            head, tail = parted(result.text)
            assert text.startswith(head.rstrip("\n")) and text.endswith(tail)
            from pathlib import Path

            assert Path(result.full_output).read_text() == text  # noqa: ASYNC240
    elif given.get("items"):
        parts = []
        for item in given["items"]:
            built = re.fullmatch(r"(.)\*(\d+)", item)
            parts.append(
                Text(built.group(1) * int(built.group(2)))
                if built
                else Image(data="aGk=" * 100_000, media_type="image/png")
            )
        result = await capped(parts, MaxOutput(), tmp_path)
        media = [part for part in result.parts if isinstance(part, Image)]
        assert media == [part for part in parts if isinstance(part, Image)]
        cut = any(isinstance(part, Text) and len(part.text) > 50_000 for part in parts)
        assert bool(result.full_output) == cut
    else:
        pytest.skip(OPENCODE_DIFFERENCES.get(case["name"], "no property of the core"))


CODEX_DIFFERENCES = {
    "formatted_truncate_text": "our note says bytes and lines; tokens are a guess of one tokenizer",
    "approx_tokens_from_byte_count": "we do not count tokens",
    "head_tail_buffer": "a shell's running output is a matter of the shell tool",
}


@cases("codex/truncation.json")
async def test_truncation_of_codex(case: Any) -> None:
    given = case["input"]
    limit = given.get("limit")
    size = limit.get("bytes") if isinstance(limit, dict) else None
    if given["api"] in ("truncate_text", "formatted_truncate_text") and size is not None and "text" in given:
        text = text_of(given)
        assert text is not None
        shown = (await capped(text, MaxOutput(bytes=size))).text
        assert (shown == text) == (len(text.encode()) <= size)
        if shown != text:
            head, tail = parted(shown)
            assert len(head.strip("\n").encode()) + len(tail.encode()) <= size
            assert text.startswith(head.rstrip("\n")) and text.endswith(tail)
    elif given["api"] == "formatted_items" and size is not None:
        kinds = {
            "InputText": lambda item: Text(item["text"]),
            "EncryptedContent": lambda item: Image(data="opaque"),
        }
        parts = [kinds.get(item["type"], lambda _: Image(data="x"))(item) for item in given["items"]]
        result = await capped(parts, MaxOutput(bytes=size))
        texts = sum(len(part.text.encode()) for part in parts if isinstance(part, Text))
        if texts <= size:
            assert list(result.parts) == parts
        assert [p for p in result.parts if isinstance(p, Image)] == [p for p in parts if isinstance(p, Image)]
    else:
        pytest.skip(CODEX_DIFFERENCES.get(given["api"], "no property of the core"))


# -- loopal


@cases("loopal/typed_bridge.json")
async def test_typed_bridge(case: Any) -> None:
    given, expected = case["input"], case["expected"]
    seen: list[Any] = []

    def keep(params: Any) -> str:
        seen.append(params)
        return ""

    made = tool(keep, name="t", effect=Effect.READ, secrets=(), params=given["schema"])
    result = await Toolbox([made]).call("t", given["arguments"])
    assert (not result.is_error) == expected.get("ok", "error" not in expected)
    if seen and "parsed" in expected:  # what was left out stays left out: a raw schema has no attributes
        assert seen == [{name: value for name, value in expected["parsed"].items() if value is not None}]


# -- rates


@cases("loopal/tool_shape.json")
def test_tool_shapes(case: Any) -> None:
    pytest.skip("a matter of the linter")
