"""What `tools/list` says: the specs of a toolbox's tools as tools of the protocol, page by page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.mcp.content import is_wrapped
from toolcrib.spec import ToolSpec

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.toolbox.tool_list import ToolList

__all__ = ["BadCursor", "mirrored_schemas", "page_of", "tools_of"]

HEADER = "x-mcp-header"


class BadCursor(ValueError):
    """The client sent a cursor that no server of this kind gave."""


def tools_of(listed: ToolList, *, any_json: bool) -> list[dict[str, Any]]:
    """The tools of a list in their wire form, by name, whatever order they were added in.

    `any_json`: structured content may be any JSON value, as since revision 2026-07-28.
    """
    return [_tool_of(spec, listed, any_json) for spec in sorted(listed.specs, key=lambda spec: spec.name)]


def _tool_of(spec: ToolSpec, listed: ToolList, any_json: bool) -> dict[str, Any]:
    definition = listed.entries[spec.name].compiled
    given: Any = None
    if definition is not None and spec.name not in listed.turn_schemas:
        given = getattr(definition.params, "raw", None)  # an author's own JSON Schema is not rewritten
    data: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": {"type": "object", **(given or spec.input_schema)},
        "annotations": dict(spec.annotations),
    }
    if spec.title:
        data["title"] = spec.title
    output = _output_schema(spec, definition, any_json)
    if output is not None:
        data["outputSchema"] = output
    if own := spec.extras.get("mcp"):
        data["_meta"] = dict(own)
    return data


def _output_schema(spec: ToolSpec, definition: Definition | None, any_json: bool) -> dict[str, Any] | None:
    """The schema of a tool's structured content; None also for one that is to be wrapped and contains itself whole."""
    schema = spec.output_schema
    if schema is None or not is_wrapped(schema, any_json=any_json):
        declared = None if definition is None else definition.facts.output_schema
        if isinstance(declared, Mapping) and (any_json or declared.get("type") == "object"):
            return dict(declared)
        return schema
    if "'$ref': '#'" in repr(schema):
        return None
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped: dict[str, Any] = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


def mirrored_schemas(listed: ToolList) -> dict[str, Any]:
    """The input schemas of tools that want arguments repeated in HTTP headers (`x-mcp-header`), by name."""
    found = {}
    for spec in listed.specs:
        definition = listed.entries[spec.name].compiled
        schema = getattr(definition.params, "raw", None) if definition is not None else None
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if isinstance(properties, Mapping) and any(
            isinstance(one, Mapping) and HEADER in one for one in properties.values()
        ):
            found[spec.name] = schema
    return found


def page_of(
    items: Sequence[Mapping[str, Any]], size: int, cursor: str | None, key: str = "name"
) -> tuple[Sequence[Mapping[str, Any]], str | None]:
    """A page of items that are sorted by `key`, and the cursor of the next. Raises BadCursor.

    A cursor names the last item of its page, so that a list that changes meanwhile is neither cut nor doubled.
    """
    start = 0
    if cursor is not None:
        last = _read(cursor)
        start = next((n for n, item in enumerate(items) if str(item[key]) > last), len(items))
    page = items[start : start + size]
    more = start + size < len(items)
    return page, _cursor(str(page[-1][key])) if more and page else None


def _cursor(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode()


def _read(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        raise BadCursor("the cursor was not given by this server; list again from the start") from None
