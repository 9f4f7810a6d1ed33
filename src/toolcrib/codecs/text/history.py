"""A conversation for a model that only writes text: earlier calls and their results become text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from toolcrib.call import ToolCall
from toolcrib.codecs.pairing import Answered, ConversationStep, IdRule, arrange
from toolcrib.codecs.text.escaping import escape_markers
from toolcrib.codecs.text.form import Form, ResultText
from toolcrib.content import Media, Text
from toolcrib.messages import Message, MessagePart, Reasoning

__all__ = ["conversation_as_text", "system_with"]

UNREADABLE = (
    "What you wrote as a call could not be read: {}. Nothing was run. Write it again in the form for calls."
)
ANY_ID = IdRule(re.compile(r"[\w.:-]{1,64}", re.ASCII))


def system_with(messages: list[Message], section: str) -> list[Message]:
    """The conversation with a section at the end of its system prompt; adds a system prompt where there is none."""
    if messages and messages[0].role == "system":
        first = messages[0]
        parts = [*first.parts, Text(f"\n\n{section}" if first.parts else section)]
        return [replace(first, parts=_merged(parts)), *messages[1:]]
    return [Message.system(section), *messages]


def conversation_as_text(
    messages: Iterable[Message],
    format: Form,
    names: dict[str, str],
    provider: str,
    tools: Iterable[str] = (),
) -> list[Message]:
    """The conversation with calls and results written as text; `tools` are the names of the tools.

    The results of a turn become the user's text, before what the user said next.
    """
    reserved = format.reserved_with(tools)
    steps = arrange(messages, ANY_ID)
    last_user = max((at for at, step in enumerate(steps) if step.message.role == "user"), default=-1)
    texts_only: list[Message] = []
    for at, step in enumerate(steps):
        if step.message.role == "assistant":
            texts_only.append(_assistant(step, format, names, provider, recent=at > last_user))
            if step.answers:
                texts_only.append(_results(step.answers, format, names, reserved))
        elif step.message.role == "system":
            texts_only.append(replace(step.message, parts=step.parts))
        elif texts_only and texts_only[-1].role == "user" and at and steps[at - 1].answers:
            texts_only[-1].parts = _merged([*texts_only[-1].parts, Text("\n\n"), *step.parts])
        else:
            texts_only.append(Message("user", step.parts, step.message.extras))
    return texts_only


def _assistant(
    step: ConversationStep, format: Form, names: dict[str, str], provider: str, recent: bool
) -> Message:
    """A message of the model, its calls written in the format."""
    parts: list[MessagePart] = []
    for part in step.parts:
        if isinstance(part, Reasoning) and provider not in part.extras and format.thinking and recent:
            before, after = format.thinking
            parts.append(Text(f"{before}{part.text}{after}"))
        elif not isinstance(part, ToolCall):
            parts.append(part)
    calls = [
        ToolCall(names.get(answer.call.name, answer.call.name), answer.call.arguments, answer.id)
        for answer in step.answers
        if answer.call.name
    ]
    nameless = [str(answer.call.arguments) for answer in step.answers if not answer.call.name]
    text = "\n".join([*nameless, format.write_calls(calls)] if calls else nameless)
    if text:
        spoken = any(isinstance(part, Text) and part.text for part in parts)
        parts.append(Text(f"\n{text}" if spoken else text))
    return Message("assistant", _merged(parts), step.message.extras)


def _results(
    answers: list[Answered], format: Form, names: dict[str, str], reserved: tuple[str, ...]
) -> Message:
    texts: list[str] = []
    media: list[MessagePart] = []
    for answer in answers:
        name = names.get(answer.call.name, answer.call.name)
        unreadable = answer.call.problem and not answer.call.name
        text = UNREADABLE.format(answer.call.problem) if unreadable else escape_markers(answer.text, reserved)
        texts.append(format.write_result(ResultText(name, answer.id, text, answer.is_error)))
        shown = [part for part in answer.result.parts if isinstance(part, Media)]
        if shown:
            media += [Text(f"From the result of {name}:"), *shown]
    return Message("user", [Text("\n".join(texts)), *media])


def _merged(parts: list[MessagePart]) -> list[MessagePart]:
    """Joins neighbouring texts, because base codecs would join them in different ways."""
    merged: list[MessagePart] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, Text) and isinstance(last, Text) and not part.extras and not last.extras:
            merged[-1] = Text(last.text + part.text)
        else:
            merged.append(part)
    return merged
