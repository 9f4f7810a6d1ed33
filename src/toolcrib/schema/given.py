"""Errors for callers who hand in something other than a JSON Schema or specs of tools: they say what to write."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["check_spec", "listed_specs", "why_no_schema"]


def why_no_schema(given: Any) -> str:
    """The message for something that is no JSON Schema, such as a model or a tool. It says what to write."""
    what, hint = type(given).__name__, ""
    if isinstance(given, type):
        what = f"the type {given.__name__}"
        hint = f": write {given.__name__}.model_json_schema()" if hasattr(given, "model_json_schema") else ""
    elif hasattr(given, "input_schema"):
        hint = ": write spec.input_schema"
    if hasattr(given, "facts"):
        what, hint = "a tool", ": write tool.spec.input_schema"
    return f"a JSON Schema must be an object, not {what}{hint}"


def check_spec(given: Any) -> None:
    """Raises TypeError for what is no spec, such as a tool."""
    if not hasattr(given, "input_schema"):
        raise TypeError(f"expected a spec, as in search.spec; got {reprlib.repr(given)}")


def listed_specs(given: Any) -> list[Any]:
    """The specs as a list. Raises TypeError for anything else, such as tools or a single spec."""
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise TypeError(
            f"expected a list of specs, as in [search.spec, count.spec]; got {reprlib.repr(given)}"
        )
    specs = list(given)
    for spec in specs:
        check_spec(spec)
    return specs
