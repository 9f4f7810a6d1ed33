"""A value that the source may not say."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, Field, model_validator

__all__ = ["Maybe"]

T = TypeVar("T")


class Maybe(BaseModel, Generic[T]):
    """A value, or why there is none: an output type for sources that may not say what is asked for.

    >>> Maybe[int].model_validate({"why_not": "no price is named"}).value is None
    True
    """

    why_not: str = Field("", description="Why the source does not say it; empty where it does.")
    value: T | None = Field(None, description="The value; null where the source does not say it.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Maybe[T]:
        if self.value is None and not self.why_not.strip():
            raise ValueError("say in why_not why the source does not say it, or give the value")
        return self
