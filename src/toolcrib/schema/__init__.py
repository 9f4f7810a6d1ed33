"""The schema that a model is shown: a canonical form, a dialect per provider, and Markdown."""

from .canonical import Loss, SchemaError, clean
from .dialects import DIALECTS, Dialect
from .linting import LintFinding, lint
from .lower import to_dialect
from .markdown import Described, to_markdown

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
