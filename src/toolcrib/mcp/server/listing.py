"""What `tools/list` says: the specs of a toolbox's tools as tools of the protocol, page by page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolcrib.spec import ToolSpec

__all__ = ["BadCursor", "output_schema_of", "page_of", "tool_of"]


class BadCursor(ValueError):
    """The client sent a cursor that no server of this kind gave."""


def tool_of(spec: ToolSpec, *, any_json: bool) -> dict[str, Any]:
    """One tool in its wire form. `any_json`: structured content may be any JSON value (since 2026-07-28)."""
    data: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": {"type": "object", **spec.input_schema},
        "annotations": dict(spec.annotations),
    }
    if spec.title:
        data["title"] = spec.title
    output = output_schema_of(spec, any_json=any_json)
    if output is not None:
        data["outputSchema"] = output
    if own := spec.extras.get("mcp"):
        data["_meta"] = dict(own)
    return data


def output_schema_of(spec: ToolSpec, *, any_json: bool) -> dict[str, Any] | None:
    """The schema of a tool's structured content. Where that must be an object, another value is its `result`."""
    schema = spec.output_schema
    if schema is None or any_json or schema.get("type") == "object":
        return schema
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped: dict[str, Any] = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


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


def sorted_specs(specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Specs by name: the same tools give the same list, whatever order they were added in."""
    return sorted(specs, key=lambda spec: spec.name)
