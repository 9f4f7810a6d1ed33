"""Results at the edges: what does not fit, what is too large, what is shared, what is closed twice."""

import dataclasses
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from toolcrib import Context, Effect, Text, Tool, Toolbox, ToolCall, ToolResult
from toolcrib.call import CallKey
from toolcrib.content import Json
from toolcrib.events import CallFinished, Notice
from toolcrib.facts import MaxOutput
from toolcrib.function import tool

READ = Effect.READ


def box_giving(value: Any, returns: Any = Any, **named: Any) -> Toolbox:
    async def give() -> Any:
        return value

    give.__annotations__["return"] = returns
    facts = {name: named.pop(name) for name in ("max_output",) if name in named}
    return Toolbox([tool(give, effect=READ, secrets=(), **facts)], **named)


async def test_a_result_that_a_tool_returns_twice_is_not_changed_by_the_box() -> None:
    kept = ToolResult((Text("x" * 500),))
    box = box_giving(kept, max_output=MaxOutput(bytes=100))
    first, second = await box.call("give", {}), await box.call("give", {})
    assert first.text == second.text
    assert kept.text == "x" * 500


@dataclasses.dataclass
class Point:
    x: int


# A text is checked against a declared schema like every other value; an instance is no proof of its fields.
@pytest.mark.parametrize(
    ("value", "returns"),
    [("hot", int), ("c", Literal["a", "b"]), (Point("x"), Point)],  # type: ignore[arg-type]
)
async def test_a_misfit_is_told_whatever_it_is(value: Any, returns: Any) -> None:
    result = await box_giving(value, returns).call("give", {})
    assert result.structured is None
    assert "does not match the schema" in result.text


@pytest.mark.parametrize(
    ("value", "returns"), [("a", Literal["a", "b"]), ("2026-01-02", Literal["2026-01-02"])]
)
async def test_a_text_with_a_declared_schema_is_structured(value: Any, returns: Any) -> None:
    box = box_giving(value, returns)
    assert (await box.tool_list()).specs[0].output_schema is not None
    assert (await box.call("give", {})).structured == value


@pytest.mark.parametrize("wrap", [dict, Json])
async def test_json_is_not_beyond_the_caps_and_never_cut_into_nonsense(wrap: Any) -> None:
    result = await box_giving(wrap({"rows": list(range(20_000))})).call("give", {})
    assert result.code == "output_too_large"


async def test_the_operator_hears_of_a_misfit_as_an_event() -> None:
    box = box_giving("hot", int)
    log = box.events()
    await box.call("give", {})
    box.unsubscribe(log)
    events = [event async for event in log]
    told = [e.problem for e in events if isinstance(e, CallFinished)] + [
        e.message for e in events if isinstance(e, Notice)
    ]
    assert any(told)


async def test_an_object_is_closed_once_even_if_its_stream_is_discarded_after_the_refusal() -> None:
    """`try: prepare(...) finally: stream.discard()` is what a careful caller writes."""
    closed: list[str] = []

    class Params(BaseModel):
        text: str

    class Partial(Tool[Params, str], name="partial", effect=READ, secrets=()):
        def on_partial(self, partial: Any, ctx: Context) -> None: ...

        async def execute(self, params: Params, ctx: Context) -> str:
            return ""

        async def aclose(self) -> None:
            closed.append("closed")

    box = Toolbox([Partial])
    key = CallKey("run", 1, 0)
    for arguments in ('{"text": [1]}', '{"text": "a"}'):
        closed.clear()
        stream = await box.open_call("partial", key)
        stream.feed(arguments)
        prepared = await box.prepare(ToolCall("partial", arguments), key=key, stream=stream)
        await box.execute(prepared)
        await stream.discard()
        assert closed == ["closed"]


@pytest.mark.parametrize(
    "change",
    [
        {"call": {"name": ["look"]}},
        {"call": {"name": "look", "id": {}}},
        {"call": {"name": "look", "arguments": 5}},
        {"call": {"name": "look", "problem": ["x"]}},
        {"kind": "refused", "result": "a text"},
        {"kind": "refused", "result": {"parts": ["a text"]}},
        {"key": ["r", 0, float("inf")]},
    ],
)
async def test_a_saved_call_that_was_tampered_with_is_a_value_error(change: dict[str, Any]) -> None:
    box: Toolbox = Toolbox()
    saved = {"format": 1, "kind": "ready", "key": ["r", 0, 0], "call": {"name": "look"}, "fingerprint": ""}
    with pytest.raises(ValueError, match="not whole"):
        await box.restore({**saved, **change})
