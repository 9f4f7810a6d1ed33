"""The cost of an answer, by a dated price table (`prices.toml`); a user's own file takes precedence."""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from toolcrib.dataclass import dataclass, replace
from toolcrib.messages import Response, Usage
from toolcrib.text_file import read_text_file

VARIABLE = "TOOLCRIB_PRICES"
MILLION = 1_000_000
RATES = ("input", "output", "cache_read", "cache_write")
ROW_KEYS = frozenset({"model", "above", "until", "hours", "known", *RATES})
# How providers name the versions of one model.
VERSION = r"(-latest|[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4}))?"


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens; None where cached tokens have no price of their own and cost as much as
    input.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        dollars = (
            max(0, usage.input_tokens - read - written) * self.input
            + read * (self.input if self.cache_read is None else self.cache_read)
            + written * (self.input if self.cache_write is None else self.cache_write)
            + usage.output_tokens * self.output
        )
        return dollars / MILLION


@dataclass(frozen=True, slots=True)
class Price:
    """A row of the price table: what a model costs, and when the price applies. `known` is the day it was
    looked up.
    """

    model: str
    rates: Rates
    known: str = ""
    above: tuple[int, Rates] | None = None
    until: date | None = None
    hours: tuple[tuple[int, int], ...] = ()

    def fits(self, model: str, at: datetime) -> bool:
        """Whether the row applies to this model at this time."""
        if not _pattern(self.model).fullmatch(model.lower()):
            return False
        if self.until is not None and at.date() > self.until:
            return False
        return not self.hours or any(start <= at.hour < end for start, end in self.hours)

    def of(self, usage: Usage) -> float:
        """The cost of this usage in US dollars."""
        if self.above is not None and usage.input_tokens > self.above[0]:
            return self.above[1].of(usage)
        return self.rates.of(usage)


class Prices:
    """Price tables by provider; earlier tables take precedence. Raises ValueError that names an invalid row."""

    def __init__(self, *tables: Mapping[str, Any], known: str = "") -> None:
        self.known = known or next((str(table["known"]) for table in tables if table.get("known")), "")
        self._rows: dict[str, list[Price]] = {}
        for table in tables:
            for provider, section in table.items():
                if provider != "known":
                    self._add(provider, section, str(table.get("known", "")))

    @classmethod
    def load(cls, *tables: str | Path | Mapping[str, Any]) -> Prices:
        """Prices that take precedence over the built-in table: TOML files, or mappings of the same form. Raises
        OSError or ValueError for a file that cannot be read.
        """
        import tomllib

        read: list[Mapping[str, Any]] = []
        for table in (*tables, Path(__file__).with_name("prices.toml")):
            if isinstance(table, Mapping):
                read.append(table)
                continue
            try:
                read.append(tomllib.loads(read_text_file(table)))
                cls(read[-1])
            except ValueError as problem:
                raise ValueError(f"prices in {table}: {problem}") from None
        return cls(*read, known=str(read[-1].get("known", "")))

    def of(self, provider: str, model: str, at: datetime | None = None) -> Price | None:
        """The price of a model at a time (default: now); None where it is unknown."""
        at = datetime.now(UTC) if at is None else at
        return next((price for price in self._rows.get(provider, ()) if price.fits(model, at)), None)

    def _add(self, provider: str, section: Any, known: str) -> None:
        if not isinstance(section, Mapping):
            raise ValueError(f"{provider}: expected a table with prices, got {section!r}")
        rows = section.get("prices", [])
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            raise ValueError(f"{provider}: prices must be a list of tables, got {rows!r}")
        self._rows.setdefault(provider, []).extend(
            _price(row, f"{provider}, row {number}", known) for number, row in enumerate(rows, 1)
        )


def cost_of(
    usage: Usage, provider: str, model: str, *, prices: Prices | None = None, at: datetime | None = None
) -> float | None:
    """The cost of an answer's tokens in US dollars; None where tokens or price are unknown.

    `prices` defaults to the file that TOOLCRIB_PRICES names, followed by the built-in table. Raises OSError or
    ValueError if that file cannot be read.

    >>> cost_of(Usage(1_000_000, 100_000), "openai", "gpt-4o-mini")
    0.21
    """
    if not usage.total_tokens:
        return None
    price = (prices or usual_prices()).of(provider, model, at)
    return None if price is None else round(price.of(usage), 12)


def priced(response: Response, provider: str, model: str, prices: Prices | None = None) -> Response:
    """The answer with its cost filled in, where the provider stated no cost and the model's price is known."""
    if response.usage.cost is not None:
        return response
    try:
        costs = (cost_of(response.usage, provider, name, prices=prices) for name in (response.model, model))
        cost = next((cost for cost in costs if cost is not None), None)
    except (OSError, ValueError) as problem:  # a run does not end because nobody knows what it costs
        warnings.warn(f"the cost is unknown: {problem}", RuntimeWarning, stacklevel=2)
        return response
    return response if cost is None else replace(response, usage=replace(response.usage, cost=cost))


def usual_prices() -> Prices:
    """The default prices: the file that TOOLCRIB_PRICES names, if any, and the built-in table."""
    return _loaded(os.environ.get(VARIABLE, ""))


@functools.cache
def _loaded(path: str) -> Prices:
    return Prices.load(*([path] if path else []))


@functools.cache
def _pattern(model: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, model.lower().split("*"))) + VERSION)


def _price(row: Any, where: str, known: str) -> Price:
    if not isinstance(row, Mapping) or not isinstance(row.get("model"), str):
        raise ValueError(f"{where}: expected a table with a model, got {row!r}")
    if unknown := sorted(set(row) - ROW_KEYS):
        raise ValueError(f"{where}: unknown {', '.join(unknown)}; a row has {', '.join(sorted(ROW_KEYS))}")
    above = row.get("above")
    if above is not None and (not isinstance(above, Mapping) or not isinstance(above.get("tokens"), int)):
        raise ValueError(f"{where}: above must be a table with tokens, input and output, got {above!r}")
    try:
        until = None if row.get("until") is None else date.fromisoformat(str(row["until"]))
        hours = tuple((int(start), int(end)) for start, end in row.get("hours", ()))
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{where}: {problem}") from None
    return Price(
        row["model"],
        _rates(row, where),
        str(row.get("known", known)),
        None if above is None else (above["tokens"], _rates(above, f"{where}, above")),
        until,
        hours,
    )


def _rates(row: Mapping[str, Any], where: str) -> Rates:
    rates: dict[str, float] = {}
    for name in RATES:
        value = row.get(name)
        if value is None and name not in ("input", "output"):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ValueError(f"{where}: {name} must be dollars per million tokens, got {value!r}")
        rates[name] = float(value)
    return Rates(**rates)
