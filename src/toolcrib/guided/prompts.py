"""What a model is told of a constraint that no field of the request says."""

from __future__ import annotations

import json
from typing import Any

from toolcrib.guided.constraints import Choice, Grammar, Regex, Tags, ToolCalls
from toolcrib.guided.json_schema import JsonSchema
from toolcrib.guided.roots import needs_wrapper, wrapped

__all__ = ["prompt_for"]


def prompt_for(constraint: Any, sent: JsonSchema | None = None) -> str:
    """Instructions for the model; `sent` is the schema where the server's JSON mode carries another constraint."""
    if sent is not None:
        schema = wrapped(sent.schema) if needs_wrapper(sent.schema) else sent.schema
        return _json(schema)
    if isinstance(constraint, JsonSchema):
        return _json(constraint.schema)
    if isinstance(constraint, ToolCalls):
        from toolcrib.guided.merged import merged_schema

        return _json(merged_schema(constraint))
    if isinstance(constraint, Choice):
        listed = "\n".join(constraint.options)
        return f"Answer with exactly one of these, and nothing else:\n{listed}"
    if isinstance(constraint, Regex):
        return (
            "Answer with a text that this regular expression matches as a whole, and nothing else:\n"
            f"{constraint.pattern}"
        )
    if isinstance(constraint, Grammar):
        return f"Answer with a text of this grammar, and nothing else:\n{constraint.text}"
    assert isinstance(constraint, Tags)
    forms = "\n".join(f"{tag.begin}{_compact(tag.schema)}{tag.end}" for tag in constraint.tags)
    return (
        f"Where you write one of these forms, fill in JSON that fits the schema between its marks:\n{forms}"
    )


def _json(schema: Any) -> str:
    return (
        "Answer with one JSON value and nothing else: no words around it, no code fence. "
        f"It must fit this JSON Schema:\n{_compact(schema)}"
    )


def _compact(schema: Any) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
