"""The schema that a model is shown: a canonical form, a dialect per provider, and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.schema.canonical import Loss, SchemaError, clean
    from toolcrib.schema.dialects import DIALECTS, Dialect
    from toolcrib.schema.linting import LintFinding, lint
    from toolcrib.schema.lower import to_dialect
    from toolcrib.schema.markdown import Described, to_markdown

__all__ = [
    "DIALECTS",
    "Described",
    "Dialect",
    "LintFinding",
    "Loss",
    "SchemaError",
    "clean",
    "lint",
    "to_dialect",
    "to_markdown",
]

__getattr__ = lazy_names(
    __name__,
    {
        "canonical": ("Loss", "SchemaError", "clean"),
        "dialects": ("DIALECTS", "Dialect"),
        "linting": ("LintFinding", "lint"),
        "lower": ("to_dialect",),
        "markdown": ("Described", "to_markdown"),
    },
)
