"""The second step of a call's path: from the arguments as the model wrote them to validated params."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.toolbox import model_messages

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.compiling.schema_params import SchemaParams
    from toolcrib.repair import Edit
    from toolcrib.result import ToolResult

__all__ = ["Arguments", "decode"]

Arguments = tuple[Any, Any, "tuple[Edit, ...]"]
"""Decoded arguments: the validated params, their JSON form (text or data), and the repairs that they needed."""


def decode(
    name: str, raw: Any, definition: Definition, turn_schema: SchemaParams | None
) -> Arguments | ToolResult:
    """Validated params of what the model wrote, repaired only where strict validation fails; or the refusal.

    A `turn_schema` (what a dynamic schema allows in this turn) holds in addition to the tool's own schema.
    """
    if type(raw) is str and turn_schema is None:
        try:
            given = definition.params.parse(raw)
        except (ValueError, TypeError):  # the latter for half a surrogate pair in the text
            pass
        else:
            if definition.needs_care is None or not definition.needs_care(raw):
                return given, raw, ()
    return _decode_with_care(name, raw, definition, turn_schema)


def _decode_with_care(
    name: str, raw: Any, definition: Definition, turn_schema: Any
) -> Arguments | ToolResult:
    """The slow way: read the text with its deviations from JSON and validate; else repair, and validate once more."""
    from pydantic_core import from_json, to_json

    from toolcrib.json_text.lenient_grammar import is_json
    from toolcrib.repair import Unrepairable, repair

    params = definition.params
    accepted: list[Any] = []

    def validated(value: Any) -> Any:
        text = to_json(value, inf_nan_mode="constants")
        given = params.parse(text)
        if turn_schema is not None:
            turn_schema.validate(value)
        return given

    def accepts(value: Any) -> bool:
        try:
            accepted[:] = [validated(value)]
        except (ValueError, TypeError, RecursionError):
            return False
        return True

    if not isinstance(raw, str | bytes) and not is_json(raw):
        try:  # another tool may give what is no JSON yet: dates, models
            raw = from_json(to_json(raw, inf_nan_mode="constants"), allow_inf_nan=False)
        except (ValueError, TypeError, RecursionError):
            pass
    repaired = repair(raw, (turn_schema or params).schema, tool=name, accepts=accepts)
    if isinstance(repaired, Unrepairable):
        return model_messages.unreadable_arguments(name, repaired.reason)
    if other := _meant_for(repaired.edits, name):
        return model_messages.unreadable_arguments(
            name, f"They are wrapped in a call of another tool, {other}."
        )
    value = repaired.value
    try:
        return accepted[0] if accepted else validated(value), value, repaired.edits
    except (ValueError, RecursionError) as problem:
        fields = params.explain(problem, value) if isinstance(problem, ValueError) else ()
        if turn_schema is not None and not any(field.path for field in fields):
            fields = turn_schema.explain(problem, value)
        return model_messages.invalid_arguments(name, fields)


def _meant_for(edits: tuple[Edit, ...], name: str) -> str:
    """The name of another tool in a wrapper around the arguments; "" if there is none."""
    from toolcrib.repair import NAMES

    for edit in edits:
        if edit.kind == "unwrapped" and isinstance(edit.before, dict):
            named = [edit.before[key] for key in NAMES if edit.before.get(key) and key in edit.before]
            return next((other for other in named if other != name), "")
    return ""
