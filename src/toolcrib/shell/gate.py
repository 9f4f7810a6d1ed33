"""The text of a command before anything reads it: what a person could not see is refused.

A terminal, a person and a shell must see the same command. Control and format characters make them differ.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from toolcrib.visible import WITHOUT_GLYPH

LONGEST = 10_000  # bytes; nobody reviews more
PADDING = re.compile(r"[ \t]{60,}|(?:[ \t]*\n){20,}")  # pushes the rest off the screen
# Marks and letters that are drawn as nothing, or as a blank.
SHAPELESS = re.compile(f"[{WITHOUT_GLYPH}\ufe0f]")
PLAIN = re.compile(r"[\n\t -~]*")

REFUSED = {
    "Cc": "a control character",
    "Cf": "an invisible character",
    "Cs": "half of a character",
    "Co": "a private character",
    "Cn": "an unassigned character",
}
ODD = {"Zs": "an unusual space", "Zl": "an unusual line end", "Zp": "an unusual line end"}


class Stopped(Exception):
    """Why a command is not plain. `deny` is for what nobody should be asked about."""

    def __init__(self, reason: str, verdict: Literal["ask", "deny"] = "ask") -> None:
        super().__init__(reason)
        self.reason = reason
        self.verdict: Literal["ask", "deny"] = verdict


def gate(text: str) -> None:
    """Raises Stopped for a text that cannot be reviewed or that would show otherwise than it runs."""
    if not PLAIN.fullmatch(text):
        for sign in text:
            _check(sign)
    if len(text) > LONGEST or len(text.encode()) > LONGEST:
        raise Stopped(f"longer than {LONGEST:,} bytes")
    if PADDING.search(text):
        raise Stopped("padding that can hide a part of it")
    if not text.strip():
        raise Stopped("no command")


def _check(sign: str) -> None:
    if " " <= sign <= "~" or sign in "\n\t":
        return
    kind = unicodedata.category(sign)
    if kind in REFUSED:
        raise Stopped(f"contains {REFUSED[kind]} (U+{ord(sign):04X})", "deny")
    if kind in ODD:
        raise Stopped(f"contains {ODD[kind]} (U+{ord(sign):04X})")
    if SHAPELESS.match(sign):
        raise Stopped(f"contains a character without a shape (U+{ord(sign):04X})")


class Unknown(Stopped):
    """A program or sub-command of which nothing is known: a person may get to know it."""
