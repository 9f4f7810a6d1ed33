"""The instructions of a run: the system message at the head of its conversation.

One rule: the agent's own instructions count, and are asked for once a turn. Where a conversation goes on that had
instructions, they are replaced. An agent without instructions leaves what was there.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from itertools import takewhile
from typing import Any

from toolcrib.agent.settings import AgentSettings
from toolcrib.messages import Message
from toolcrib.toolbox import Toolbox
from toolcrib.toolbox.foreign import ForeignCall

__all__ = ["RunInstructions"]


class RunInstructions:
    """The system messages at the head of one run's conversation, as they are in each of its turns."""

    def __init__(self, settings: AgentSettings, toolbox: Toolbox[Any], messages: list[Message]) -> None:
        self._settings = settings
        self._toolbox = toolbox
        self._found = list(takewhile(lambda message: message.role == "system", messages))
        self._head = self._found
        self.form: Callable[[], str] = str  # says how a typed answer is written, where the request does not
        self._form = ""

    @property
    def may_change(self) -> bool:
        """Whether the instructions of the next turn may be others."""
        return callable(self._settings.instructions) or self._settings.stats_hint or self.lack_form

    @property
    def lack_form(self) -> bool:
        """Whether the form in which the model has to answer is another than the instructions describe."""
        return self.form() != self._form

    @property
    def are_new(self) -> bool:
        """Whether the instructions differ from those that the conversation had before the run."""
        return self._head != self._found

    async def place(self, messages: list[Message]) -> list[Message]:
        """Put the instructions, as they are now, at the head of the conversation. Returns the messages there."""
        given: Any = self._settings.instructions
        text = given() if callable(given) else given
        if isawaitable(text):
            grace = self._toolbox.registry.grace
            text = await ForeignCall(text, None, grace)
        if not isinstance(text, str):
            raise TypeError(f"instructions: expected a text, got {type(text).__name__} {text!r:.80}")
        own = callable(given) or text != ""
        self._form = self.form()
        stats = self._toolbox.stats_hint() if self._settings.stats_hint else ""
        hint = "\n\n".join(part for part in (stats, self._form) if part)
        if own:
            text = "\n\n".join(part for part in (text, hint) if part)
            head = [Message.system(text)] if text else []
        else:
            head = [*self._found, Message.system(hint)] if hint else self._found
        messages[: len(self._head)] = head
        self._head = head
        return head
