"""The second step of a call's path: from the arguments as the model wrote them to validated params.

Arguments that fit as they are, and lose nothing when they are read, need this file alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    if turn_schema is None:
        try:
            if type(raw) is dict:
                decoded = _decoded_object(raw, definition)
                if isinstance(decoded, tuple):
                    return decoded
                raw = decoded
            elif type(raw) is str:
                given = definition.params.parse(raw)
                if definition.needs_care is None or not definition.needs_care(raw):
                    return given, raw, ()
        except (ValueError, TypeError):  # the latter for half a surrogate pair in the text
            pass
    from toolcrib.toolbox.decode_with_care import decode_with_care

    return decode_with_care(name, raw, definition, turn_schema)


def _decoded_object(raw: dict[str, Any], definition: Definition) -> Arguments | dict[str, Any]:
    """The params of an object that a provider has parsed already, or the object that has to be looked at with care.

    It is written and read back once: if the result differs, the object is no plain JSON. A number that still has its
    text is equal to the result only if the text has no digits that the number loses.
    """
    from pydantic_core import from_json, to_json

    if definition.params.written_digits:
        return raw
    text = to_json(raw, inf_nan_mode="constants")
    value = from_json(text, allow_inf_nan=False)
    if value != raw or (definition.needs_care is not None and definition.needs_care(text.decode())):
        from toolcrib.json_text.lenient_grammar import is_json

        # The object may be a model of another tool with an iterator in it, which has been read by now.
        return raw if is_json(raw) else value
    return definition.params.parse(text), value, ()
