"""How a model is asked for a typed answer: the best way that its server has, and the next one when that is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from toolcrib.agent.completion import COMPLETION
from toolcrib.agent.output_type import RUNGS, Rung
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.fingerprint import fingerprint

if TYPE_CHECKING:
    from toolcrib.agent.output_shape import OutputShape
    from toolcrib.codecs.codec import ModelError
    from toolcrib.models.model import Model

__all__ = ["Ladder", "LadderStep", "refuses_the_form"]

# What servers say of a request whose schema, tool or response format they do not take: words of the fields
# by which an answer is asked for; errors about messages, names of tools or other fields have other words.
FORM: Final = re.compile(
    r"response[_ -]?(?:format|mime|json|schema)|output[_ ]?(?:config|format|schema)|json[_ ]?(?:schema|object|mode)\b"
    r"|structured[_ ]?output|text\.format|\bformat: |(?:invalid|unsupported) ['\"`]?format\b|\bguided|grammar"
    r"|constrained|controlled generation|\bstrict\b|additionalproperties"
    rf"|\bschema\b(?! for (?:function|tool) (?!['\"`]?{COMPLETION}))|{COMPLETION}"
    r"|tool[_ ]?(?:choice|config|calling)|function[_ ]?calling|\btools? param"
    r"|(?:support|enable|allow|permit)\w*\W+(?:\w+\W+){0,2}(?:tools?|functions?)\b"
    r"|\b(?:tools?|functions?)\b\W+(?:\w+\W+){0,3}(?:not |un|dis)(?:support|enable|allow|permit|available)"
    r"|(?:unknown|unrecogni[sz]ed|unexpected|extra) [^.]{0,40}['\"`: ](?:tools|functions|format)\b",
    re.IGNORECASE,
)
REFUSING: Final = frozenset({400, 404, 422, 500, 501})


# Servers whose schema for the text of an answer leaves the model free to call tools instead.
BESIDE_TOOLS: Final = frozenset({"openai.chat", "openai.responses", "anthropic"})


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One way to ask for an answer, and what the server promises of it: `guarantee` and `losses` as in `Lowered`.

    `fields` are added to the request's body; `prompt` is what the instructions say.
    """

    rung: Rung
    guarantee: str
    losses: tuple[Any, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    is_plain: bool = False
    """Whether the answer is the bare text of a constraint, not JSON."""

    @property
    def by_call(self) -> bool:
        """Whether the answer is a call."""
        return self.rung in ("strict tool", "forced tool", "tool")


def refuses_the_form(error: ModelError) -> bool:
    """Whether a server refused the way in which a typed answer was asked for, as far as its words say."""
    if error.retryable or error.status not in REFUSING or error.too_long:
        return False
    if error.status >= 500 and not re.search("schema|grammar", error.message, re.IGNORECASE):
        return False
    return FORM.search(error.message) is not None


class Ladder:
    """The ways to ask a model for one output type, best first. What its server refused is remembered with the model."""

    def __init__(self, model: Model, shape: OutputShape, has_tools: bool) -> None:
        self._model = model
        target = getattr(model, "target", "") or "text"
        known = shape.ladders.get((target, has_tools))
        if known is None:
            key = fingerprint("output", [target, shape.schema, has_tools])
            known = shape.ladders[target, has_tools] = key, steps_for(shape, target, has_tools)
        self._key: str = known[0]
        self.steps: tuple[LadderStep, ...] = known[1]

    @property
    def first(self) -> int:
        """The best step that the model's server has not refused."""
        try:
            return _REFUSED.get(self._model, {}).get(self._key, 0)
        except TypeError:  # a model that cannot be remembered
            return 0

    def refused(self, at: int) -> int | None:
        """The step after the one that was refused; None where there is none."""
        return at + 1 if at + 1 < len(self.steps) else None

    def took(self, at: int) -> None:
        """Remember that the server took a step after it refused those before it."""
        with suppress(TypeError):
            _REFUSED.setdefault(self._model, {})[self._key] = at


_REFUSED: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()


def steps_for(shape: OutputShape, target: str, has_tools: bool) -> tuple[LadderStep, ...]:
    """The steps for a server. A rung that was asked for comes first, and those below it after it."""
    found = _texts(shape, target, has_tools)
    asked = LadderStep("tool", "prompted")
    called = _called(shape, target)
    steps = [*called, asked] if shape.needs_call else [*found[:1], *called, asked, *found[1:]]
    steps = [step for step in steps if step is not None]
    if shape.is_grammar:  # a schema only says that it is a text
        steps = [step if step.is_plain else replace(step, guarantee="prompted") for step in steps]
    rung = shape.output.rung
    if rung is None:
        return tuple(steps)
    low = [step for step in steps if RUNGS.index(step.rung) >= RUNGS.index(rung)]
    if not low or low[0].rung != rung:
        names = ", ".join(repr(step.rung) for step in steps)
        raise TypeError(f"this answer cannot be asked for by rung {rung!r} here; there are {names}")
    return tuple(low)


def _called(shape: OutputShape, target: str) -> list[LadderStep]:
    """The steps whose answer is a call that the model must make; some servers refuse that beside thinking."""
    from toolcrib.guided import rungs_of

    schema = shape.constraints[-1]
    known = {lowered.rung: lowered for lowered in rungs_of(schema, target, other_names=True)}
    strict, forced = known.get("strict tool"), known.get("forced tool")
    steps: list[LadderStep] = []
    if strict is not None and strict.guarantee != "prompted":
        steps.append(LadderStep("strict tool", strict.guarantee, strict.losses))
    guarantee = "prompted" if forced is None else forced.guarantee
    return [*steps, LadderStep("forced tool", guarantee)]


def _texts(shape: OutputShape, target: str, has_tools: bool) -> list[LadderStep | None]:
    """The steps whose answer is a text: the native one, None without it; JSON mode; text alone."""
    from toolcrib.guided import rungs_of

    constraints = shape.constraints
    native: LadderStep | None = None
    rest: list[LadderStep | None] = []
    for constraint in constraints:
        is_json = constraint is constraints[-1]
        for lowered in rungs_of(constraint, target):
            if has_tools and (target not in BESIDE_TOOLS or "tools" in lowered.not_with):
                continue
            plain = lowered.schema is None and not lowered.tool and not is_json
            step = LadderStep(
                cast("Rung", lowered.rung),
                lowered.guarantee,
                lowered.losses,
                lowered.fields,
                lowered.prompt,
                plain,
            )
            if lowered.rung == "native" and lowered.guarantee != "prompted" and (is_json or plain):
                native = native or step
            elif lowered.rung == "JSON mode" and is_json:
                rest.append(step)
    text = rungs_of(constraints[0], "text")[-1]
    plain = len(constraints) > 1
    return [native, *rest, LadderStep("text", text.guarantee, prompt=text.prompt, is_plain=plain)]
