"""`toolcrib models`: which providers are configured, and what a model's name means. Never a key."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import fields
from importlib.util import find_spec
from json import dumps
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from toolcrib.cli.console import Problem, out, quiet_logging
from toolcrib.cli.options import AsJson
from toolcrib.codecs.codec import Features
from toolcrib.models.prices import VARIABLE, Price, Prices, usual_prices
from toolcrib.models.providers import ALIASES, PROVIDERS, Provider, host_of, key_for, key_variables
from toolcrib.models.resolve import resolve_model
from toolcrib.visible import on_one_line

WAYS = (
    ("http://HOST/v1#NAME", "any server that speaks OpenAI's Chat Completions"),
    ("text:MODEL", "a model that only writes text: calls are read from its text"),
    ("text/FORMAT:MODEL", "the same in a format that you name (hermes, …)"),
    ("MODEL,MODEL", "the second is asked if the first does not answer"),
    ("scripted:FILE.yaml", "answers from a script"),
    ("replay:FILE.jsonl", "a recording"),
)
READY, LOCAL, UNSURE, OPEN = "ready", "local", "asks", "no key"
HEADS = {
    READY: "Configured",
    LOCAL: "Servers of your own (no key is needed)",
    UNSURE: "Configured if the provider's own credentials are found at the first call",
    OPEN: "Not configured",
}
FOUND_BY_NAME = {
    name: ", ".join(alias for alias, meant in ALIASES.items() if meant == name) for name in ALIASES.values()
}

NARROWEST = 30  # columns that continued text needs; on a narrower rest of the line it moves to the left

Name = Annotated[str, typer.Argument(metavar="[NAME]", help="The name of a model, as for toolcrib run.")]


def command(name: Name = "", json: AsJson = False) -> int:
    """With a name, say what that name means; the exit code is 1 if the model lacks something that it needs. No key is
    ever shown.
    """
    return _show_model(name, as_json=json) if name else _list_providers(as_json=json)


def _list_providers(*, as_json: bool) -> int:
    """Print every provider, whether it is configured, and how a model of it is named."""
    rows = [_row(name, provider) for name, provider in PROVIDERS.items()]
    prices, trouble = _prices()
    if as_json:
        priced = {"known": prices.known, "file": os.environ.get(VARIABLE, ""), "problem": trouble}
        out(dumps({"providers": rows, "prices": priced}, ensure_ascii=False, indent=2))
        return 0
    for state, head in HEADS.items():
        mine = [row for row in rows if row["state"] == state]
        if mine:
            out(head)
        for row in mine:
            also = f" (also {row['alias']}:NAME)" if row["alias"] else ""
            out(_fitted(f"  {row['model']:<24} {row['class']:<18} ", f"{row['needs']}{also}"))
        if mine:
            out()
    out("Other ways to name a model")
    for way, meaning in WAYS:
        out(_fitted(f"  {way:<24} ", meaning))
    out()
    out(f"Prices are as of {prices.known}; {VARIABLE} may name a file with your own prices.")
    if trouble:
        out(f"! {on_one_line(trouble)}")
    out("`toolcrib models NAME` says what a name means, and what is missing for it.")
    return 0


def _show_model(spec: str, *, as_json: bool) -> int:
    """Print what a name means; 0 if nothing is missing, else 1. Raises Problem for a name that means nothing."""
    quiet_logging()
    try:
        model: Any = resolve_model(spec)
    except (ValueError, OSError, ImportError) as problem:
        raise Problem(str(problem)) from problem
    found = [_facts(one) for one in getattr(model, "models", (model,))]
    if as_json:
        out(dumps(found, ensure_ascii=False, indent=2))
    else:
        for number, facts in enumerate(found):
            if number:
                out("\nif the model above does not answer:")
            _print(facts)
    return 1 if any(facts.get("missing") for facts in found) else 0


def _row(name: str, provider: Provider) -> dict[str, Any]:
    named = bool(provider.address and os.environ.get(provider.address))
    if provider.key() and (provider.base_url or named):
        state = READY
    elif provider.asks:
        state = UNSURE
    else:
        state = LOCAL if provider.base_url.startswith("http://") else OPEN
    set_here = next((key for key in provider.keys if os.environ.get(key)), "")
    needs = f"{set_here} is set" if set_here else provider.asks or _wanted(provider, local=state == LOCAL)
    if named:
        needs += f"{'; ' if needs else ''}at {_plain(provider.url())}"
    alias = FOUND_BY_NAME.get(name, "")
    return {
        "provider": name,
        "model": f"{name}:NAME",
        "alias": alias,
        "state": state,
        "class": provider.cls,
        "address": _plain(provider.url()),
        "keys": list(provider.keys),
        "needs": needs,
    }


def _wanted(provider: Provider, *, local: bool) -> str:
    if local:
        return _plain(provider.base_url)
    more = f" and {provider.address}" if provider.address and not provider.base_url else ""
    return f"set {' or '.join(provider.keys)}{more}"


def _facts(model: Any) -> dict[str, Any]:
    cls = type(model).__name__
    facts: dict[str, Any] = {"name": model.name, "class": cls}
    codec = getattr(model, "codec", None)
    if codec is None:
        return {**facts, "missing": []}
    format = getattr(getattr(codec, "format", None), "name", None)
    base = getattr(codec, "base", codec)
    price = _price_of(model)
    address = _plain(getattr(model, "base_url", "") or "")
    return facts | {
        "address": address,
        "keys": list(key_variables(model.base_url)) if address else [],
        "wire_format": base.name,
        "text_format": format,
        "dialect": getattr(base, "dialect", None),
        "features": _features(codec.features),
        "price": None if price is None else _rates(price),
        "missing": _missing(model, cls),
    }


def _missing(model: Any, cls: str) -> list[str]:
    missing: list[str] = []
    needed = getattr(model, "sdk_name", "")
    if needed and find_spec(needed) is None:
        missing.append(f"the {needed} package: pip install 'toolcrib[{model.extra}]'")
    rows = [row for row in PROVIDERS.values() if row.cls == cls]
    address = getattr(model, "base_url", "") or ""
    official = any(row.official and host_of(row.base_url) == host_of(address) for row in rows)
    variables = key_variables(address) if address else ()
    if official and variables and key_for(address) is None:
        missing.append(f"a key: set {' or '.join(variables)}")
    return missing


def _features(features: Features) -> dict[str, Any]:
    found = {item.name: getattr(features, item.name) for item in fields(features)}
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in found.items()}


def _price_of(model: Any) -> Price | None:
    prices = getattr(model, "prices", None) or _prices()[0]
    price: Price | None = prices.of(model.codec.provider, model.model)
    return price


def _prices() -> tuple[Prices, str]:
    """The prices that count, and what is wrong with the user's own."""
    try:
        return usual_prices(), ""
    except (OSError, ValueError) as problem:
        return Prices.load(), f"{VARIABLE}: {problem}"


def _rates(price: Price) -> dict[str, Any]:
    rates = {item.name: getattr(price.rates, item.name) for item in fields(price.rates)}
    return {**{name: rate for name, rate in rates.items() if rate is not None}, "known": price.known}


def _print(facts: dict[str, Any]) -> None:
    out(on_one_line(facts["name"]))
    lines = [("class", facts["class"])]
    if "wire_format" in facts:
        features = facts["features"]
        has = [name.replace("_", " ") for name, value in features.items() if value is True]
        lacks = [name.replace("_", " ") for name, value in features.items() if value is False]
        written = facts["text_format"]
        lines += [
            ("address", facts["address"] or "found at the first call"),
            ("key", _key_line(facts)),
            ("wire format", facts["wire_format"]),
            ("calls", f"written as text: {written}" if written else "the provider's own"),
            ("schemas", f"dialect {facts['dialect']}"),
            ("tool choice", ", ".join(features["tool_choice"])),
            ("can", ", ".join(has)),
            ("cannot", ", ".join(lacks) or "-"),
            ("price", _price_line(facts["price"])),
        ]
    for missing in facts["missing"]:
        lines.append(("missing", missing))
    for label, value in lines:
        out(f"  {label:<12} {on_one_line(value)}")


def _key_line(facts: dict[str, Any]) -> str:
    present = [name for name in facts["keys"] if os.environ.get(name)]
    if present:
        return f"{present[0]} is set"
    return f"{' or '.join(facts['keys'])}: not set" if facts["keys"] else "none from the environment"


def _price_line(price: dict[str, Any] | None) -> str:
    if price is None:
        return "unknown"
    named = ", ".join(f"${price[name]:g} {name.replace('_', ' ')}" for name in price if name != "known")
    return f"{named} per million tokens" + (f" (known on {price['known']})" if price["known"] else "")


def _plain(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{host_of(url)}{parts.path}" if parts.netloc else on_one_line(url)


def _fitted(head: str, rest: str) -> str:
    """A line of which nothing is cut off: on a narrow terminal it goes on below."""
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    words = on_one_line(rest, 10_000)
    below = " " * (len(head) if wide - len(head) >= NARROWEST else 4)
    return textwrap.fill(head + words, max(wide, 40), subsequent_indent=below, break_long_words=False,
                         break_on_hyphens=False, drop_whitespace=True)  # fmt: skip
