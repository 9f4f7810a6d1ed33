"""Reading JSON whose shape nobody guarantees: what is not of the wanted type counts as absent."""

from __future__ import annotations

import json
import re
from typing import Any

SURROGATE = re.compile("[\ud800-\udfff]")


def _no_number(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


STANDARD = json.JSONDecoder(parse_constant=_no_number)


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_index(value: Any) -> int | None:
    """A position; None where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_count(value: Any) -> int:
    """A number of tokens."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def as_money(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, float | int):
        return None
    return float(value) if abs(value) < 1e12 else None


def compact(value: Any) -> str:
    """A value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def json_object(text: str) -> dict[str, Any] | None:
    """The object that a text holds; None for anything else, such as one with NaN, which no provider reads."""
    try:
        value = STANDARD.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def arguments_object(arguments: str | dict[str, Any]) -> dict[str, Any]:
    """A call's arguments as an object, for providers that take nothing else back.

    What cannot be read is kept as text under the key that Anthropic's documentation suggests for it.
    """
    if isinstance(arguments, dict):
        return arguments
    if not arguments.strip():
        return {}
    value = json_object(arguments)
    return {"INVALID_JSON": arguments} if value is None else value


def joined(pieces: list[str]) -> str:
    """Pieces of a stream as one text; a character that was cut into two surrogates is whole again."""
    text = "".join(pieces)
    if text.isascii() or not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def encodable(value: Any) -> Any:
    """JSON data that can be sent as UTF-8: half a character becomes U+FFFD. The same object if all is well."""
    if isinstance(value, str):
        if value.isascii() or not SURROGATE.search(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(item) for item in value]
    return value


def own_extras(thing: Any, provider: str) -> dict[str, Any]:
    """What a part, message, call or result holds for one provider; empty for no thing at all."""
    extras = getattr(thing, "extras", None)
    return as_dict(extras.get(provider)) if extras else {}


def with_extras(body: dict[str, Any], extras: dict[str, Any]) -> dict[str, Any]:
    """A body with a request's extras for its provider: they win, but tools of the provider join ours."""
    tools = [*as_list(body.get("tools")), *as_list(extras.get("tools"))]
    return {**body, **extras, "tools": tools} if tools else {**body, **extras}
