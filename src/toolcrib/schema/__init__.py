"""The schema a model is shown: one canonical form, one dialect per provider, and the same in words."""

from .canonical import Loss, SchemaError, clean
from .dialects import DIALECTS, Dialect
from .lower import to_dialect

__all__ = ["DIALECTS", "Dialect", "Loss", "SchemaError", "clean", "to_dialect"]
