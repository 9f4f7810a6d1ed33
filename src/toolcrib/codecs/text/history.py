"""A conversation for a model that only writes text: earlier calls and their results become text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from toolcrib.call import ToolCall
from toolcrib.codecs.pairing import Answered, ConversationStep, IdRule
from toolcrib.codecs.text.escaping import escape_markers
from toolcrib.codecs.text.form import Form, ResultText
from toolcrib.content import Media, Text
from toolcrib.dataclass import replace
from toolcrib.messages import Message, MessagePart, Reasoning

__all__ = ["TextWriter", "system_with"]

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


class TextWriter:
    """A conversation with calls and results written as text.

    The results of a turn become the user's text, before what the user said next. The model's thinking is shown until
    the user speaks again.
    """

    def __init__(self, format: Form, names: dict[str, str], provider: str, reserved: tuple[str, ...]) -> None:
        self.wire: list[Message] = []
        self._format = format
        self._names = names
        self._provider = provider
        self._reserved = reserved
        self._thinking: list[tuple[int, ConversationStep]] = []  # messages in which thinking is shown
        self._after_results = False

    def add(self, step: ConversationStep) -> None:
        role = step.message.role
        if role == "assistant":
            if self._format.thinking and any(map(self._is_shown, step.parts)):
                self._thinking.append((len(self.wire), step))
            self.wire.append(self._assistant(step, recent=True))
            if step.answers:
                self.wire.append(_results(step.answers, self._format, self._names, self._reserved))
        elif role == "system":
            self.wire.append(step.message)
        else:
            for index, thought in self._thinking:
                self.wire[index] = self._assistant(thought, recent=False)
            self._thinking = []
            if self._after_results:
                before = self.wire[-1]
                self.wire[-1] = replace(before, parts=_merged([*before.parts, Text("\n\n"), *step.parts]))
            else:
                self.wire.append(Message("user", step.parts, step.message.extras))
        self._after_results = bool(step.answers)

    def _is_shown(self, part: MessagePart) -> bool:
        return isinstance(part, Reasoning) and self._provider not in part.extras

    def _assistant(self, step: ConversationStep, *, recent: bool) -> Message:
        return _assistant(step, self._format, self._names, self._is_shown if recent else lambda part: False)


def _assistant(
    step: ConversationStep, format: Form, names: dict[str, str], is_shown: Callable[[MessagePart], bool]
) -> Message:
    """A message of the model, its calls written in the format."""
    parts: list[MessagePart] = []
    for part in step.parts:
        if isinstance(part, Reasoning) and format.thinking and is_shown(part):
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


def _merged(parts: Iterable[MessagePart]) -> list[MessagePart]:
    """Joins neighbouring texts, because base codecs would join them in different ways."""
    merged: list[MessagePart] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, Text) and isinstance(last, Text) and not part.extras and not last.extras:
            merged[-1] = Text(last.text + part.text)
        else:
            merged.append(part)
    return merged
