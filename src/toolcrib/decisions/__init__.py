"""Decisions: typed questions about a text, each answered with a probability, by decision models and by chat models.

`questions.py` says what is asked and answered; `wire.py` has the three formats of decision models as pure functions;
`model.py` sends them; `from_chat.py` asks a chat model instead; `decide.py` chooses between them; `reviewer.py` is a
reviewer of calls that asks a decision model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.decisions.decide import decide, decide_sync
    from toolcrib.decisions.model import DecisionModel, resolve_decision_model
    from toolcrib.decisions.questions import (
        ChoiceQuestion,
        DecisionAnswer,
        DecisionQuestion,
        Decisions,
        Predicate,
        ScoreQuestion,
    )
    from toolcrib.decisions.reviewer import DecisionReviewer

__all__ = [
    "ChoiceQuestion",
    "DecisionAnswer",
    "DecisionModel",
    "DecisionQuestion",
    "DecisionReviewer",
    "Decisions",
    "Predicate",
    "ScoreQuestion",
    "decide",
    "decide_sync",
    "resolve_decision_model",
]

__getattr__ = lazy_names(
    __name__,
    {
        "decide": ("decide", "decide_sync"),
        "model": ("DecisionModel", "resolve_decision_model"),
        "questions": (
            "ChoiceQuestion",
            "DecisionAnswer",
            "DecisionQuestion",
            "Decisions",
            "Predicate",
            "ScoreQuestion",
        ),
        "reviewer": ("DecisionReviewer",),
    },
)
