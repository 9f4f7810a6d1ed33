"""What is known of a model without asking its provider: class, address, features, price, and what is missing."""

from __future__ import annotations

from dataclasses import fields
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from toolcrib.codecs.codec import Features
from toolcrib.models.prices import VARIABLE, Price, Prices, usual_prices
from toolcrib.models.providers import host_of, key_variables
from toolcrib.visible import on_one_line


def model_facts(model: Any) -> dict[str, Any]:
    """The facts of a model as JSON data; no key is among them."""
    cls = type(model).__name__
    facts: dict[str, Any] = {"name": model.name, "class": cls}
    codec = getattr(model, "codec", None)
    if codec is None:
        return {**facts, "missing": []}
    format = getattr(getattr(codec, "format", None), "name", None)
    base = getattr(codec, "base", codec)
    price = _price_of(model)
    address = plain_address(getattr(model, "base_url", "") or "")
    return facts | {
        "address": address,
        "keys": list(key_variables(model.base_url)) if address else [],
        "wire_format": base.name,
        "text_format": format,
        "dialect": getattr(base, "dialect", None),
        "features": _features(codec.features),
        "price": None if price is None else _rates(price),
        "missing": missing_of(model),
    }


def missing_of(model: Any) -> list[str]:
    """What a model certainly lacks before anything is sent: packages, a key. Nothing is imported to find out."""
    packages = {name.partition(".")[0] for name in getattr(model, "modules", ())}
    missing = [
        f"the {package} package: pip install 'toolcrib[{model.extra}]'"
        for package in sorted(packages)
        if find_spec(package) is None
    ]
    lacks = model.missing() if hasattr(model, "missing") else None
    if lacks is not None:
        missing.append(f"a {lacks.what}: set {' or '.join(lacks.variables)}")
    return missing


def _features(features: Features) -> dict[str, Any]:
    found = {item.name: getattr(features, item.name) for item in fields(features)}
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in found.items()}


def _price_of(model: Any) -> Price | None:
    prices = getattr(model, "prices", None) or current_prices()[0]
    price: Price | None = prices.of(model.codec.provider, model.model)
    return price


def current_prices() -> tuple[Prices, str]:
    """The prices that count, and what is wrong with the user's own file of prices; "" if nothing is."""
    try:
        return usual_prices(), ""
    except (OSError, ValueError) as problem:
        return Prices.load(), f"{VARIABLE}: {problem}"


def _rates(price: Price) -> dict[str, Any]:
    rates = {item.name: getattr(price.rates, item.name) for item in fields(price.rates)}
    return {**{name: rate for name, rate in rates.items() if rate is not None}, "known": price.known}


def plain_address(url: str) -> str:
    """An address without credentials and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{host_of(url)}{parts.path}" if parts.netloc else on_one_line(url)
