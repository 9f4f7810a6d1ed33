"""From the value that a tool returned to a result for the model: text, parts, structured data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.content import PARTS, Text
from toolcrib.json_text.half_pairs import is_about_half_pairs
from toolcrib.result import ToolResult, new_text_result
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.sendable import as_part, result_of, to_json_text

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.compiling.output import Output

__all__ = ["deliver"]

NONE = type(None)
NOT_KNOWN: Any = object()  # a value that is only known as JSON


def deliver(value: Any, definition: Definition) -> tuple[ToolResult, str]:
    """The uncapped result for a returned value, and the operator's note if the value does not match its schema."""
    kind: Any = type(value)
    output = definition.output
    if kind is str and output.schema is None:
        return new_text_result(value), ""
    if kind is not dict and kind is not str:
        if isinstance(value, ToolResult):  # a tool may keep and return it again, so what is capped is a copy
            return _given(result_of(value), definition)
        if kind is NONE and output.schema is None:
            return ToolResult((Text("Done."),)), ""
        if isinstance(value, PARTS):
            return ToolResult((as_part(value),)), ""
        if kind in (list, tuple) and any(isinstance(item, PARTS) for item in value):
            return ToolResult(tuple(as_part(item) for item in value)), ""
        if kind is not output.fitting and hasattr(kind, "__next__"):  # an iterator can be read only once
            value = list(value)
    text = _json_of(value, output)
    if kind is output.fitting:
        return new_text_result(text, is_data=True, json=text), ""
    shown: str = value if kind is str else text
    problem = None if output.schema is None else output.misfit(value, text)
    if problem:
        return new_text_result(shown + model_messages.MISFIT_NOTE, is_data=kind is not str), problem
    return new_text_result(shown, is_data=kind is not str, json=None if output.schema is None else text), ""


def _json_of(value: Any, output: Output) -> str:
    """A value as JSON, written by its declared type, or without it where that cannot write the value."""
    if output.to_json is None:
        return to_json_text(value)
    try:
        return output.to_json(value, by_alias=True, warnings=False).decode()
    except ValueError as problem:
        if is_about_half_pairs(problem):
            return output.without_half_pairs(value).decode()
    return to_json_text(value)  # with bytes that are no text, or an object of any class


def _given(result: ToolResult, definition: Definition) -> tuple[ToolResult, str]:
    """A result that the tool made itself, with a note where its structured value breaks the output schema."""
    output = definition.output
    if output.schema is None or result.structured is None or result.is_error:
        return result, ""
    problem = output.misfit(NOT_KNOWN, to_json_text(result.structured))
    if problem is None:
        return result, ""
    result.parts = (*result.parts, Text(model_messages.MISFIT_NOTE.strip()))
    result._structured = result._json = None
    return result, problem
