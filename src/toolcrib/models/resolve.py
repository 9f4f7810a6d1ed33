"""Resolves a model's name, as a person writes it, to a model."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from toolcrib.models.model import Model
from toolcrib.models.providers import ALIASES, CLASSES, OPENAI_URL, PROVIDERS, azure_url, host_of

POSSIBLE = (
    "PROVIDER:NAME with one of openai, anthropic, gemini, mistral, deepseek, ollama, … (`toolcrib models` lists "
    "all), http://HOST/v1#NAME (any OpenAI-compatible server), text:MODEL (calls written as text), A,B (B if A "
    "fails), scripted:FILE.yaml, replay:FILE.jsonl"
)
TEXT = re.compile(r"text(?:/(?P<format>[^:]*))?:(?P<model>.+)", re.DOTALL)
WHOSE = (
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "gemini"),
    ("deepseek", "deepseek"),
    ("grok", "xai"),
    ("kimi", "moonshot"),
    ("glm", "zai"),
    ("command", "cohere"),
    ("mistral", "mistral"),
)


def resolve_model(spec: str | Model | None = None, **options: Any) -> Model:
    """The model that a string names; a model object is returned unchanged.

    `None` means TOOLCRIB_MODEL. Keys and addresses come from the provider's variables (`toolcrib models`
    lists them); `options` (`api_key`, `base_url`, `timeout`, ...) go to the model's class. `openai:NAME`
    speaks the Responses interface with OpenAI itself, and Chat Completions where OPENAI_BASE_URL names
    another server; `openai-responses:` and `openai-chat:` say which. `text:MODEL` or `text/FORMAT:MODEL`
    makes the model write its calls as text. A list `A,B` asks the next where one does not answer. `prices`
    (a `Prices`, the file of one, or a mapping of the same form) precede those that come along. Raises
    ValueError, saying what is possible, for a name that means nothing, and OSError or ValueError for a file
    that cannot be read.

    >>> resolve_model("groq:llama-3.3-70b-versatile")
    OpenAIChat('llama-3.3-70b-versatile', provider='groq')
    """
    if spec is None:
        spec = os.environ.get("TOOLCRIB_MODEL") or None
    if spec is None:
        raise ValueError(f"no model: set TOOLCRIB_MODEL or name one: {POSSIBLE}")
    if not isinstance(spec, str):
        return spec
    prices = options.pop("prices", None)
    model = _resolved(_listed(spec), options)
    if prices is not None:
        _set_prices(model, prices)
    return model


def _resolved(specs: list[str], options: dict[str, Any]) -> Model:
    if len(specs) == 1:
        return _one(specs[0], options)
    if secret := [name for name in ("api_key", "base_url") if name in options]:
        raise ValueError(f"{' and '.join(secret)} cannot be given for a list of models: make each by itself")
    from toolcrib.models.fallback import Fallback

    return Fallback([_one(item, options) for item in specs])


def _set_prices(model: Any, prices: Any) -> None:
    from toolcrib.models.prices import Prices

    known = prices if isinstance(prices, Prices) else Prices.load(prices)
    for one in getattr(model, "models", (model,)):
        if hasattr(one, "prices"):
            one.prices = known


def _one(spec: str, options: dict[str, Any]) -> Model:
    if text := TEXT.fullmatch(spec):
        return _writing_text(spec, text["model"], text["format"], options)
    if spec.startswith(("http://", "https://")):
        base_url, _, name = spec.partition("#")
        if not name:
            raise ValueError(f"model {spec!r}: say which model the server should use: {spec}#NAME")
        return _made("OpenAIChat", name, {"base_url": base_url, **options})
    kind, colon, name = spec.partition(":")
    kind = ALIASES.get(kind, kind)
    if not colon or not name or (kind not in PROVIDERS and kind not in FILES):
        raise ValueError(f"unknown model {spec!r}: use {POSSIBLE}{_hint(spec)}")
    return FILES[kind](name) if kind in FILES else _provided(kind, name, options)


def _provided(kind: str, name: str, options: dict[str, Any]) -> Model:
    row = PROVIDERS[kind]
    cls, given = row.cls, dict(options)
    if kind in ("openai", "openai-chat", "openai-responses"):
        elsewhere = host_of(str(given.get("base_url") or row.url())) != host_of(OPENAI_URL)
        return _made("OpenAIChat" if kind == "openai" and elsewhere else cls, name, given)
    if kind == "vertex":
        given = {"location": os.environ.get("GOOGLE_CLOUD_LOCATION") or "global", **given}
    if row.own_defaults:
        return _made(cls, name, given)
    url = str(given.get("base_url") or row.url())
    if kind == "azure":
        if not url:
            raise ValueError(
                f"model azure:{name}: set {row.address} to the resource's address, or pass base_url="
            )
        return _made(cls, name, {**given, "base_url": azure_url(url)})
    return _made(cls, name, {"provider": kind, **given, "base_url": url})


def _writing_text(spec: str, inner: str, format: str | None, options: dict[str, Any]) -> Model:
    model: Any = _one(inner, options)
    if not hasattr(model, "codec"):
        raise ValueError(f"model {spec!r}: {inner} is no model that can be made to write its calls as text")
    from toolcrib.codecs.text.codec import TextCodec

    model.codec = TextCodec(model.codec, format or None, model.model)
    made: Model = model
    return made


def _made(cls: str, name: str, options: dict[str, Any]) -> Model:
    made: Model = getattr(import_module(f"toolcrib.models.{CLASSES[cls]}"), cls)(name, **options)
    return made


def _listed(spec: str) -> list[str]:
    """Splits a list of models. File names may contain commas, so an item ends only where another model begins."""
    items: list[str] = []
    for item in spec.split(","):
        if items and items[-1].partition(":")[0].strip() in FILES and not _begins_a_model(item):
            items[-1] += f",{item}"
        else:
            items.append(item)
    items = [item.strip() for item in items]
    if "" in items and len(items) > 1:
        raise ValueError(f"model {spec!r}: a name is missing between the commas")
    return items


def _begins_a_model(item: str) -> bool:
    kind = item.strip().partition(":")[0]
    return kind in {*PROVIDERS, *ALIASES, *FILES, "http", "https"} or bool(TEXT.match(item.strip()))


def _hint(spec: str) -> str:
    kind, colon, name = spec.partition(":")
    if kind.lower() in KNOWN and not name:
        return f". Say which {'file' if kind.lower() in FILES else 'model'}: {kind.lower()}:NAME"
    whose = next((provider for start, provider in WHOSE if spec.lower().startswith(start)), "")
    if whose and not colon:
        return f". Did you mean {whose}:{spec}?"
    near = [kind.lower()] if kind.lower() in KNOWN else get_close_matches(kind.lower(), KNOWN, n=1)
    return f". Did you mean {near[0]}:{name}?" if near and colon else ""


def _scripted(path: str) -> Model:
    from toolcrib.models.scripted import Scripted

    return Scripted.from_yaml(path)


def _replay(path: str) -> Model:
    from toolcrib.models.replay import Replay

    return Replay.from_jsonl(path)


FILES: dict[str, Callable[[str], Model]] = {"scripted": _scripted, "replay": _replay}
KNOWN = (*PROVIDERS, *ALIASES, *FILES, "text")
