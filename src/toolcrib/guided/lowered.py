"""A constraint as one server is sent it: the fields, what they guarantee, and how an answer is read and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from toolcrib.dataclass import dataclass, field
from toolcrib.guided.checking import check
from toolcrib.guided.reading import AnswerValue, Sent, read_answer
from toolcrib.merged_fields import merged

if TYPE_CHECKING:
    from toolcrib.errors import FieldError
    from toolcrib.messages import Message, Response
    from toolcrib.schema.canonical import Loss

__all__ = ["Guarantee", "Lowered", "RungName"]

Guarantee = Literal["enforced", "enforced in part", "JSON only", "biased", "prompted"]
"""What a server promises of an answer, the most first."""
RungName = Literal["native", "strict tool", "forced tool", "JSON mode", "bias", "text"]
"""A way of sending a constraint to a server, the best first."""


def _nothing(_rung: RungName, _blockers: tuple[str, ...]) -> None:
    """No rung below."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A constraint in the words of one server.

    `fields` are merged into the request's body. `guarantee` never says more than the server promises:

    - "enforced": the server writes nothing else, as long as the answer is complete
    - "enforced in part": as above, except for what `losses` list
    - "JSON only": some JSON, of any shape
    - "biased": the options are likelier
    - "prompted": the model was asked to

    `losses` have a JSON pointer into the constraint's schema and the keyword that the server does not hold to.
    `blockers` say why no better rung was taken. `prompt` is what the model must be told, because the fields do not say
    it; "" if nothing. `tool` is the tool whose arguments are the answer, if it comes as a call. `not_with` names what
    the server refuses or ignores beside these fields: "tools", "thinking", "prefill", "citations", "streaming".
    """

    target: str
    constraint: Any
    rung: RungName
    fields: Mapping[str, Any]
    guarantee: Guarantee
    losses: tuple[Loss, ...] = ()
    blockers: tuple[str, ...] = ()
    prompt: str = ""
    tool: str = ""
    not_with: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    """The JSON Schema that the server is sent, if it is sent one."""
    wrapped: bool = field(default=False, repr=False)
    """Whether the value is the field `value` of an object, because the server takes no other root."""
    below: Callable[[RungName, tuple[str, ...]], Lowered | None] = field(
        default=_nothing, repr=False, compare=False
    )

    def into(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request's body with the fields in it, object by object; tools are added to those of the body."""
        return merged(body, self.fields)

    def parse(self, answer: str | Message | Response) -> AnswerValue:
        """The value that a whole answer says: repaired where there is one reading, unwrapped, optional nulls left out.

        `answer` is its text, or the message with the call of `tool`. `Unusable` where there is no single reading.
        """
        is_json = self.schema is not None or self.rung == "JSON mode"
        exact = self.guarantee == "enforced" and self.rung == "native"
        sent = Sent(is_json, self.wrapped, exact=exact, begins_only=self.rung == "bias", tool=self.tool)
        return read_answer(self.constraint, sent, answer)

    def validate(self, value: Any) -> tuple[FieldError, ...]:
        """What is wrong with a value, by the constraint as it was given; empty if nothing."""
        return check(self.constraint, value)

    def next_rung(self, reason: str = "") -> Lowered | None:
        """The next lower rung, after the server has refused this one with `reason`; None below the last."""
        said = f"{self.rung}: {reason or 'refused by the server'}"
        return self.below(self.rung, (*self.blockers, said))
