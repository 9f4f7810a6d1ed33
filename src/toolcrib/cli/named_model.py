"""The model that a person names on the command line, or why it cannot be used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolcrib.cli.console import Problem, say
from toolcrib.cli.model_facts import missing_of
from toolcrib.models import resolve_model

if TYPE_CHECKING:
    from toolcrib.models import Model

NO_MODEL = """\
no model is configured. Name one with --model or the variable TOOLCRIB_MODEL:
  openai:NAME            with OPENAI_API_KEY set, and toolcrib[openai] installed
  anthropic:NAME         with ANTHROPIC_API_KEY set, and toolcrib[anthropic] installed
  ollama:NAME            a local Ollama; needs toolcrib[http]
  http://HOST/v1#NAME    any server that speaks OpenAI's API (vLLM, llama.cpp, LM Studio)
`toolcrib models` lists all providers, and which of them are configured.
To watch a run without a key or a network first, try: toolcrib demo"""


class ModelLacks(Problem):
    """What a model lacks before it can be asked: a key, a package."""


def named_model(name: str | None) -> Model:
    """The model of this name, or of the variable; Problem where it is unknown or certainly lacks something."""
    given = name or os.environ.get("TOOLCRIB_MODEL")
    if not given:
        raise Problem(NO_MODEL)
    try:
        return usable_model(given)
    except ModelLacks as problem:
        raise Problem(f"{problem}; or name another model with --model (toolcrib models lists them)") from None


def known_model(name: str) -> Model:
    """The model of this name, whatever it lacks. Raises Problem where it is unknown."""
    try:
        return resolve_model(name)
    except OSError as problem:
        raise Problem(f"model {name}: {problem.filename}: {problem.strerror}") from problem
    except (ValueError, ImportError) as problem:
        raise Problem(f"model: {problem}") from problem


def usable_model(name: str) -> Model:
    """The model of this name. Raises Problem where it is unknown, ModelLacks where it certainly lacks something."""
    model = known_model(name)
    found = [(one.name, missing_of(one)) for one in getattr(model, "models", (model,))]
    if len(found) == 1 and "://" not in name:  # an address may hold a password
        found = [(name, found[0][1])]
    lacking = [f"{one} lacks {' and '.join(missing)}" for one, missing in found if missing]
    if len(lacking) == len(found):
        raise ModelLacks("; ".join(lacking))
    for line in lacking:  # the others of the list are asked
        say(f"note: {line}")
    return model
