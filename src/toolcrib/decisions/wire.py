"""The formats of decision models as pure functions: a row each, which writes a request and reads an answer.

`openai` is OpenAI's /v1/decisions (also of Fireworks and LiteLLM), `gemini` Google's, and `systemone` the open
/v1/systemone, which TypeSafe began and Ollama, llama.cpp, vLLM, OpenRouter and others serve. Shapes are those of the
SDKs `openai` 3.54 and `google-genai` 3.4, and of Ollama's documentation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
from toolcrib.codecs.wire_json import LARGEST, as_count, as_money
from toolcrib.content import Image
from toolcrib.dataclass import dataclass
from toolcrib.decisions.questions import (
    ChoiceQuestion,
    DecisionAnswer,
    DecisionQuestion,
    Decisions,
    Predicate,
    ScoreQuestion,
)
from toolcrib.messages import Message, Request, Usage

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Context = str | Sequence[Message] | Mapping[str, Any] | Sequence[str]
UNANSWERED = "the model gave no answer to this question"
REFUSED = "the model declined to answer this question"
UNREADABLE = "the model's answer to this question cannot be read"


@dataclass(frozen=True, slots=True)
class DecisionFormat:
    """One format. `path` follows the base URL; `most` is how many options or levels a question may have."""

    path: str
    body: Callable[[str, Context, Mapping[str, DecisionQuestion]], dict[str, Any]]
    answers: Callable[[Mapping[str, Any], Mapping[str, DecisionQuestion]], dict[str, Any]]
    most_options: int
    most_levels: int


def read_decisions(
    form: DecisionFormat, body: Mapping[str, Any], questions: Mapping[str, DecisionQuestion]
) -> Decisions:
    """The answers in a server's body. An answer that is missing or cannot be right has a `problem`. Raises nothing."""
    found = form.answers(body, questions)
    read = {name: _answer(found.get(name), question) for name, question in questions.items()}
    return Decisions(read, str(body.get("model") or ""), _usage(body.get("usage")))


def _answer(given: Any, question: DecisionQuestion) -> DecisionAnswer:
    if not isinstance(given, Mapping):
        return DecisionAnswer(None, problem=UNANSWERED)
    if given.get("type") == "refusal":
        return DecisionAnswer(None, problem=REFUSED)
    if isinstance(question, Predicate):
        number = _probability(given.get("probability", given.get("noul")))
        if number is None:
            return DecisionAnswer(None, problem=UNREADABLE)
        return DecisionAnswer(number >= 0.5, {"true": number, "false": 1 - number}, calibrated=True)
    names = list(question.options) if isinstance(question, ChoiceQuestion) else list(question.levels)
    found = _probabilities(given.get("probabilities"), question)
    if found is None or not found.keys() <= {*names}:
        return DecisionAnswer(None, problem=UNREADABLE)
    if isinstance(question, ScoreQuestion):
        score = given.get("score")
        if not _is_number(score) or not 0 <= score <= len(names) - 1:
            return DecisionAnswer(None, problem=UNREADABLE)
        return DecisionAnswer(float(score), {name: found.get(name, 0.0) for name in names}, calibrated=True)
    chosen = given.get("choice")
    if not isinstance(chosen, str) or chosen not in question.options:
        return DecisionAnswer(None, problem=UNREADABLE)
    return DecisionAnswer(chosen, {name: found.get(name, 0.0) for name in names}, calibrated=True)


def _probabilities(given: Any, question: ChoiceQuestion | ScoreQuestion) -> dict[str, float] | None:
    """{option or level: probability}, of a list of objects or of an object; levels may be named by their number."""
    if isinstance(given, Mapping):
        pairs: Iterable[tuple[Any, Any]] = given.items()
    elif isinstance(given, list) and all(isinstance(one, Mapping) for one in given):
        named = "label" if isinstance(question, ScoreQuestion) else "value"
        pairs = [(one.get(named), one.get("probability")) for one in given]
    else:
        return None
    found: dict[str, float] = {}
    for name, value in pairs:
        number = _probability(value)
        if number is None:
            return None
        if isinstance(question, ScoreQuestion) and name not in question.levels:
            name = dict(zip(map(str, range(len(question.levels))), question.levels, strict=True)).get(
                str(name), name
            )
        found[str(name)] = number
    return found


def _is_number(value: Any) -> TypeIs[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST < value < LARGEST


def _probability(value: Any) -> float | None:
    return float(value) if _is_number(value) and 0 <= value <= 1 else None


def _usage(given: Any) -> Usage:
    data = given if isinstance(given, Mapping) else {}

    def count(*names: str) -> int:
        return next((value for name in names if (value := as_count(data.get(name)))), 0)

    details = data.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    return Usage(
        count("input_tokens", "total_input_tokens"),
        count("output_tokens", "total_output_tokens"),
        cache_read_tokens=as_count(cached),
        cost=as_money(data.get("cost")),
    )


# What is asked about.


def as_messages(context: Context) -> list[Message] | None:
    """The context if it is a conversation; None for a text or data."""
    if isinstance(context, Sequence) and not isinstance(context, str) and context:
        messages = [one for one in context if isinstance(one, Message)]
        return messages if len(messages) == len(context) else None
    return None


def as_text(context: Context) -> str:
    """The context as one text; a conversation with the role before each message. Raises TypeError for pictures."""
    if isinstance(context, str):
        return context
    messages = as_messages(context)
    if messages is None:
        return json.dumps(context, ensure_ascii=False)
    if any(isinstance(part, Image) for message in messages for part in message.parts):
        raise TypeError("this server decides on texts only: leave the pictures out of the messages")
    return "\n\n".join(f"{message.role}: {message.text}" for message in messages)


# OpenAI.


def _openai_body(model: str, context: Context, questions: Mapping[str, DecisionQuestion]) -> dict[str, Any]:
    messages = as_messages(context)
    given: Any = as_text(context) if messages is None else _openai_input(messages)
    asked = [{"name": name, **_openai_question(question)} for name, question in questions.items()]
    return {"model": model, "input": given, "questions": asked}


def _openai_input(messages: list[Message]) -> list[Any]:
    body = OpenAIResponsesCodec("openai").request(Request(messages), model="", stream=False)
    first = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    return [*first, *(item for item in body["input"] if item.get("type") != "reasoning")]


def _openai_question(question: DecisionQuestion) -> dict[str, Any]:
    if isinstance(question, Predicate):
        return {"type": "predicate", "instructions": _with_sides(question)}
    if isinstance(question, ChoiceQuestion):
        choices = [{"value": name, **_described(text)} for name, text in question.options.items()]
        return {"type": "choice", "instructions": question.question, "choices": choices}
    return {
        "type": "score",
        "instructions": question.question,
        "levels": [{"label": level} for level in question.levels],
    }


def _described(text: str) -> dict[str, str]:
    return {"description": text} if text else {}


def _with_sides(question: Predicate) -> str:
    sides = (("True", question.when_true), ("False", question.when_false))
    return "\n".join([question.statement, *(f"{side}: {words}" for side, words in sides if words)])


def _openai_answers(body: Mapping[str, Any], questions: Mapping[str, DecisionQuestion]) -> dict[str, Any]:
    given = body.get("answers")
    answers = given if isinstance(given, list) else []
    # Answers come in the order of the questions; a name that is given must be that of its question.
    return {
        name: answer
        for name, answer in zip(questions, answers, strict=False)
        if isinstance(answer, Mapping) and answer.get("name") in (None, name)
    }


# Gemini and System One, which differ in what holds the context.


def _named_question(question: DecisionQuestion) -> dict[str, Any]:
    if isinstance(question, Predicate):
        sides = {"true": question.when_true, "false": question.when_false}
        criteria = {side: words for side, words in sides.items() if words}
        return {
            "type": "noul",
            "instructions": question.statement,
            **({"criteria": criteria} if criteria else {}),
        }
    if isinstance(question, ChoiceQuestion):
        return {"type": "choice", "instructions": question.question, "criteria": dict(question.options)}
    return {"type": "score", "instructions": question.question, "criteria": list(question.levels)}


def _gemini_body(model: str, context: Context, questions: Mapping[str, DecisionQuestion]) -> dict[str, Any]:
    asked = {name: _named_question(question) for name, question in questions.items()}
    name = model if model.startswith("models/") else f"models/{model}"
    return {"model": name, "input": as_text(context), "questions": asked}


def _systemone_body(
    model: str, context: Context, questions: Mapping[str, DecisionQuestion]
) -> dict[str, Any]:
    asked = {name: _named_question(question) for name, question in questions.items()}
    plain = not isinstance(context, str) and as_messages(context) is None
    return {"model": model, "state": context if plain else as_text(context), "questions": asked}


def _named_answers(body: Mapping[str, Any], questions: Mapping[str, DecisionQuestion]) -> dict[str, Any]:
    given = body.get("answers")
    return dict(given) if isinstance(given, Mapping) else {}


FORMATS: dict[str, DecisionFormat] = {
    "openai": DecisionFormat("/decisions", _openai_body, _openai_answers, 255, 255),
    "gemini": DecisionFormat("/decisions", _gemini_body, _named_answers, 255, 255),
    "systemone": DecisionFormat("/systemone", _systemone_body, _named_answers, 255, 10),
}
