"""The schema a model is shown: one canonical form, one dialect per provider, and the same in words."""

from .canonical import Loss, SchemaError, clean

__all__ = ["Loss", "SchemaError", "clean"]
