"""From the value that a tool returned to a result for the model: text, parts, structured data."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from toolcrib.content import Audio, File, Image, Json, Text
from toolcrib.result import JsonText, ToolResult
from toolcrib.toolbox import model_messages

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition

__all__ = ["deliver", "gathered"]

MAX_OFFLOAD = 10_000_000  # bytes of a long output that are kept in its file
HEAD_SHARE = 2 / 3  # of what may be shown, the part that comes from the beginning
NONE = type(None)
PARTS = (Text, Json, Image, Audio, File)


def deliver(value: Any, definition: Definition) -> tuple[ToolResult, str]:
    """The uncapped result for a returned value, and the operator's note if the value does not match its schema."""
    kind: Any = type(value)
    output = definition.output
    if kind is str and output.schema is None:
        return ToolResult((Text(value),)), ""
    if kind is not dict and kind is not str:
        if isinstance(value, ToolResult):  # a tool may keep and return it again, so what is capped is a copy
            result = value.copy()
            result.parts = tuple(_as_part(item) for item in value.parts)
            return result, ""
        if kind is NONE and output.schema is None:
            return ToolResult((Text("Done."),)), ""
        if isinstance(value, PARTS):
            return ToolResult((_as_part(value),)), ""
        if kind in (list, tuple) and any(isinstance(item, PARTS) for item in value):
            return ToolResult(tuple(_as_part(item) for item in value)), ""
    text = output.to_json(value).decode() if output.to_json is not None else to_json_text(value)
    shown: str = value if kind is str else text
    if output.schema is None:
        return ToolResult((Text(shown),), is_data=True), ""
    problem = output.misfit(value, text)
    if problem is not None:
        return ToolResult((Text(shown + model_messages.MISFIT_NOTE),), is_data=kind is not str), problem
    return ToolResult((Text(shown),), structured=JsonText(text), is_data=kind is not str), ""


def to_json_text(value: Any) -> str:
    """Any value as compact JSON: models, dataclasses, dates, bytes (base64), sets."""
    return to_json(value, bytes_mode="base64", inf_nan_mode="strings", fallback=_plain).decode()


def _plain(value: Any) -> Any:
    """The public attributes of a plain object, as JSON. TypeError for objects without any, exceptions and types."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    public = {name: item for name, item in getattr(value, "__dict__", {}).items() if not name.startswith("_")}
    if not public or isinstance(value, BaseException | type) or callable(value):
        raise TypeError(f"a result of type {type(value).__name__} is no JSON: return text, data or a model")
    return public


def _as_part(item: Any) -> Any:
    """A part that can be sent. TypeError or ValueError for a part with contents of a wrong type."""
    if isinstance(item, Json):
        return Json(from_json(to_json_text(item.value)), item.extras)
    if isinstance(item, Image | Audio | File):
        data: Any = item.data
        if isinstance(data, bytes):
            import base64

            item = replace(item, data=base64.b64encode(data).decode())
        if not isinstance(item.data, str) or not isinstance(item.url, str):
            raise TypeError(f"the data and url of a {item.kind} must be text, got {item!r}")
        return item
    if isinstance(item, Text):
        if not isinstance(item.text, str):
            raise TypeError(f"the text of a part must be text, got {item.text!r}")
        return item
    return Text(item if isinstance(item, str) else to_json_text(item))


def gathered(items: list[Any]) -> Any:
    """The values that a generator yielded as one value: texts are joined, everything else is a list."""
    if all(isinstance(item, str) for item in items):
        return "".join(items)
    return items
