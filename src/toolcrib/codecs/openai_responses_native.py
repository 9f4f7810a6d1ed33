"""OpenAI Responses: calls of OpenAI's own tools that the application runs.

A tool is declared as one by its extras, `{"openai": {"type": "apply_patch"}}`. Its calls and their results are items of
their own kinds; a call is read as the free text that the same tool takes as a custom tool, and goes back as it came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcrib.codecs.wire_json import as_dict, as_str, compact
from toolcrib.dataclass import dataclass
from toolcrib.messages import Request

PLAIN_TYPES = ("function", "custom")  # of tools whose name and description are ours
FILE_HEADERS = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}
UNFINISHED = ("in_progress", "incomplete")


@dataclass(frozen=True, slots=True)
class NativeTool:
    """One of OpenAI's own tools: the type of its declaration, the field of a call's item that holds what is asked for,
    and how such an item reads as text.
    """

    type: str
    field: str
    text: Callable[[dict[str, Any]], str]


def patch_of(item: dict[str, Any]) -> str:
    """The operation of an `apply_patch_call` as a whole patch. An item that was cut off lacks the patch's last line, so
    that the tool refuses it.
    """
    operation = as_dict(item.get("operation"))
    header, path = FILE_HEADERS.get(as_str(operation.get("type"))), as_str(operation.get("path"))
    if header is None or not path or "\n" in path:
        return compact(item.get("operation"))
    diff = as_str(operation.get("diff")).removesuffix("\n") if header != "Delete" else ""
    lines = ["*** Begin Patch", f"*** {header} File: {path}", *([diff] if diff else [])]
    return "\n".join([*lines, *(["*** End Patch"] if item.get("status") not in UNFINISHED else [])])


# By the kind of a call's item.
NATIVE = {"apply_patch_call": NativeTool("apply_patch", "operation", patch_of)}


def is_native(own: dict[str, Any]) -> bool:
    """Whether the extras of a tool declare it as one of the provider's own."""
    return own.get("type", "function") not in PLAIN_TYPES


def native_names(request: Request | None, provider: str) -> dict[str, str]:
    """Maps our names to the types by which native tools are named in answers."""
    own = {spec.name: dict(spec.extras.get(provider, {})) for spec in (request.tools if request else ())}
    return {name: as_str(extras["type"]) for name, extras in own.items() if is_native(extras)}


def call_name(item: dict[str, Any]) -> str:
    """The name on the wire of the tool that an item calls."""
    native = NATIVE.get(as_str(item.get("type")))
    return as_str(item.get("name")) if native is None else native.type


def output_of(text: str, *, is_error: bool) -> dict[str, Any]:
    """The fields of an item that answers a native call."""
    return {"status": "failed" if is_error else "completed", "output": text}
