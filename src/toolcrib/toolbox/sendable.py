"""What a result may hold: parts that can be sent, made of whatever a tool or a middleware gave."""

from __future__ import annotations

import os
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from toolcrib.content import Audio, File, Image, Json, Text
from toolcrib.dataclass import replace
from toolcrib.errors import ErrorCode
from toolcrib.json_text.half_pairs import is_about_half_pairs, without_half_pairs
from toolcrib.result import ToolResult

__all__ = ["as_part", "result_of", "to_json_text"]


def result_of(given: ToolResult) -> ToolResult:
    """A result that a user's code made, as an object of its own; TypeError or ValueError where it cannot be sent."""
    result = ToolResult.copy(given)
    result.parts = tuple(as_part(item) for item in given.parts)
    if result.code is not None:
        result.code = ErrorCode(result.code)
    return result


def to_json_text(value: Any) -> str:
    """Any value as compact JSON: models, dataclasses, dates, bytes (base64), sets."""
    try:
        return to_json(value, bytes_mode="base64", inf_nan_mode="strings", fallback=_plain).decode()
    except PydanticSerializationError as problem:
        if not is_about_half_pairs(problem):
            raise
        data = to_jsonable_python(
            without_half_pairs(value), bytes_mode="base64", inf_nan_mode="strings", fallback=_plain
        )
        return to_json(without_half_pairs(data)).decode()


def _plain(value: Any) -> Any:
    """The public attributes of a plain object, as JSON. TypeError for objects without any, exceptions and types."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    public = {name: item for name, item in getattr(value, "__dict__", {}).items() if not name.startswith("_")}
    if not public or isinstance(value, BaseException | type) or callable(value):
        raise TypeError(f"a result of type {type(value).__name__} is no JSON: return text, data or a model")
    return public


def as_part(item: Any) -> Any:
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
