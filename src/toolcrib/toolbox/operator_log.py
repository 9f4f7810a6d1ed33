"""What the operator is told and the model is not: crashes in full, tools that were set aside, broken approvers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib.compiling.annotations import innermost
from toolcrib.events import Notice
from toolcrib.sink import EventSink

if TYPE_CHECKING:
    from toolcrib.secrets.masking import Masking

__all__ = ["Mask", "OperatorLog", "log_failure", "mask_of", "shown_value", "unmasked"]

T = TypeVar("T")
WARNED: dict[Any, Any] = {}  # what Python's warnings remember, so as to say each of them once

Mask = Callable[[Any], Any]
"""Takes secrets out of a text or of data."""


def unmasked(value: T) -> T:
    """The mask of a toolbox that has no secrets."""
    return value


def mask_of(masking: Masking | None) -> Mask:
    """The function that takes a toolbox's secrets out of texts and data. Without masking it changes nothing."""
    return unmasked if masking is None else masking.mask


def shown_value(value: Any) -> str:
    """The type and the beginning of a value that code of a user gave, whatever its own text does."""
    try:
        return f"{type(value).__name__} {str(value)[:60]!r}"
    except Exception:
        return type(value).__name__


def log_failure(what: str, mask: Mask, problem: BaseException | None = None) -> None:
    """Log an exception, or the one that is being handled, whole and without secrets."""
    import logging
    import sys
    import traceback

    trace = "".join(traceback.format_exception(problem or sys.exception()))
    logging.getLogger("toolcrib").error("%s", mask(f"{what}:\n{trace}"))


class OperatorLog:
    """The operator's channel of one toolbox; secrets are masked in all that it says."""

    def __init__(self, sink: EventSink, mask: Mask) -> None:
        self._sink = sink
        self._mask = mask
        self._said: set[str] = set()

    def problem(self, what: str, problem: str) -> None:
        """Log something that went wrong, whole."""
        import logging

        logging.getLogger("toolcrib").error("%s", self._mask(f"{what}:\n{problem}"))

    def problem_once(self, about: str, what: str, problem: str) -> None:
        """Log something that goes wrong each time: the first time only."""
        if about not in self._said:
            self._said.add(about)
            self.problem(what, problem)

    def set_aside(self, run: str, name: str, reason: str, tool: Any = None) -> None:
        """Say once that a tool or a toolset cannot be used: a warning at the place where the tool is written."""
        if name in self._said:
            return
        self._said.add(name)
        what = name if name.startswith("toolset ") else f"tool {name!r}"
        message = self._mask(f"{what} was set aside: {reason.removeprefix(f'{what}: ')}")
        warnings.warn_explicit(message, UserWarning, *_written_at(tool), "toolcrib", WARNED)
        if self._sink:
            self._sink.emit(run, Notice(message, tool=name))


def _written_at(tool: Any) -> tuple[str, int]:
    """The file and line of a tool's function or method; no line where there is none."""
    written: Any = getattr(tool, "fn", None) or getattr(tool, "execute", None)
    code = getattr(innermost(written)[0], "__code__", None)
    return ("toolcrib", 0) if code is None else (code.co_filename, code.co_firstlineno)
