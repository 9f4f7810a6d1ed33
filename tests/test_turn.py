"""The calls of one turn: one result each, in their order; side by side only where that is safe."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from toolcrib import Answer, Effect, Toolbox, ToolCall, ToolError, Verdict
from toolcrib.call import CallKey
from toolcrib.function import tool
from toolcrib.toolbox.call_order import CallOrder
from toolcrib.toolbox.resources import in_conflict

READ, WRITE = Effect.READ, Effect.WRITE


class Tracks:
    """Tools that say when they begin and end, and end when everything that may overlap has begun."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def box(self, **named: Any) -> Toolbox:
        async def act(label: str, on: str = "") -> str:
            self.log.append(f"+{label}")
            for _ in range(5):
                await asyncio.sleep(0)
            self.log.append(f"-{label}")
            return label

        def touched(params: Any) -> list[str] | None:
            return list(params["on"]) if params.get("on") else None

        named.setdefault("autonomy", "full")
        return Toolbox(
            [
                tool(act, name="read", effect=READ, secrets=(), resources=touched),
                tool(act, name="write", effect=WRITE, secrets=(), resources=touched),
            ],
            **named,
        )

    def overlapped(self, one: str, other: str) -> bool:
        return not (
            self.log.index(f"-{one}") < self.log.index(f"+{other}")
            or self.log.index(f"-{other}") < self.log.index(f"+{one}")
        )

    def before(self, one: str, other: str) -> bool:
        return self.log.index(f"-{one}") < self.log.index(f"+{other}")


def call(spec: str, index: int) -> ToolCall:
    """`r`, `w`, or with resources of a letter each: `w:ab`."""
    kind, _, on = spec.partition(":")
    name = {"r": "read", "w": "write"}[kind]
    return ToolCall(name, {"label": str(index), "on": on} if on else {"label": str(index)})


@pytest.mark.parametrize(
    ("specs", "together", "ordered"),
    [
        (["r", "r", "r"], [(0, 1), (1, 2)], []),
        (["r", "r", "w", "r"], [(0, 1)], [(0, 2), (1, 2), (2, 3)]),
        (["w", "w"], [], [(0, 1)]),
        (["w:a", "w:b"], [(0, 1)], []),
        (["w:a", "w:a"], [], [(0, 1)]),
        (["w:a", "r:b", "r:a"], [(0, 1)], [(0, 2)]),
        (["w:a", "w", "r:b"], [], [(0, 1), (1, 2)]),
        (["r:a", "w:a", "r:a", "w:b"], [(0, 3)], [(0, 1), (1, 2)]),
        (["r", "w:a"], [], [(0, 1)]),
    ],
)
async def test_what_may_overlap_does_and_what_may_not_keeps_its_order(
    specs: list[str], together: Any, ordered: Any
) -> None:
    tracks = Tracks()
    results = await tracks.box().call_turn([call(spec, n) for n, spec in enumerate(specs)])
    assert [result.text for result in results] == [str(n) for n in range(len(specs))]
    assert all(tracks.overlapped(str(a), str(b)) for a, b in together)
    assert all(tracks.before(str(a), str(b)) for a, b in ordered)


@examples(60)
@given(specs=st.lists(st.sampled_from(["r", "w", "r:a", "w:a", "r:b", "w:b", "r:ab", "w:ab"]), max_size=7))
def test_no_call_ever_overtakes_one_that_it_conflicts_with(specs: list[str]) -> None:
    tracks = Tracks()
    calls = [call(spec, n) for n, spec in enumerate(specs)]
    results = asyncio.run(tracks.box().call_turn(calls))
    assert [result.text for result in results] == [str(n) for n in range(len(specs))]
    for later, spec in enumerate(specs):
        for earlier, other in enumerate(specs[:later]):
            (kind, _, on), (other_kind, _, other_on) = spec.partition(":"), other.partition(":")
            apart = on and other_on and not set(on) & set(other_on)
            if "w" in (kind, other_kind) and not apart:
                assert tracks.before(str(earlier), str(later)), (specs, tracks.log)


@examples(200)
@given(
    calls=st.lists(
        st.tuples(st.sampled_from(Effect), st.none() | st.frozensets(st.sampled_from("abc"))), max_size=12
    )
)
def test_a_call_waits_for_what_it_conflicts_with_and_for_nothing_else(
    calls: list[tuple[Effect, Any]],
) -> None:
    """Directly, or because the calls that it waits for do."""
    order, pairs = CallOrder(), dict[int, set[int]]()
    waits: dict[int, set[int]] = {}
    for index, (effect, touched) in enumerate(calls):
        works: Any = order.before(effect, touched)
        waits[index] = set(works).union(*(waits[work] for work in works))
        conflicts = [n for n in range(index) if in_conflict(effect, touched, *calls[n])]
        pairs[index] = set(conflicts).union(*(pairs[n] for n in conflicts))
        assert bool(works) == bool(conflicts)
        number: Any = index
        order.add(effect, touched, number)
    assert waits == pairs


async def test_results_keep_the_order_of_the_calls_whoever_ends_first() -> None:
    async def wait(n: int) -> str:
        for _ in range(10 - n):
            await asyncio.sleep(0)
        return str(n)

    box = Toolbox([tool(wait, effect=READ, secrets=())])
    results = await box.call_turn([ToolCall("wait", {"n": n}) for n in range(8)])
    assert [result.text for result in results] == [str(n) for n in range(8)]


async def test_every_kind_of_bad_call_has_its_result_beside_good_ones() -> None:
    async def good(n: int) -> str:
        return str(n)

    async def bad() -> str:
        raise ValueError

    async def sad() -> str:
        raise ToolError("no")

    box = Toolbox([tool(fn, effect=READ, secrets=()) for fn in (good, bad, sad)])
    box.add(tool(good, name="write", effect=WRITE, secrets=()))
    recorded: dict[CallKey, Any] = {}
    calls = [
        ToolCall("good", {"n": 1}), ToolCall("nope"), ToolCall("good", '{"n": '), ToolCall("bad"), ToolCall("sad"),
        ToolCall("good", {"n": "x"}), ToolCall("write", {"n": 1}), ToolCall("good", {"n": 2}), ToolCall(""),
    ]  # fmt: skip
    results = await box.call_turn(calls, run="r", turn=3, record=recorded.__setitem__)
    assert [result.code for result in results] == [
        None, "unknown_tool", "invalid_arguments", "failed", "tool_error",
        "invalid_arguments", "nobody_to_ask", None, "unknown_tool",
    ]  # fmt: skip
    assert recorded == {CallKey("r", 3, n): result for n, result in enumerate(results)}


@pytest.mark.parametrize("turn", [[], [ToolCall("nope")]])
async def test_short_turns(turn: list[ToolCall]) -> None:
    assert len(await Toolbox([]).call_turn(turn)) == len(turn)


# -- duplicates


@pytest.mark.parametrize(
    ("calls", "runs"),
    [
        ([("c1", {"n": 1}), ("c1", {"n": 1})], 1),  # sent twice by the provider
        ([("c1", {"n": 1}), ("c1", {"n": 2})], 2),  # an id that is shared is no identity
        ([("c1", {"n": 1}), ("c2", {"n": 1})], 2),  # asked for twice
        ([("", {"n": 1}), ("", {"n": 1})], 2),
        ([("c1", {"n": 1})] * 3, 1),
    ],
)
async def test_a_call_that_was_sent_twice_runs_once_and_is_answered_twice(calls: Any, runs: int) -> None:
    ran: list[int] = []

    def act(n: int) -> str:
        ran.append(n)
        return f"did {n}"

    box = Toolbox([tool(act, effect=WRITE, secrets=())], autonomy="full")
    recorded: dict[CallKey, Any] = {}
    results = await box.call_turn(
        [ToolCall("act", arguments, id=id) for id, arguments in calls],
        run="r",
        record=recorded.__setitem__,
    )
    assert len(ran) == runs
    assert [result.text for result in results] == [f"did {arguments['n']}" for _, arguments in calls]
    assert sorted(recorded) == [CallKey("r", 0, n) for n in range(len(calls))]


# -- questions


async def test_a_person_is_asked_one_question_at_a_time_in_order() -> None:
    asked: list[str] = []
    open_questions = 0

    async def approver(question: Any) -> Answer:
        nonlocal open_questions
        open_questions += 1
        assert open_questions == 1
        asked.append(question.arguments["label"])
        await asyncio.sleep(0.001)
        open_questions -= 1
        return Answer(Verdict.NO if question.arguments["label"] == "1" else Verdict.YES)

    tracks = Tracks()
    box = tracks.box(autonomy="supervised", approver=approver)
    results = await box.call_turn([call(spec, n) for n, spec in enumerate(["w:a", "w:b", "w:c", "r"])])
    assert asked == ["0", "1", "2"]
    assert [result.code for result in results] == [None, "rejected", None, None]


async def test_an_always_covers_the_same_call_later_in_the_turn() -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        await asyncio.sleep(0)
        return Answer(Verdict.ALWAYS)

    def act(n: int) -> str:
        return str(n)

    box = Toolbox([tool(act, effect=WRITE, secrets=())], approver=approver)
    results = await box.call_turn([ToolCall("act", {"n": 1})] * 3, run="r")
    assert [result.text for result in results] == ["1", "1", "1"]
    assert len(asked) == 1


# -- cut short


@examples(60)
@given(
    kinds=st.lists(st.sampled_from(["read", "write", "nope", "bad", "ask", "hang"]), min_size=1, max_size=6),
    steps=st.integers(1, 40),
)
def test_a_turn_that_is_cut_short_anywhere_has_one_result_for_each_call(kinds: list[str], steps: int) -> None:
    async def scenario() -> None:
        async def act(n: int) -> str:
            for _ in range(n):
                await asyncio.sleep(0)
            return str(n)

        async def hang(n: int) -> str:
            await asyncio.sleep(60)
            return "never"

        async def bad(n: int) -> str:
            await asyncio.sleep(0)
            raise ValueError

        async def approver(question: Any) -> Answer:
            for _ in range(3):
                await asyncio.sleep(0)
            return Answer(Verdict.YES)

        class Policy:
            def decide(self, case: Any) -> Any:
                from toolcrib.toolbox import Decision, Verb

                return Decision(Verb.ASK if case.facts.name == "ask" else Verb.ALLOW)

            def shows(self, facts: Any) -> bool:
                return True

        box = Toolbox(
            [
                tool(act, name="read", effect=READ, secrets=()),
                tool(act, name="write", effect=WRITE, secrets=()),
                tool(act, name="ask", effect=WRITE, secrets=()),
                tool(hang, effect=READ, secrets=()),
                tool(bad, effect=READ, secrets=()),
            ],
            policy=Policy(),
            approver=approver,
            grace=0.05,
        )
        recorded: list[CallKey] = []
        work = asyncio.create_task(
            box.call_turn(
                [ToolCall(kind, {"n": n}) for n, kind in enumerate(kinds)],
                run="r",
                turn=1,
                record=lambda key, result: recorded.append(key),
            )
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            pass
        assert sorted(recorded) == [CallKey("r", 1, n) for n in range(len(kinds))]

    asyncio.run(scenario())


async def test_calls_side_by_side_are_cancelled_once_by_one_cancellation() -> None:
    """The first that stopped had the others cancelled again: they were cut short while they cleaned up."""
    cleaned: list[int] = []

    async def clean_up(seconds: float) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(seconds)
            cleaned.append(1)
        return "never"

    def work(seconds: float) -> str:
        time.sleep(seconds)
        return f"worked for {seconds}"

    box = Toolbox(
        [
            tool(clean_up, effect=READ, secrets=()),
            tool(work, effect=WRITE, secrets=(), resources=lambda params: [str(params["seconds"])]),
        ],
        autonomy="full",
    )
    for name, wanted in (("clean_up", "cancelled"), ("work", "worked")):
        recorded: dict[int, str] = {}
        calls = [ToolCall(name, {"seconds": seconds}) for seconds in (0.05, 0.1, 0.15)]
        running = asyncio.create_task(
            box.call_turn(
                calls, record=lambda key, result, all=recorded: all.update({key.index: result.text})
            )
        )
        await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert [wanted in recorded[index] for index in range(3)] == [True] * 3, recorded
    assert len(cleaned) == 3
