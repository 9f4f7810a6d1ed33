"""The parameters of the tool `python`, and its result as data."""

from __future__ import annotations

from pydantic import BaseModel, Field

from toolcrib.dataclass import dataclass

DEFAULT_TIMEOUT = 60
MAX_TIMEOUT = 600
MAX_CODE = 200_000  # characters


class PythonParams(BaseModel):
    code: str = Field(
        max_length=MAX_CODE,
        description="Python code. The value of a last expression is shown, as at the prompt.",
    )
    timeout: int = Field(
        DEFAULT_TIMEOUT, ge=1, le=MAX_TIMEOUT, description="Seconds after which it is interrupted."
    )
    description: str = Field("", description="What it is for, in a few words, for the person who watches.")


@dataclass(frozen=True, slots=True)
class PythonResult:
    """How code ended, as data: `error` is the name of the exception, if one was raised.

    `restarted` says that a new session was begun for this call, though there was one before.
    """

    error: str | None
    figures: int
    seconds: float
    restarted: bool = False
