"""`toolcrib models`: which providers are configured, and what a model's name means. Never a key."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from json import dumps
from typing import Annotated, Any

import typer

from toolcrib.cli.console import DONE, NOT_DONE, out, quiet_logging
from toolcrib.cli.model_facts import current_prices, model_facts, plain_address
from toolcrib.cli.named_model import known_model
from toolcrib.cli.options import AsJson
from toolcrib.models.prices import VARIABLE
from toolcrib.models.providers import ALIASES, PROVIDERS, Provider
from toolcrib.visible import on_one_line

OTHER_NAMES = (
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
ALIASES_OF = {  # of each provider
    name: ", ".join(alias for alias, meant in ALIASES.items() if meant == name) for name in ALIASES.values()
}

NARROWEST = 30  # columns that continued text needs; on a narrower rest of the line it moves to the left

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a model, as for toolcrib run.")]


def command(name: Name = "", json: AsJson = False) -> int:
    """With a name, say what that name means; the exit code is 1 if the model lacks something that it needs. No key is
    ever shown.
    """
    return _show_model(name, as_json=json) if name else _list_providers(as_json=json)


def _list_providers(*, as_json: bool) -> int:
    """Print every provider, whether it is configured, and how a model of it is named."""
    rows = [_row(name, provider) for name, provider in PROVIDERS.items()]
    prices, problem = current_prices()
    if as_json:
        priced = {"known": prices.known, "file": os.environ.get(VARIABLE, ""), "problem": problem}
        out(dumps({"providers": rows, "prices": priced}, ensure_ascii=False, indent=2))
        return DONE
    for state, head in HEADS.items():
        mine = [row for row in rows if row["state"] == state]
        if mine:
            out(head)
        for row in mine:
            names = ", ".join(f"{alias}:NAME" for alias in row["alias"].split(", ") if alias)
            also = f" (also {names})" if names else ""
            out(_fitted(f"  {row['model']:<24} {row['class']:<18} ", f"{row['needs']}{also}"))
        if mine:
            out()
    out("Other ways to name a model")
    for way, meaning in OTHER_NAMES:
        out(_fitted(f"  {way:<24} ", meaning))
    out()
    out(f"Prices are as of {prices.known}; {VARIABLE} may name a file with your own prices.")
    if problem:
        out(f"! {on_one_line(problem)}")
    out("`toolcrib models NAME` says what a name means, and what is missing for it.")
    return DONE


def _show_model(spec: str, *, as_json: bool) -> int:
    """Print what a name means; 1 if something is missing for it. Raises Problem for a name that means nothing."""
    quiet_logging()
    model: Any = known_model(spec)
    found = [model_facts(one) for one in getattr(model, "models", (model,))]
    if as_json:
        out(dumps(found, ensure_ascii=False, indent=2))
    else:
        for number, facts in enumerate(found):
            if number:
                out("\nif the model above does not answer:")
            _print_facts(facts)
    return NOT_DONE if any(facts.get("missing") for facts in found) else DONE


def _row(name: str, provider: Provider) -> dict[str, Any]:
    """What is known of a provider here."""
    named = bool(provider.address and os.environ.get(provider.address))
    if provider.key() and (provider.base_url or named):
        state = READY
    elif provider.asks:
        state = UNSURE
    else:
        state = LOCAL if provider.base_url.startswith("http://") else OPEN
    set_here = next((key for key in provider.keys if os.environ.get(key)), "")
    needs = f"{set_here} is set" if set_here else provider.asks or _needed(provider, local=state == LOCAL)
    if named:
        needs += f"{'; ' if needs else ''}at {plain_address(provider.url())}"
    alias = ALIASES_OF.get(name, "")
    return {
        "provider": name,
        "model": f"{name}:NAME",
        "alias": alias,
        "state": state,
        "class": provider.cls,
        "address": plain_address(provider.url()),
        "keys": list(provider.keys),
        "needs": needs,
    }


def _needed(provider: Provider, *, local: bool) -> str:
    """What a provider needs to be configured; the address of a local server."""
    if local:
        return plain_address(provider.base_url)
    more = f" and {provider.address}" if provider.address and not provider.base_url else ""
    return f"set {' or '.join(provider.keys)}{more}"


def _print_facts(facts: dict[str, Any]) -> None:
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
            ("calls", f"written as text: {written}" if written else "in the provider's own format"),
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


def _fitted(head: str, rest: str) -> str:
    """A line that is not cut on a narrow terminal, but continued below."""
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    words = on_one_line(rest, 10_000)
    below = " " * (len(head) if wide - len(head) >= NARROWEST else 4)
    return textwrap.fill(head + words, max(wide, 40), subsequent_indent=below, break_long_words=False,
                         break_on_hyphens=False, drop_whitespace=True)  # fmt: skip
