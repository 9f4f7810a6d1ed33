"""Guided decoding: what an answer must look like, and how each server or local engine is held to it.

A constraint says what the answer must be; `lower` turns it into the fields of one server's request, and says what
that server guarantees; `LocalGuide` holds a local model to it token by token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.guided.bias import bias_choice
    from toolcrib.guided.constraints import Choice, Constraint, Grammar, Regex, Tag, Tags, ToolCalls
    from toolcrib.guided.json_schema import JsonSchema
    from toolcrib.guided.lower import lower, rungs_of
    from toolcrib.guided.lowered import Guarantee, Lowered, RungName
    from toolcrib.guided.reading import AnswerValue, Unusable
    from toolcrib.guided.targets import TARGETS, Rung, ServerTarget, target_named

__all__ = [
    "TARGETS",
    "AnswerValue",
    "Choice",
    "Constraint",
    "Grammar",
    "Guarantee",
    "JsonSchema",
    "Lowered",
    "Regex",
    "Rung",
    "RungName",
    "ServerTarget",
    "Tag",
    "Tags",
    "ToolCalls",
    "Unusable",
    "bias_choice",
    "lower",
    "rungs_of",
    "target_named",
]

__getattr__ = lazy_names(
    __name__,
    {
        "bias": ("bias_choice",),
        "constraints": ("Choice", "Constraint", "Grammar", "Regex", "Tag", "Tags", "ToolCalls"),
        "json_schema": ("JsonSchema",),
        "lower": ("lower", "rungs_of"),
        "lowered": ("Guarantee", "Lowered", "RungName"),
        "reading": ("AnswerValue", "Unusable"),
        "targets": ("TARGETS", "Rung", "ServerTarget", "target_named"),
    },
)
