"""Whatever is prepared, stored, answered, executed, replaced or forgotten, in any order: nothing runs twice,
nothing runs that was not allowed, and every call that was executed has exactly one recorded result."""

import asyncio
import json
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from tests.properties import examples
from toolcrib import Answer, Effect, Toolbox, ToolCall, Verdict
from toolcrib.call import CallKey
from toolcrib.function import tool
from toolcrib.prepared import Pending, Ready, Refused
from toolcrib.saved_calls import prepared_to_json

EFFECTS = {"read": Effect.READ, "write": Effect.WRITE, "destroy": Effect.DESTRUCTIVE}
RUNS = st.sampled_from(["one", "two"])
NAMES = st.sampled_from([*EFFECTS, "nope"])
ARGUMENTS = st.sampled_from(['{"n": 1}', '{"n": 2}', "{'n': 1}", '{"n": "1"}', '{"n": "x"}', "{", '{"m": 1}'])
ANSWERS = st.sampled_from([None, Answer(Verdict.YES), Answer(Verdict.NO, "no"), Answer(Verdict.ALWAYS)])


class Calls(RuleBasedStateMachine):
    """`granted` is our own book of what a person allowed for always; `ran` what the tools really did."""

    prepared = Bundle("prepared")
    stored = Bundle("stored")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.ran: list[tuple[CallKey, str, int]] = []
        self.recorded: dict[CallKey, list[Any]] = {}
        self.granted: set[tuple[str, str, int]] = set()
        self.allowed: set[CallKey] = set()
        self.generation = dict.fromkeys(EFFECTS, 0)
        self.of_generation: dict[int, dict[str, int]] = {}
        self.next = 0
        self.box = Toolbox(grace=0.1)
        for name in EFFECTS:
            self.replace(name)

    def teardown(self) -> None:
        self.loop.close()

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def replace(self, name: str) -> None:
        from toolcrib import Context

        async def act(n: int, ctx: Context) -> str:
            self.ran.append((ctx.key, name, n))
            return f"{name} {n}"

        self.generation[name] += 1
        version = str(self.generation[name])
        made = tool(act, name=name, effect=EFFECTS[name], secrets=(), version=version)
        self.box.add(made, override=True)

    @rule(target=prepared, run=RUNS, name=NAMES, arguments=ARGUMENTS)
    def prepare(self, run: str, name: str, arguments: str) -> Any:
        self.next += 1
        key = CallKey(run, 1, self.next)
        before = len(self.ran)
        item = self.do(self.box.prepare(ToolCall(name, arguments), key=key))
        assert len(self.ran) == before  # preparing has no effects
        assert isinstance(item, Refused) == (name == "nope" or arguments in ("{", '{"m": 1}', '{"n": "x"}'))
        if isinstance(item, Pending):
            assert (run, f"{name}{self.generation[name]}", item.arguments["n"]) not in self.granted
        elif isinstance(item, Ready) and EFFECTS[name] is not Effect.READ:
            assert (run, f"{name}{self.generation[name]}", item.arguments["n"]) in self.granted
            self.allowed.add(key)
        self.of_generation[id(item)] = dict(self.generation)
        self.keep = getattr(self, "keep", [])
        self.keep.append(item)  # ids stay taken
        return item

    @rule(target=stored, item=prepared)
    def store(self, item: Any) -> Any:
        if item.execution.result is not None:
            return multiple()
        return json.dumps(prepared_to_json(item))

    @rule(target=prepared, text=stored)
    def restore(self, text: str) -> Any:
        before = len(self.ran)
        item = self.do(self.box.restore(json.loads(text)))
        assert len(self.ran) == before
        if isinstance(item, Ready) and not isinstance(item, Pending):
            self.allowed.add(item.key)
        self.of_generation[id(item)] = dict(self.generation)
        self.keep.append(item)
        # A call that was stored and restored is one call: whoever runs both runs two, and we run only one.
        if item.key in self.recorded:
            return multiple()
        return item

    @rule(item=prepared, answer=ANSWERS)
    def execute(self, item: Any, answer: Answer | None) -> None:
        if item.execution.result is None and item.key in self.recorded:
            return  # its stored twin was executed
        before, first = len(self.ran), item.execution.result is None
        name = item.call.name
        result = self.do(
            self.box.execute(item, answer, record=lambda key, r: self.recorded.setdefault(key, []).append(r))
        )
        assert result is self.recorded[item.key][0]
        ran = len(self.ran) - before
        assert ran <= (1 if first else 0)
        if ran:
            key, what, n = self.ran[-1]
            assert (key, what) == (item.key, name)
            assert not isinstance(item, Refused)
            assert self.of_generation[id(item)][name] == self.generation[name]
            allowed = EFFECTS[name] is Effect.READ or key in self.allowed
            assert allowed or (answer is not None and answer.verdict is not Verdict.NO)
            if isinstance(item, Pending) and answer is not None and answer.verdict is Verdict.ALWAYS:
                self.granted.add((key.run, f"{name}{self.generation[name]}", n))
        elif first:
            assert result.is_error

    @rule(name=st.sampled_from([*EFFECTS]))
    def replace_tool(self, name: str) -> None:
        self.replace(name)

    @rule(run=RUNS)
    def forget(self, run: str) -> None:
        self.box.forget(run)
        self.granted = {grant for grant in self.granted if grant[0] != run}

    @invariant()
    def every_executed_call_has_one_result(self) -> None:
        assert all(len(results) == 1 for results in self.recorded.values())

    @invariant()
    def nothing_ran_twice(self) -> None:
        keys = [key for key, _, _ in self.ran]
        assert len(keys) == len(set(keys))


TestCalls = Calls.TestCase
TestCalls.settings = examples(60, stateful_step_count=30)
