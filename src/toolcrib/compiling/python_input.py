"""Types behind a `before` or `wrap` validator, which are validated from Python's objects and not from JSON.

JSON has no set, tuple, bytes or time: strict validation of JSON takes a list or a text for them. Strict validation of
the list or text that such a validator hands on refuses it, so each type here takes that as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from pydantic_core import PydanticKnownError, SchemaError, SchemaValidator, core_schema, to_json

__all__ = ["BEFORE_VALIDATORS", "JSON_READERS"]

BEFORE_VALIDATORS: Final = ("function-before", "function-wrap")  # the kinds of their core schemas
JSON_TYPES: Final = (str, int, float, list, dict)  # what JSON has for the types below


def _from_list(core: Any) -> Any:
    """A set that also takes a list."""
    make: Any = set if core["type"] == "set" else frozenset
    limits = {key: core[key] for key in ("type", "min_length", "max_length") if key in core}
    limit = SchemaValidator(cast("Any", limits)).validate_python

    def check(given: Any, items: Any) -> Any:
        read = items(list(given) if isinstance(given, set | frozenset) else given)
        try:
            made = make(read)
        except TypeError:
            raise PydanticKnownError("set_item_not_hashable") from None
        return limit(made)

    of_items: Any = {key: core[key] for key in ("items_schema",) if key in core}
    shown = {"pydantic_js_functions": [lambda _, handler: handler(core)], **(core.get("metadata") or {})}
    return core_schema.no_info_wrap_validator_function(
        check, cast("Any", {"type": "list", **of_items}), metadata=shown, ref=core.get("ref")
    )


def _from_tuple(core: Any) -> Any:
    """A tuple that also takes a list."""

    def check(given: Any, read: Any) -> Any:
        return read(tuple(given) if isinstance(given, list) else given)

    return _around(core, check)


def _from_json(core: Any) -> Any:
    """A type that also takes what JSON has for it, by writing that as JSON and reading it."""
    try:
        read_json = SchemaValidator(core, None, False).validate_json
    except SchemaError:  # it refers to a definition that is elsewhere
        return core

    def check(given: Any, read: Any) -> Any:
        return read_json(to_json(given), strict=True) if type(given) in JSON_TYPES else read(given)

    return _around(core, check)


def _around(core: Any, check: Callable[[Any, Any], Any]) -> Any:
    """A core schema with a function around it; references to it lead to the whole."""
    inner = {key: value for key, value in core.items() if key != "ref"}
    return core_schema.no_info_wrap_validator_function(check, cast("Any", inner), ref=core.get("ref"))


JSON_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "set": _from_list,
    "frozenset": _from_list,
    "tuple": _from_tuple,
    **dict.fromkeys(("time", "bytes", "complex", "fraction", "deque", "ordered-dict", "counter"), _from_json),
}
