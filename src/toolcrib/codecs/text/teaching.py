"""Pieces of the prompt sections that teach a format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.codecs.text.escaping import escape_markers, escape_markers_in_json
from toolcrib.codecs.wire_json import arguments_object

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec


def declaration(spec: ToolSpec) -> dict[str, Any]:
    """A tool as the JSON on which most model families were trained."""
    return {"name": spec.name, "description": spec.description, "parameters": spec.input_schema}


def json_tools(specs: Iterable[ToolSpec], *, wrapped: bool = True) -> str:
    """The tools as JSON, a line each; `wrapped` as `{"type": "function", "function": ...}`."""
    said = map(declaration, specs)
    return "\n".join(
        escape_markers_in_json({"type": "function", "function": one} if wrapped else one) for one in said
    )


def json_tool_list(specs: Iterable[ToolSpec], *, wrapped: bool = True) -> str:
    """The tools as one JSON list."""
    return "[" + json_tools(specs, wrapped=wrapped).replace("\n", ", ") + "]"


def markdown_tools(specs: Iterable[ToolSpec]) -> str:
    """The tools as a Markdown list, for families that were not trained on JSON."""
    from toolcrib.schema.markdown import to_markdown

    return escape_markers(to_markdown(specs)).rstrip("\n")


def call_arguments(call: ToolCall) -> Mapping[str, Any]:
    """A call's arguments as an object, for writing it into the history."""
    return arguments_object(call.arguments)


def call_arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON text in which no word closes a tag."""
    return escape_markers_in_json(json.dumps(call_arguments(call), ensure_ascii=False, default=str))
