"""Arguments that do not fit as they stand: read with their deviations from JSON, repaired, or refused in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.repair import NAMES, Edit, Unrepairable, repair
from toolcrib.toolbox import model_messages

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.result import ToolResult

__all__ = ["decode_with_care"]


def decode_with_care(
    name: str, raw: Any, definition: Definition, turn_schema: Any
) -> tuple[Any, Any, tuple[Edit, ...]] | ToolResult:
    """The slow way: read the text with its deviations from JSON and validate; else repair, and validate once more."""
    from pydantic_core import from_json, to_json

    from toolcrib.json_text.lenient_grammar import is_json

    params = definition.params
    if (
        isinstance(raw, str)
        and not raw.lstrip().startswith("{")
        and (free := _free_text_parameter(definition))
    ):
        raw = {free: raw}
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


def _free_text_parameter(definition: Definition) -> str:
    """The one parameter of a tool that is declared to a provider as taking free text; "" for any other tool."""
    if not any(own.get("type", "function") != "function" for own in definition.facts.extras.values()):
        return ""
    properties: dict[str, Any] = definition.params.schema.get("properties", {})
    names = [name for name, schema in properties.items() if schema.get("type") == "string"]
    return names[0] if len(properties) == len(names) == 1 else ""


def _meant_for(edits: tuple[Edit, ...], name: str) -> str:
    """The name of another tool in a wrapper around the arguments; "" if there is none."""
    for edit in edits:
        if edit.kind == "unwrapped" and isinstance(edit.before, dict):
            named = [edit.before[key] for key in NAMES if edit.before.get(key) and key in edit.before]
            return next((other for other in named if other != name), "")
    return ""
