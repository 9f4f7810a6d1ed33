"""The second step of a call's path: from the arguments as the model wrote them to validated params."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.effect import Effect
from toolcrib.toolbox import model_messages

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.compiling.schema_params import SchemaParams
    from toolcrib.repair import Edit
    from toolcrib.result import ToolResult

__all__ = ["Arguments", "decode"]

READ = Effect.READ  # looked up once: an enum's members are slow to reach on 3.11

BLANK = ("", "b''", ".")  # what an empty string looks like as text, bytes and path
NOT_THERE = object()

Arguments = tuple[Any, Any, "tuple[Edit, ...]"]
"""Decoded arguments: the validated params, their JSON form (text or data), and the repairs that they needed."""


def decode(
    name: str, raw: Any, definition: Definition, turn_schema: SchemaParams | None
) -> Arguments | ToolResult:
    """Validated params of what the model wrote, repaired only where strict validation fails; or the refusal.

    A `turn_schema` (what a dynamic schema allows in this turn) holds in addition to the tool's own schema.
    """
    params = definition.params
    if type(raw) is str and turn_schema is None:
        try:
            given = params.parse(raw)
        except (ValueError, TypeError):  # the latter for half a surrogate pair in the text
            pass
        else:
            names = definition.optional_text
            plain = not names or not _has_blank(given, names, raw)
            if plain and (definition.facts.effect is READ or not _repeats_a_key(raw)):
                return given, raw, ()
    return _decode_with_care(name, raw, definition, turn_schema)


def _repeats_a_key(text: str) -> bool:
    """Whether an object in the text gives one key two different values, so that nobody knows which is meant."""
    import json

    from toolcrib.json_text.values import same_json

    def look(pairs: list[tuple[str, Any]]) -> None:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if not same_json(seen.setdefault(key, value), value):
                raise _Repeated

    try:
        json.loads(text or "{}", object_pairs_hook=look)
    except _Repeated:
        return True
    return False


class _Repeated(Exception):
    pass


def _has_blank(given: Any, names: tuple[str, ...], raw: str) -> bool:
    """Whether an optional parameter may have come as an empty string, which means that it was left out."""
    for name in names:
        value = given.get(name) if type(given) is dict else getattr(given, name, NOT_THERE)
        if value is NOT_THERE:  # it goes by another name in Python: look at the text
            return '""' in raw
        if value is not None and str(value) in BLANK:
            return True
    return False


def _decode_with_care(
    name: str, raw: Any, definition: Definition, turn_schema: Any
) -> Arguments | ToolResult:
    """The slow way: drop empty optional parameters and validate; else repair, and validate once more."""
    from pydantic_core import from_json, to_json

    from toolcrib.repair import Unrepairable, drop_empty_optionals, repair

    params = definition.params
    schema = (turn_schema or params).schema

    def validated(value: Any) -> Any:
        text = to_json(value, inf_nan_mode="constants")
        given = params.parse(text)
        if turn_schema is not None:
            turn_schema.validate(value)
        return given

    try:
        value = from_json(raw or "{}", allow_inf_nan=False) if isinstance(raw, str | bytes) else raw
        clear = definition.facts.effect is READ or not isinstance(raw, str) or not _repeats_a_key(raw)
        if isinstance(value, dict) and clear:
            value = drop_empty_optionals(value, schema)
            return validated(value), value, ()
    except (ValueError, TypeError, RecursionError):
        pass
    repaired = repair(raw, schema)
    if isinstance(repaired, Unrepairable):
        return model_messages.unreadable_arguments(name, repaired.reason)
    if other := _meant_for(repaired.edits, name):
        return model_messages.unreadable_arguments(
            name, f"They are wrapped in a call of another tool, {other}."
        )
    value = repaired.value
    if isinstance(value, dict):
        value = drop_empty_optionals(value, schema)
    try:
        return validated(value), value, repaired.edits
    except (ValueError, RecursionError) as problem:
        fields = params.explain(problem, value) if isinstance(problem, ValueError) else ()
        if turn_schema is not None and not any(field.path for field in fields):
            fields = turn_schema.explain(problem, value)
        return model_messages.invalid_arguments(name, fields)


def _meant_for(edits: tuple[Edit, ...], name: str) -> str:
    """The name of another tool in a wrapper around the arguments; "" if there is none."""
    for edit in edits:
        if edit.kind == "unwrapped" and isinstance(edit.before, dict):
            named = edit.before.get("name") or name
            return "" if named == name else str(named)
    return ""
