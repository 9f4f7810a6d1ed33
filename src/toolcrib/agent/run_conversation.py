"""The conversation of a run as it grows: in memory, and in the transcript file if there is one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolcrib.agent.transcript import TranscriptFile, recorder
from toolcrib.messages import Message, Usage

if TYPE_CHECKING:
    from toolcrib.toolbox.report import Record

__all__ = ["RunConversation"]


class RunConversation:
    """The messages of a run. What is added is written to the transcript file too, which may lack some for a while.

    A message is in the conversation before it is written: a disk may be full.
    """

    def __init__(self, messages: list[Message], file: TranscriptFile | None, masking: Any) -> None:
        self.messages = messages
        self.file = file
        self.unwritten = ""  # why the file lacks something
        # The message in which the run's account notes what is used, and what the file has of that.
        self._noted_in: Message | None = None
        self._usage: Usage | None = None
        if file is not None and masking is not None:
            file.mask = masking.mask_known_values

    def add(self, *messages: Message) -> None:
        """Add messages at the end."""
        self.note_usage()  # up to here
        self.messages += messages
        if self.file is not None:
            for message in messages:
                if message.role == "assistant":
                    self._expect_usage(message)
                self.file.message(message)

    def begin(self, head: list[Message], task: Message, *, goes_on: bool, head_is_new: bool) -> None:
        """Add the task. The head has the instructions, which the file gets where they are new."""
        if self.file is not None:
            if goes_on:
                is_new_file = self.file.catch_up(self.messages)
                if head_is_new and not is_new_file:
                    self.file.head(head)
            else:
                for message in head:
                    self.file.message(message)
        self._expect_usage(task)
        self.add(task)

    def catch_up(self) -> None:
        """Write what the file does not have of a run that goes on with the calls of its last answer."""
        if self.file is not None:
            self._expect_usage(self.messages[-2])
            self.file.catch_up(self.messages)

    def recorder(self) -> Record:
        """Puts the results of a turn's calls in their places, in the last message and in the file."""
        return recorder(self.messages[-1], self.file)

    def note_usage(self) -> None:
        """Write what was used since the last answer, or since the task, if that is more than the file says."""
        if self.file is None or self._noted_in is None or self._noted_in.usage == self._usage:
            return
        self._usage = self._noted_in.usage
        with suppress(Exception):  # the results count, and what ended the turn; the file says what it lacks
            self.file.usage(self._noted_in)

    def _expect_usage(self, message: Message) -> None:
        self._noted_in, self._usage = message, message.usage

    def news(self) -> str:
        """What the file lacks, if that has changed since the last call; else "". It is written later, if possible."""
        problem = "" if self.file is None else self.file.problem
        changed, self.unwritten = problem != self.unwritten, problem
        return f"the transcript: {problem}" if problem and changed else ""
