"""Labels that a decision model chooses: in one request, with calibrated probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.agent.outcome import NotFinished, Outcome, Reason
from toolcrib.codecs.codec import ModelError
from toolcrib.decisions.questions import ChoiceQuestion, DecisionAnswer
from toolcrib.extraction.sources import conversation_of
from toolcrib.messages import Usage

if TYPE_CHECKING:
    from toolcrib.decisions.model import DecisionModel
    from toolcrib.extraction.sources import Source

__all__ = ["decided_label", "decision_model_of"]


def decision_model_of(model: Any) -> DecisionModel | None:
    """The decision model, if this is one or the name of one."""
    from toolcrib.decisions.model import DecisionModel, resolve_decision_model

    if isinstance(model, str):
        return resolve_decision_model(model)
    return model if isinstance(model, DecisionModel) else None


async def decided_label(
    model: DecisionModel, source: Source, labels: Mapping[str, str], question: str
) -> tuple[DecisionAnswer, Outcome[str]]:
    """The label that fits a source best. Raises NotFinished where there is no answer."""
    before, last = conversation_of(source)
    context = source if isinstance(source, str) else [*before, last]
    try:
        decisions = await model.decide(context, {"label": ChoiceQuestion(question, labels)})
    except ModelError as failed:
        ended = Outcome[str](Reason.MODEL_ERROR, "", [], Usage(), 1, "", failed.message, is_typed=True)
        raise NotFinished(ended) from None
    answer = decisions["label"]
    if not isinstance(answer.value, str):
        refused = Outcome[str](Reason.REFUSED, "", [], decisions.usage, 1, "", answer.problem, is_typed=True)
        raise NotFinished(refused)
    return answer, Outcome(
        Reason.ANSWERED, answer.value, [], decisions.usage, 1, "", attempts=1, guarantee="enforced"
    )
