"""How a model is asked for a typed answer: the best way that its server has, and the next one when that is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from toolcrib.agent.output_type import RUNGS, Rung
from toolcrib.fingerprint import fingerprint

if TYPE_CHECKING:
    from toolcrib.codecs.codec import ModelError
    from toolcrib.models.model import Model

__all__ = ["Ladder", "LadderStep", "refuses_the_form"]

# What a server says of a request whose schema, tool or response format it does not take.
FORM: Final = re.compile(
    r"response[_ ]?(?:format|mime|json|schema)|output[_ ]?(?:config|format)|json[_ ]?(?:schema|object|mode)|structured"
    r"|\bschemas?\b|\bstrict\b|grammar|\btools?\b|tool[_ ]choice|function|guided|constraint|additionalproperties"
    r"|\b(?:unknown|unrecognized|unsupported|unexpected|extra) (?:field|name|parameter|argument|input|key)"
    r"|extra inputs are not permitted|text\.format|\bformat\b",
    re.IGNORECASE,
)
REFUSING: Final = frozenset({400, 404, 422, 500, 501})


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One way to ask. `forced` says that the model must call a tool; some servers refuse that beside thinking."""

    rung: Rung
    forced: bool = False

    def __str__(self) -> str:
        return f"{self.rung} (forced)" if self.forced else self.rung


# Servers whose schema for the text of an answer leaves the model free to call tools instead.
BESIDE_TOOLS: Final = frozenset({"openai.chat", "openai.responses", "anthropic"})
STRICT_TOOLS: Final = frozenset({"openai.chat", "openai.responses", "anthropic"})
# Servers that take a schema for the text of an answer.
NATIVE: Final = frozenset({"openai.chat", "openai.responses", "anthropic"})
JSON_MODE: Final = frozenset({"openai.chat", "openai.responses"})


def refuses_the_form(error: ModelError) -> bool:
    """Whether a server refused the way in which a typed answer was asked for, as far as its words say."""
    if error.retryable or error.status not in REFUSING or error.too_long:
        return False
    if error.status >= 500 and not re.search("schema|grammar", error.message, re.IGNORECASE):
        return False
    return FORM.search(error.message) is not None


class Ladder:
    """The ways to ask a model for one output type, best first. What its server refused is remembered with the model."""

    def __init__(
        self, model: Model, schema: Any, *, rung: Rung | None, needs_call: bool, has_tools: bool
    ) -> None:
        self._model = model
        self._key = fingerprint("output", [schema, has_tools])
        self.steps = steps_for(getattr(model, "target", ""), rung, needs_call, has_tools)

    @property
    def first(self) -> int:
        """The best step that the model's server has not refused."""
        try:
            return _REFUSED.get(self._model, {}).get(self._key, 0)
        except TypeError:  # a model that cannot be remembered
            return 0

    def refused(self, at: int) -> int | None:
        """The step after the one that was refused; None where there is none."""
        if at + 1 >= len(self.steps):
            return None
        try:
            _REFUSED.setdefault(self._model, {})[self._key] = at + 1
        except TypeError:
            pass
        return at + 1


_REFUSED: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()


def steps_for(target: str, rung: Rung | None, needs_call: bool, has_tools: bool) -> tuple[LadderStep, ...]:
    """The steps for a server. A rung that was asked for comes first, and those below it after it."""
    steps: list[LadderStep] = []
    if target in NATIVE and not needs_call and (target in BESIDE_TOOLS or not has_tools):
        steps.append(LadderStep("native"))
    if target in STRICT_TOOLS:
        steps.append(LadderStep("strict_tool", forced=True))
    steps += [LadderStep("tool", forced=True), LadderStep("tool")]
    if not needs_call:
        steps += [LadderStep("json")] if target in JSON_MODE and not has_tools else []
        steps.append(LadderStep("text"))
    if rung is None:
        return tuple(steps)
    low = [step for step in steps if RUNGS.index(step.rung) > RUNGS.index(rung)]
    own = [step for step in steps if step.rung == rung] or [LadderStep(rung, forced=rung == "strict_tool")]
    return (*own, *low)
