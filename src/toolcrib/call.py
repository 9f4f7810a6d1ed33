"""What a model asked for: a call, our own key of it, and the states that a person sees.

The life of one call, as states of its `ToolStatus` (who moves it is in brackets):

| from    | event                                             | to      |
| ------- | ------------------------------------------------- | ------- |
| (none)  | arguments begin to stream, or the call is prepared | WAIT    |
| WAIT    | more arguments, a question, `report` [tool, box]   | WAIT    |
| WAIT    | refused, denied, cancelled [box]                   | ERROR   |
| WAIT    | the answer breaks off: there is no result [box]    | ERROR   |
| WAIT    | execution starts [box]                             | DOING   |
| DOING   | `report`, retry [tool, box]                        | DOING   |
| DOING   | result recorded, not an error [box]                | SUCCESS |
| DOING   | result recorded, an error [box]                    | ERROR   |
| SUCCESS, ERROR | anything                                    | refused |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from toolcrib.dataclass import dataclass
from toolcrib.frozen import EMPTY, from_tuple, quickly_filled

__all__ = ["FORMAT", "CallKey", "CallState", "ToolCall"]

FORMAT = 1  # the version of what is saved as JSON: transcripts, prepared calls, approvals


class CallKey(NamedTuple):
    """Our own identity of a call. The ids of providers are missing, repeated or shared."""

    run: str
    turn: int
    index: int  # type: ignore[assignment] # shadows tuple.index, which a key has no use for

    def __str__(self) -> str:
        return f"{self.run}/{self.turn}/{self.index}"


new_key = from_tuple(CallKey)


@quickly_filled
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it; it never changes.

    `arguments` are unvalidated: a JSON text, or an object from providers that send one. `id` is the provider's
    and may be empty. `extras` are opaque data, by provider name. `problem` says, in words for the model, why
    the call cannot be run (its text broke off, for example); the call is then answered with it.
    """

    name: str
    arguments: str | dict[str, Any] = ""
    id: str = ""
    extras: Mapping[str, Any] = EMPTY
    problem: str = ""


class CallState(StrEnum):
    """The state of a call, as a person is shown it."""

    WAIT = "wait"
    DOING = "doing"
    SUCCESS = "success"
    ERROR = "error"

    @property
    def terminal(self) -> bool:
        """Whether the call has ended."""
        return self in (CallState.SUCCESS, CallState.ERROR)
