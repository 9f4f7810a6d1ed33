"""Why a command was not proved harmless: the exception that readers and tables raise."""

from __future__ import annotations

from typing import Literal

__all__ = ["NotProved", "UnknownProgram"]


class NotProved(Exception):
    """Why a command is not plain. The verdict `deny` is for what nobody should be asked about."""

    def __init__(self, reason: str, verdict: Literal["ask", "deny"] = "ask") -> None:
        super().__init__(reason)
        self.reason = reason
        self.verdict: Literal["ask", "deny"] = verdict


class UnknownProgram(NotProved):
    """A program or sub-command that no table lists. A person may allow it once and for all."""
