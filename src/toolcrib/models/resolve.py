"""From a model's name, as a person writes it, to a model."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from toolcrib.models.model import Model

OLLAMA = "http://localhost:11434/v1"
POSSIBLE = (
    "openai:NAME, anthropic:NAME, ollama:NAME, http://HOST/v1#NAME (any OpenAI-compatible server), "
    "scripted:FILE.yaml, replay:FILE.jsonl"
)


def resolve_model(spec: str | Model | None = None, **options: Any) -> Model:
    """The model that a string names; a model is given back as it is.

    `None` means TOOLCRIB_MODEL. Keys and addresses come from OPENAI_API_KEY, OPENAI_BASE_URL and
    ANTHROPIC_API_KEY; `options` (`api_key`, `base_url`, `timeout`, ...) go to the model's class. Raises
    ValueError, saying what is possible, for a name that means nothing, and OSError or ValueError for a file
    that cannot be read.

    >>> resolve_model("ollama:qwen3:8b")
    OpenAIChat('qwen3:8b', provider='ollama')
    """
    if spec is None:
        spec = os.environ.get("TOOLCRIB_MODEL") or None
    if spec is None:
        raise ValueError(f"no model: set TOOLCRIB_MODEL or name one: {POSSIBLE}")
    if not isinstance(spec, str):
        return spec
    if spec.startswith(("http://", "https://")):
        base_url, _, name = spec.partition("#")
        if not name:
            raise ValueError(f"model {spec!r}: say which model the server should use: {spec}#NAME")
        return _openai(name, base_url=base_url, **options)
    kind, colon, name = spec.partition(":")
    make = KINDS.get(kind)
    if make is None or not colon or not name:
        raise ValueError(f"unknown model {spec!r}: use {POSSIBLE}{_hint(spec)}")
    return make(name, **options)


def _hint(spec: str) -> str:
    for start, kind in (("claude", "anthropic"), ("gpt", "openai"), ("o1", "openai"), ("o3", "openai")):
        if spec.startswith(start):
            return f". Did you mean {kind}:{spec}?"
    return ""


def _openai(name: str, **options: Any) -> Model:
    from toolcrib.models.openai import OpenAIChat

    return OpenAIChat(name, **options)


def _anthropic(name: str, **options: Any) -> Model:
    from toolcrib.models.anthropic import AnthropicMessages

    return AnthropicMessages(name, **options)


def _ollama(name: str, **options: Any) -> Model:
    return _openai(name, **{"base_url": OLLAMA, "provider": "ollama", **options})


def _scripted(path: str, **_: Any) -> Model:
    from toolcrib.models.scripted import Scripted

    return Scripted.from_yaml(path)


def _replay(path: str, **_: Any) -> Model:
    from toolcrib.models.replay import Replay

    return Replay.from_jsonl(path)


KINDS: dict[str, Callable[..., Model]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "ollama": _ollama,
    "scripted": _scripted,
    "replay": _replay,
}
