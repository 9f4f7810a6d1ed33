"""What a decision model is asked, and what it answers: plain data, the same for every server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeAlias

from toolcrib.dataclass import dataclass, field
from toolcrib.messages import Usage

__all__ = ["ChoiceQuestion", "DecisionAnswer", "DecisionQuestion", "Decisions", "Predicate", "ScoreQuestion"]

MOST_OPTIONS = 255  # the most that any server takes


@dataclass(frozen=True, slots=True)
class Predicate:
    """A statement about the context: how probable is it that it is true?

    `when_true` and `when_false` may say what each side means; a server that takes no such words is shown them as a part
    of the statement.
    """

    statement: str
    when_true: str = ""
    when_false: str = ""
    kind: ClassVar[str] = "predicate"

    def __post_init__(self) -> None:
        _check_text("the statement of a Predicate", self.statement)


@dataclass(frozen=True, init=False, slots=True)
class ChoiceQuestion:
    """A question with 2 to 255 options, of which one is right. `options` may map each to what it means.

    >>> ChoiceQuestion("Which team?", ["billing", "support"]).options
    {'billing': '', 'support': ''}
    """

    question: str
    options: dict[str, str]
    kind: ClassVar[str] = "choice"

    def __init__(self, question: str, options: Mapping[str, str] | Iterable[str]) -> None:
        _check_text("the question of a ChoiceQuestion", question)
        given = list(options.items()) if isinstance(options, Mapping) else [(name, "") for name in options]
        object.__setattr__(self, "question", question)
        object.__setattr__(self, "options", dict(given))
        if isinstance(options, str) or not all(isinstance(name, str) and name.strip() for name, _ in given):
            raise TypeError("options of a ChoiceQuestion must be texts that are not empty")
        if len(self.options) != len(given) or not 2 <= len(given) <= MOST_OPTIONS:
            raise ValueError(f"a ChoiceQuestion has 2 to {MOST_OPTIONS} different options, got {len(given)}")


@dataclass(frozen=True, init=False, slots=True)
class ScoreQuestion:
    """A question that is answered on a scale: 2 to 255 levels, the lowest first, level 0."""

    question: str
    levels: tuple[str, ...]
    kind: ClassVar[str] = "score"

    def __init__(self, question: str, levels: Iterable[str]) -> None:
        _check_text("the question of a ScoreQuestion", question)
        object.__setattr__(self, "question", question)
        object.__setattr__(self, "levels", tuple(levels))
        if isinstance(levels, str) or not all(isinstance(name, str) and name.strip() for name in self.levels):
            raise TypeError("levels of a ScoreQuestion must be texts that are not empty")
        if len({*self.levels}) != len(self.levels) or not 2 <= len(self.levels) <= MOST_OPTIONS:
            raise ValueError(
                f"a ScoreQuestion has 2 to {MOST_OPTIONS} different levels, got {len(self.levels)}"
            )


DecisionQuestion: TypeAlias = Predicate | ChoiceQuestion | ScoreQuestion
"""What a decision model is asked."""


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """The answer to one question.

    Attributes:
        value: For a predicate whether it is more probable than not; for a choice the most probable option; for a score
            the expected level, which may lie between two. None if the question was not answered: `problem` says why.
        probabilities: {option, or level's name, or "true" and "false": probability}. They add up to 1. Empty where
            the model gave an answer and no probabilities.
        calibrated: Whether the server says that its probabilities are calibrated. Those made of a chat model's token
            probabilities are not: compare them with each other, and choose thresholds by trial.
        missing: The share of probability that the model gave to texts that are no answer, before the probabilities were
            made to add up to 1.
        problem: Why there is no answer, in words; "" if there is one.
    """

    value: bool | str | float | None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    calibrated: bool = False
    missing: float = 0.0
    problem: str = ""

    @property
    def probability(self) -> float | None:
        """Of a predicate that it is true; of a choice that its value is right; else None."""
        if isinstance(self.value, bool):
            return self.probabilities.get("true")
        return self.probabilities.get(self.value) if isinstance(self.value, str) else None


@dataclass(frozen=True, slots=True)
class Decisions:
    """The answers by the names of their questions, with what they cost. `decisions["urgent"]` is one of them."""

    answers: dict[str, DecisionAnswer]
    model: str = ""
    usage: Usage = field(default_factory=Usage)

    def __getitem__(self, name: str) -> DecisionAnswer:
        return self.answers[name]


def _check_text(what: str, given: object) -> None:
    if not isinstance(given, str) or not given.strip():
        raise TypeError(f"{what} must be a text that is not empty, got {given!r}")
