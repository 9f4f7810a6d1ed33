"""`decide`: typed questions about a context, answered by a decision model or by a chat model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.decisions.model import DecisionModel, resolve_decision_model
from toolcrib.decisions.questions import DecisionQuestion, Decisions
from toolcrib.decisions.wire import Context
from toolcrib.models.model import Model

__all__ = ["decide", "decide_sync"]


async def decide(
    model: DecisionModel | Model | str, context: Context, questions: Mapping[str, DecisionQuestion]
) -> Decisions:
    """Answers typed questions about a context, each with probabilities.

    A decision model (`DecisionModel`, or a name such as "openai-decisions:gpt-6-luna", "gemini-decisions:NAME",
    "typesafe:NAME", "openrouter-decisions:NAME", "systemone:NAME" for Ollama, llama.cpp and vLLM) answers all in one
    request, and its probabilities are calibrated. Any other model is asked each question by itself, as a choice between
    labels: the probabilities are those of the tokens, not calibrated, and none where its server gives no
    log-probabilities. Each answer says which it is (`calibrated`).

    `context` is a text, a conversation, or data that JSON can hold. Raises ModelError if a decision model cannot be
    asked, and ValueError for questions that its server does not take; a single question without an answer has a
    `problem`, and so has every question that a chat model did not answer.

    >>> import asyncio
    >>> from toolcrib.decisions import ChoiceQuestion
    >>> from toolcrib.models import Scripted
    >>> team = ChoiceQuestion("Which team answers?", {"billing": "money", "support": "all else"})
    >>> asyncio.run(decide(Scripted(["billing"]), "You charged me twice.", {"team": team}))["team"].value
    'billing'
    """
    if not isinstance(model, str):
        return await _asked(model, context, questions)
    from toolcrib.models import resolve_model

    made: Any = resolve_decision_model(model) or resolve_model(model)
    try:
        return await _asked(made, context, questions)
    finally:
        if (closing := getattr(made, "aclose", None)) is not None:
            await closing()


async def _asked(
    model: DecisionModel | Model, context: Context, questions: Mapping[str, DecisionQuestion]
) -> Decisions:
    if isinstance(model, DecisionModel):
        return await model.decide(context, questions)
    from toolcrib.decisions.from_chat import decide_by_chat

    return await decide_by_chat(model, context, questions)


def decide_sync(
    model: DecisionModel | Model | str, context: Context, questions: Mapping[str, DecisionQuestion]
) -> Decisions:
    """`decide`, for code without an event loop; RuntimeError where one is running."""
    from toolcrib.extraction.extract import run_sync

    made: Decisions = run_sync(decide(model, context, questions))
    return made
