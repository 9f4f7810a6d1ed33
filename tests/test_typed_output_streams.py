"""Typed answers while they stream: pieces that never contradict each other, and lists item by item."""

import asyncio
import copy
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.properties import examples
from toolcrib import Agent, Effect, tool
from toolcrib.agent import OutputItem, OutputType, PartialOutput
from toolcrib.codecs.codec import ModelError
from toolcrib.events import OutputDelta
from toolcrib.messages import CallChunk, Request
from toolcrib.models import Fallback, Scripted
from toolcrib.secrets import Environment


class Line(BaseModel):
    text: str
    amount: float


def answer(arguments: str, **more: Any) -> dict[str, Any]:
    return {"calls": [{"name": "attempt_completion", "arguments": arguments}], **more}


def grows(before: Any, after: Any) -> bool:
    """Whether what was shown is still shown: texts and lists only grew, and objects only got more keys."""
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    if isinstance(before, list):
        return (
            isinstance(after, list)
            and len(after) >= len(before)
            and all(grows(*pair) for pair in zip(before, after, strict=False))
        )
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            key in after and grows(before[key], after[key]) for key in before
        )
    return type(before) is type(after) and before == after


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.floats(-9, 9).map(lambda x: round(x, 2)) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@examples(60)
@given(st.dictionaries(st.text(max_size=3), JSON, max_size=3), st.integers(1, 9), st.booleans())
def test_what_is_shown_never_changes_and_the_whole_is_the_answer(
    value: dict[str, Any], size: int, by_call: bool
) -> None:
    text = json.dumps(value)
    turn = answer(text) if by_call else text
    output = OutputType({"type": "object"}, rung="forced tool" if by_call else "text")
    shown: list[Any] = []

    async def stream() -> Any:
        run = Agent(Scripted([turn], chunk_size=size), output=output).start("go")
        async for partial in run.stream_partial():
            shown.append(copy.deepcopy(partial.value))
        assert partial.finished()
        return (await run).output

    whole = asyncio.run(stream())
    assert whole == value == shown[-1]
    assert all(grows(*pair) for pair in itertools.pairwise(shown))


def test_each_attempt_begins_anew() -> None:
    turns = [answer('{"text": "a", "amount": "x"}'), answer('{"text": "b", "amount": 1}')]

    async def stream() -> list[tuple[int, Any]]:
        run = Agent(Scripted(turns, chunk_size=5), output=Line).start("go")
        seen = [
            (partial.attempt, copy.deepcopy(partial.value), partial.finished("text"))
            async for partial in run.stream_partial()
        ]
        assert (await run).output == Line(text="b", amount=1)
        return seen

    seen = asyncio.run(stream())
    last = {attempt: (value, finished) for attempt, value, finished in seen}
    assert last == {1: ({"text": "a", "amount": "x"}, True), 2: ({"text": "b", "amount": 1}, True)}


def test_events_say_path_and_delta_of_the_value_itself() -> None:
    async def events() -> list[OutputDelta]:
        model = Scripted([answer('{"result": [{"text": "ab", "amount": 1}]}', chunk_size=0)])
        agent = Agent(model, output=list[Line])
        return [event async for event in agent.stream("go") if isinstance(event, OutputDelta)]

    assert [(event.path, event.delta, event.finished) for event in asyncio.run(events())] == [
        ((0, "text"), "ab", False),
        ((0, "text"), "", True),
        ((0, "amount"), 1, True),
        ((0,), {}, True),
        ((), [], True),
    ]


def test_only_answers_are_counted_as_attempts() -> None:
    @tool(effect=Effect.READ, secrets=())
    def look(path: str) -> str:
        """Look."""
        return "nothing"

    class BreaksOff(Scripted):
        async def stream(self, request: Request) -> Any:
            yield CallChunk(0, "attempt_completion", "c")
            yield CallChunk(0, arguments='{"text": "ha')
            raise ModelError("broke off", retryable=True)

    first = {"text": "I look {at it}.", "calls": [{"name": "look", "arguments": {"path": "a"}}]}
    model = Fallback(
        [BreaksOff([]), Scripted([first, answer('{"text": "whole", "amount": 1}')], chunk_size=4)]
    )

    async def stream() -> list[tuple[int, str]]:
        run = Agent(model, [look], output=Line).start("go")
        return [(partial.attempt, partial.value["text"]) async for partial in run.stream_partial()]

    assert sorted(set(asyncio.run(stream()))) == [(1, "ha"), (2, "ha"), (3, "whole")]


def items(turns: list[Any], output: Any, **options: Any) -> tuple[list[OutputItem[Any]], Any]:
    async def stream() -> Any:
        run = Agent(Scripted(turns, chunk_size=3), output=output, **options).start("go")
        return [item async for item in run.stream_items()], await run

    return asyncio.run(stream())


def test_items_come_one_by_one_and_a_bad_one_ends_nothing() -> None:
    good, bad = '{"text": "a", "amount": 1}', '{"text": "b", "amount": "x"}'
    found, outcome = items(
        [answer(f'{{"result": [{good}, {bad}, {good}]}}')], OutputType(list[Line], retries=0)
    )
    assert [(item.index, bool(item.problem)) for item in found] == [(0, False), (1, True), (2, False)]
    assert found[0].value == Line(text="a", amount=1)
    assert "- amount: expected number" in found[1].problem
    with pytest.raises(ValueError, match="amount"):
        found[1].value  # noqa: B018
    assert not outcome.has_output


def test_bad_items_are_asked_for_again_by_themselves() -> None:
    good, bad = '{"text": "a", "amount": 1}', '{"text": "b", "amount": "x"}'
    mended = answer('{"result": [{"text": "b", "amount": 2}]}')
    output = OutputType(list[Line], itemwise=True)
    found, outcome = items([answer(f'{{"result": [{good}, {bad}, {good}]}}'), mended], output)
    assert [(item.index, bool(item.problem)) for item in found] == [
        (0, False), (1, True), (2, False), (1, False),
    ]  # fmt: skip
    told = outcome.messages[2].results[0].text
    assert "item 1" in told
    assert "item 0" not in told
    assert [line.amount for line in outcome.output] == [1, 2, 1]


def test_items_that_stay_bad_are_left_out_and_named() -> None:
    good, bad = '{"text": "a", "amount": 1}', '{"text": "b", "amount": "x"}'
    output = OutputType(list[Line], itemwise=True, retries=1)
    turns = [answer(f'{{"result": [{bad}, {good}]}}'), answer(f'{{"result": [{bad}]}}')]
    _, outcome = items(turns, output)
    assert outcome.output == [Line(text="a", amount=1)]
    assert list(outcome.item_problems) == [0]
    assert "amount" in outcome.item_problems[0]


def test_only_a_list_has_items() -> None:
    with pytest.raises(TypeError, match="only a list has items"):
        items([answer("{}")], Line)
    with pytest.raises(TypeError, match="itemwise"):
        OutputType(Line, itemwise=True).check()


def test_a_secret_is_masked_in_the_pieces_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cr3t-value-77")
    text = "begin s3cr3t-value-77 end"

    async def stream() -> Any:
        model = Scripted([answer(json.dumps({"text": text, "amount": 1}))], chunk_size=4)
        run = Agent(model, output=Line, secrets=Environment(["TOKEN"])).start("go")
        partial = PartialOutput(0)
        async for partial in run.stream_partial():
            assert "s3cr3t" not in str(partial.value)
        await run
        return partial

    partial = asyncio.run(stream())
    assert partial.value["text"].startswith("begin ")
    assert partial.value["text"].endswith(" end")
    assert partial.finished("text")
