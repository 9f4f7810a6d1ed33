"""Every recorded conversation, cut at random and with orphans, goes on with every provider: each body is legal."""

from __future__ import annotations

import json
import random
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cassettes import cassettes
from tests.conformance.test_cassettes_agent import APIS
from tests.legal_bodies import CHECKERS
from tests.test_codec_journeys import ROUTES, SPECS, body_for
from toolcrib.agent import TranscriptFile, scan_transcript
from toolcrib.call import ToolCall
from toolcrib.mending import mend
from toolcrib.messages import (
    Message,
    Request,
    ResultPart,
    messages_from_json,
    messages_to_json,
)
from toolcrib.models import ModelError, Replay
from toolcrib.result import ToolResult

DAMAGES = 4  # ways in which each conversation is damaged


async def recorded(group: list[dict[str, Any]]) -> list[Message]:
    """The conversation of a recording, with a result for each call."""
    model, messages = Replay(group), [Message.system("Be brief."), Message.user("go on")]
    for _ in group:
        try:
            answer = (await model.respond(Request(messages))).message
        except ModelError:
            continue
        messages.append(answer)
        told = [ResultPart(call, ToolResult.of(f"the result of {call.name}")) for call in answer.calls]
        messages.append(Message("tool", [*told]) if told else Message.user("and then?"))
    return messages


def damaged(messages: list[Message], dice: random.Random) -> list[Message]:
    """The conversation with messages and parts that are lost, twice, elsewhere, or somebody else's."""
    copies = [Message(message.role, list(message.parts), message.extras) for message in messages]
    if dice.random() < 0.3:
        copies = messages_from_json(json.loads(json.dumps(messages_to_json(copies), default=str)))
    for _ in range(dice.randint(1, 4)):
        if not copies:
            break
        at = dice.randrange(len(copies))
        message = copies[at]
        kind = dice.randrange(9)
        if kind == 0:
            del copies[at:]
        elif kind == 1:
            del copies[:at]
        elif kind == 2:
            del copies[at]
        elif kind == 3:
            copies.insert(dice.randrange(len(copies) + 1), copy(message))
        elif kind == 4:
            copies.insert(dice.randrange(len(copies)), copies.pop(at))
        elif kind == 5 and message.parts:
            parts = list(message.parts)
            del parts[dice.randrange(len(parts))]
            copies[at] = replace(message, parts=parts)
        elif kind == 6 and message.parts:
            other = dice.choice(copies)
            if other is not message:
                *rest, moved = message.parts
                place = dice.randint(0, len(other.parts))
                there = next(index for index, one in enumerate(copies) if one is other)
                copies[there] = replace(other, parts=[*other.parts[:place], moved, *other.parts[place:]])
                copies[at] = replace(message, parts=rest)
        elif kind == 7:
            orphan = ResultPart(
                ToolCall("lost", "{}", dice.choice(["", "call_1", "é"])), ToolResult.of("found")
            )
            copies.insert(at, Message("tool", [orphan]))
        else:
            for call in message.calls:
                call = replace(call, id=dice.choice(["", "same"]))
                parts = [
                    call if isinstance(part, ToolCall) and part.name == call.name else part
                    for part in copies[at].parts
                ]
                copies[at] = replace(message, parts=parts)
    return copies


def words(messages: list[Message]) -> set[str]:
    """What may not be lost: texts, calls, and results."""
    parts: list[Any] = [part for message in messages for part in message.parts]
    parts += [part for message in messages for result in message.results for part in result.parts]
    return {
        part.name if isinstance(part, ToolCall) else str(getattr(part, "text", part))
        for part in parts
        if not isinstance(part, ResultPart)
    }


@pytest.mark.parametrize("api", APIS)
async def test_any_recorded_conversation_goes_on_after_any_damage(api: str, tmp_path: Path) -> None:
    dice = random.Random(api)
    failures: list[str] = []
    for number, group in enumerate(cassettes(api)):
        messages = await recorded(group)
        assert mend(messages) == (messages, [])
        path = tmp_path / f"{number}.jsonl"
        file = TranscriptFile(path)
        file.conversation(messages)
        file.close()
        whole = path.read_bytes()
        path.write_bytes(whole[: dice.randrange(len(whole))])
        broken = [scan_transcript(path).mended, *(damaged(messages, dice) for _ in range(DAMAGES))]
        for conversation in broken:
            mended, _ = mend(conversation)
            assert mend(mended)[0] is mended
            assert words(conversation) <= words(mended)
            for route in ROUTES:
                try:
                    CHECKERS[route](
                        body_for(route, [*conversation, Message.user("And now?")], dice.choice([[], SPECS]))
                    )
                except Exception as problem:
                    failures.append(
                        f"{group[0]['id']} with {route}: {type(problem).__name__} {problem!r:.200}"
                    )
    assert failures == []
