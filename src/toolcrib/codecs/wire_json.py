"""Tolerant reading of wire JSON: a value of an unexpected type counts as absent."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from toolcrib.frozen import EMPTY
from toolcrib.json_text.lenient_grammar import MAX_DEPTH, written_number
from toolcrib.messages import Opaque

MAX_REMEMBERED = 2_000  # characters of arguments of which it is remembered that they are an object
LARGEST = 10**12  # count or cost that a server can mean
SURROGATE = re.compile("[\ud800-\udfff]")


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not JSON, or too large for a number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


STANDARD = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)

_WIRE = json.JSONDecoder(parse_float=written_number)


def wire_value(text: str | bytes) -> Any:
    """The JSON value of what a provider sent; raises ValueError.

    A number that Python writes differently keeps its text, since it may be an argument of a call.
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    return _WIRE.decode(text)


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; other items are skipped."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_index(value: Any) -> int | None:
    """An index; None where the value is not an integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_count(value: Any) -> int:
    """A number of tokens; 0 where the value is not a positive integer, or larger than any count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < LARGEST else 0


def as_float(value: Any) -> float | None:
    """A number; None where the value is none, or not finite."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        return None
    return float(value) if -LARGEST < value < LARGEST else None


def as_money(value: Any) -> float | None:
    """A cost; None where the value is none. A negative one would give a run's budget back."""
    cost = as_float(value)
    return None if cost is None or cost < 0 else cost


def compact(value: Any) -> str:
    """The value as JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


@functools.lru_cache(4096)
def _is_short_json_object(text: str) -> bool:
    return json_object(text) is not None


def is_json_object(text: str) -> bool:
    """Whether a text is a JSON object, as `json_object` reads it; remembered, as each turn asks for all calls."""
    return _is_short_json_object(text) if len(text) <= MAX_REMEMBERED else json_object(text) is not None


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object of a text; None for anything else, also for NaN and infinities (1e999 is read as one), which no
    provider accepts.
    """
    try:
        value = STANDARD.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def arguments_as_written(arguments: Any) -> str | dict[str, Any]:
    """A call's arguments as the model wrote them. A value that is neither text nor object is kept as JSON
    text, which the toolbox refuses.
    """
    return arguments if isinstance(arguments, str | dict) else "" if arguments is None else compact(arguments)


def arguments_object(arguments: str | dict[str, Any]) -> dict[str, Any]:
    """A call's arguments as an object, for providers that take nothing else back.

    What cannot be read, or not be sent because it is nested too deeply or holds an infinity, is kept as text under the
    key that Anthropic's documentation suggests for it.
    """
    if not isinstance(arguments, str):
        return arguments if _is_sendable(arguments) else {"INVALID_JSON": compact(arguments)}
    if not arguments.strip():
        return {}
    value = json_object(arguments)
    # An infinity was refused as it was read, and few brackets are not nested too deeply.
    flat = arguments.count("[") + arguments.count("{") <= MAX_DEPTH
    return value if value is not None and (flat or _is_sendable(value)) else {"INVALID_JSON": arguments}


def _is_sendable(value: dict[str, Any]) -> bool:
    """Whether an object is as flat as a toolbox takes it, and has no infinity, which is not JSON."""
    level: list[Any] = [value]  # the objects and lists of one depth
    for _ in range(MAX_DEPTH + 1):
        inner = [each for item in level for each in (item.values() if isinstance(item, dict) else item)]
        if not all(map(math.isfinite, [each for each in inner if isinstance(each, float)])):
            return False
        level = [each for each in inner if isinstance(each, (dict, list, tuple))]
        if not level:
            return True
    return False


def joined(pieces: list[str]) -> str:
    """Joins the pieces of a stream; a character that was cut into two surrogates is restored."""
    text = "".join(pieces)
    if text.isascii() or not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class Encoded(list[Any]):
    """A list that `encodable` made before, and does not look into again."""


def encodable(value: Any) -> Any:
    """JSON data that can be encoded as UTF-8: a lone surrogate becomes U+FFFD, an infinity or NaN its name. Returns a
    text that needs no change itself.
    """
    if isinstance(value, str):
        if value.isascii() or not SURROGATE.search(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        made: dict[Any, Any] = {}
        for key, item in value.items():  # most items are plain texts, of which there are thousands in a body
            plain = type(item) is str and item.isascii() and type(key) is str and key.isascii()
            if plain:
                made[key] = item
            else:
                made[encodable(key)] = encodable(item)
        return made
    if isinstance(value, list | tuple):
        return value if isinstance(value, Encoded) else [encodable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value


def own_extras(thing: Any, provider: str) -> dict[str, Any]:
    """The extras of a part, message, call or result for one provider; empty without any, or for None."""
    extras = getattr(thing, "extras", None)
    return as_dict(extras.get(provider)) if extras else {}


def extras_for(provider: str, own: dict[str, Any]) -> Mapping[str, Any]:
    """The extras of what has data of one provider alone, or none."""
    return {provider: own} if own else EMPTY


def own_item(part: Any, provider: str) -> dict[str, Any] | None:
    """The item of an `Opaque` part of this provider; None for any other part, and for what is no object."""
    mine = isinstance(part, Opaque) and part.provider == provider
    return as_dict(part.data) or None if mine else None
