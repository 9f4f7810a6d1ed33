"""The text formats by name, and which of them a model writes.

A module of formats exports `FORMATS`; its name stands in `MODULES`, and is loaded when first asked for.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from toolcrib.codecs.text.format import TextFormat

# In this order a model's name is held against the formats' patterns: the more particular first.
MODULES = (
    "qwen3_coder",
    "seed_oss",
    "step",
    "deepseek",
    "kimi",
    "glm",
    "minimax",
    "gemma",
    "harmony",
    "invoke",
    "tolerant",
    "schoober",
    "pythonic",
    "functionary",
    "mistral",
    "json_formats",
    "merged_json",
)
FALLBACK = ("tool_call", "hermes")  # for models that no format names: the first that there is


@cache
def formats() -> dict[str, TextFormat]:
    """All formats by name, in the order in which models are looked for."""
    package = __name__.rpartition(".")[0]
    found: dict[str, TextFormat] = {}
    for name in MODULES:
        if find_spec(f"{package}.{name}") is not None:
            for format in import_module(f"{package}.{name}").FORMATS:
                if found.setdefault(format.name, format) is not format:
                    raise ValueError(f"two text formats are named {format.name!r}")
    return found


def format_named(name: str) -> TextFormat:
    """A text format by its name; ValueError, naming those that there are, for another."""
    known = formats()
    if name not in known:
        near = get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"unknown text format {name!r}: {hint}Known are {', '.join(known)}")
    return known[name]


def format_for(model: str) -> TextFormat:
    """The format that a model of this name writes; for an unknown one `<tool_call>`, read tolerantly.

    >>> format_for("NousResearch/Hermes-3-Llama-3.1-8B").name
    'hermes'
    """
    known = formats()
    for format in known.values():
        if any(re.search(pattern, model, re.IGNORECASE) for pattern in format.models):
            return format
    return next(known[name] for name in FALLBACK if name in known)
