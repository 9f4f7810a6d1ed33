"""Whole recorded conversations through the agent loop: every answer is played, every call has one result."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import cassettes
from toolcrib import Agent, Effect, tool
from toolcrib.agent import Reason
from toolcrib.messages import Message
from toolcrib.models import Replay
from toolcrib.toolset import ToolLike

APIS = ("chat", "responses", "messages", "generateContent", "converse", "cohere_v2")
ANYTHING = {"type": "object", "properties": {}, "additionalProperties": True}


def conversations(api: str) -> list[Any]:
    return [pytest.param(group, id=f"{api}:{group[0]['id']}") for group in cassettes(api)]


def tools_of(group: list[dict[str, Any]], seen: list[str]) -> list[ToolLike]:
    """A tool for every name that is called, which takes anything."""
    names = {call["name"] for record in group for call in record["expected_tool_calls"]}

    def make(name: str) -> ToolLike:
        def work(params: dict[str, Any]) -> str:
            seen.append(name)
            return f"the result of {name}"

        return tool(work, name=name, description="Does it.", params=ANYTHING, effect=Effect.READ, secrets=())

    return [make(name) for name in sorted(names)]


def check_transcript(messages: list[Message]) -> None:
    """A message with calls is followed by one with a result for each, and by nothing else."""
    for place, message in enumerate(messages):
        if message.role == "assistant" and message.calls:
            after = messages[place + 1]
            assert after.role == "tool"
            assert len(after.results) == len(message.calls)


@each("group", [case for api in APIS for case in conversations(api)])
async def test_a_recorded_conversation_runs_to_its_end(group: list[dict[str, Any]]) -> None:
    seen: list[str] = []
    model = Replay(group)
    agent = Agent(model, tools_of(group, seen), autonomy="full", max_failures=99)
    messages: list[Message] = []
    while model.played < len(group):
        before = model.played
        outcome = await agent.run("go on", messages=messages)
        messages = outcome.messages
        check_transcript(messages)
        assert model.played > before
        last = group[model.played - 1]
        if last["expected_tool_calls"]:  # the recording ends before its last answer
            assert model.played == len(group), outcome.detail
        elif outcome.reason is Reason.MODEL_ERROR:
            assert (last["response"]["status"] or 200) >= 400 or last.get("error"), outcome.detail
        else:
            assert outcome.reason in (Reason.ANSWERED, Reason.REFUSED), outcome.detail
    asked = [call["name"] for record in group for call in record["expected_tool_calls"]]
    made = [call.name for message in messages for call in message.calls]
    assert [name for name in made if name in asked] == asked
    assert sorted(seen) == sorted(asked)
