"""Reads the value out of an answer: repaired where there is one reading, unwrapped, optional nulls left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import dataclass
from toolcrib.guided.constraints import Choice, Constraint, Grammar, Regex, Tags, ToolCalls
from toolcrib.guided.json_schema import JsonSchema
from toolcrib.guided.roots import FIELD, needs_wrapper, wrapped
from toolcrib.messages import Message, Response
from toolcrib.repair import Edit

if TYPE_CHECKING:
    from toolcrib.call import ToolCall

__all__ = ["AnswerValue", "Sent", "Unusable", "read_answer"]

FENCE = "```"
WORDS = (
    ("The arguments", "The answer"),
    ("the arguments", "the answer"),
    ("The answer hold ", "The answer holds "),
    ("The answer end ", "The answer ends "),
    ("The answer are ", "The answer is "),
    ("The answer have ", "The answer has "),
    ("The answer mix ", "The answer mixes "),
    ("The answer stand ", "The answer stands "),
    ("before they are", "before it is"),
    ("Send the whole call again", "Send the whole answer again"),
    ("Send one JSON object a call", "Answer with one JSON value"),
    ("Send one JSON object", "Answer with one JSON value"),
)
Fits = Callable[[Any], bool]


class Unusable(ValueError):
    """An answer that has no single reading as a value; the message is a sentence for the model."""


@dataclass(frozen=True, slots=True)
class AnswerValue:
    """What an answer says, not yet validated, and what reading it changed."""

    value: Any
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """How the answer of a constraint was asked for: as JSON, wrapped in an object, as a call of a tool; `exact` says
    that the server writes nothing else, `begins_only` that it writes the beginning alone.
    """

    is_json: bool
    wrapped: bool
    exact: bool
    begins_only: bool
    tool: str


def read_answer(constraint: Constraint, sent: Sent, answer: str | Message | Response) -> AnswerValue:
    """The value of an answer; `Unusable` where there is no one reading."""
    written = _written(sent.tool, answer)
    if isinstance(constraint, JsonSchema):
        return _json(written, constraint.schema, sent.wrapped, constraint.fits)
    if isinstance(constraint, ToolCalls):
        from toolcrib.guided.merged import merged_schema

        return _json(written, merged_schema(constraint), sent.wrapped, None)
    if sent.is_json:
        return _in_words(_json(written, {"type": "string"}, sent.wrapped, _is_text), constraint)
    text = written if isinstance(written, str) else ""
    if isinstance(constraint, Tags) or sent.exact:
        return AnswerValue(text)
    if isinstance(constraint, Choice):
        return _choice(text, constraint, begins_only=sent.begins_only)
    return _bare(text, constraint)


def _in_words(answer: AnswerValue, constraint: Constraint) -> AnswerValue:
    """The option that a number stands for, which a model wrote instead of a text."""
    if (
        isinstance(constraint, Choice)
        and isinstance(answer.value, int | float)
        and str(answer.value) in constraint.options
    ):
        text = str(answer.value)
        return AnswerValue(text, (*answer.edits, Edit("", "json_text", answer.value, text)))
    return answer


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _written(tool: str, answer: str | Message | Response) -> Any:
    """What the model wrote as its answer: text, or the arguments of the call of the tool."""
    if isinstance(answer, str):
        return answer
    message: Any = answer.message if isinstance(answer, Response) else answer
    if not isinstance(message, Message):
        raise TypeError(
            f"parse: expected the answer's text, a Message or a Response, got {type(message).__name__}"
        )
    if not tool:
        return message.text
    calls: list[ToolCall] = [call for call in message.calls if call.name == tool]
    if len(calls) == 1:
        return calls[0].arguments
    if not calls and message.text:  # a forced call that a server did not force: the text may say the value
        return message.text
    raise Unusable(f"Expected one call of the tool {tool}, got {len(calls) or 'none'}.")


def _json(written: Any, schema: Mapping[str, Any], is_wrapped: bool, fits: Fits | None) -> AnswerValue:
    """The JSON value of an answer, repaired against the schema."""
    from toolcrib.repair import Unrepairable, repair

    if isinstance(written, str) and not written.strip():
        raise Unusable("The answer is empty. Answer with one JSON value.")
    if not is_wrapped and not needs_wrapper(schema):
        done = repair(written, schema, accepts=fits)
        if isinstance(done, Unrepairable):
            raise Unusable(_about_answer(done.reason))
        return AnswerValue(done.value, done.edits)
    value, edits = _read(written)
    if isinstance(value, dict) and FIELD in value and (is_wrapped or not (fits and fits(value))):
        value = value[FIELD]
    # Repairs name the field that they change, so a value with another root is repaired as the field of an object.
    around = wrapped(schema) if needs_wrapper(schema) else {"type": "object", "properties": {FIELD: schema}}

    def accepts(given: Any) -> bool:
        return fits is not None and isinstance(given, dict) and fits(given.get(FIELD))

    done = repair({FIELD: value}, around, accepts=accepts)
    if isinstance(done, Unrepairable):
        raise Unusable(_about_answer(done.reason))
    return AnswerValue(done.value.get(FIELD), (*edits, *done.edits))


def _read(written: Any) -> tuple[Any, tuple[Edit, ...]]:
    """The one JSON value in a text, and what reading it took; a value that a provider parsed as it is."""
    from toolcrib.json_text.lenient_grammar import Unreadable
    from toolcrib.json_text.lenient_reader import read_json

    if not isinstance(written, str):
        return written, ()
    try:
        reading = read_json(written)
    except Unreadable as problem:
        raise Unusable(_about_answer(str(problem))) from None
    return reading.value, tuple(Edit("", fix.kind, fix.before, fix.after) for fix in reading.fixes)


def _about_answer(reason: str) -> str:
    """A sentence about the arguments of a call, as one about an answer."""
    for words, others in WORDS:
        reason = reason.replace(words, others)
    return reason


def _choice(text: str, constraint: Choice, *, begins_only: bool) -> AnswerValue:
    """The option that a text names; with `begins_only`, the only one that begins with it."""
    if text in constraint.options:
        return AnswerValue(text)
    plain = _bare_text(text)
    for fold in (str, str.casefold):
        found = [option for option in constraint.options if fold(option) == fold(plain)]
        if len(found) == 1:
            return AnswerValue(found[0], (Edit("", "enum_case", text, found[0]),))
    if begins_only and text.strip():
        found = [option for option in constraint.options if option.startswith(text.strip())]
        if len(found) == 1:
            return AnswerValue(found[0])
    return AnswerValue(text)


def _bare(text: str, constraint: Regex | Grammar) -> AnswerValue:
    """The text, without the space and the fence that a model that was only asked puts around it."""
    from toolcrib.guided.checking import check

    if check(constraint, text):
        plain = _bare_text(text)
        if not check(constraint, plain):
            return AnswerValue(plain, (Edit("", "prose", text, plain),))
    return AnswerValue(text)


def _bare_text(text: str) -> str:
    """A text without space, fence, quotes or full stop around it."""
    plain = text.strip()
    if plain.startswith(FENCE) and plain.endswith(FENCE) and "\n" in plain:
        plain = plain.partition("\n")[2].removesuffix(FENCE).strip()
    for mark in ('"', "'", "`", "**"):
        if len(plain) > 2 * len(mark) and plain.startswith(mark) and plain.endswith(mark):
            return plain[len(mark) : -len(mark)]
    return plain
