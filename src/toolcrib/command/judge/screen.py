"""Screens the text of a command before it is parsed: characters that a person could not see are refused.

A terminal, a person and a shell must see the same command. Control and format characters make them differ.
"""

from __future__ import annotations

import re
import unicodedata

from toolcrib.command.not_proved import NotProved
from toolcrib.visible import WITHOUT_GLYPH

MAX_LENGTH = 10_000  # bytes; nobody reviews more
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


def screen(text: str) -> None:
    """Raises NotProved for a text that a person cannot review, or that looks different from what it runs."""
    if not PLAIN.fullmatch(text):
        for sign in text:
            _check(sign)
    if len(text) > MAX_LENGTH or len(text.encode()) > MAX_LENGTH:
        raise NotProved(f"longer than {MAX_LENGTH:,} bytes")
    if PADDING.search(text):
        raise NotProved("padding that can hide a part of it")
    if not text.strip():
        raise NotProved("no command")


def _check(sign: str) -> None:
    if " " <= sign <= "~" or sign in "\n\t":
        return
    kind = unicodedata.category(sign)
    if kind in REFUSED:
        raise NotProved(f"contains {REFUSED[kind]} (U+{ord(sign):04X})", "deny")
    if kind in ODD:
        raise NotProved(f"contains {ODD[kind]} (U+{ord(sign):04X})")
    if SHAPELESS.match(sign):
        raise NotProved(f"contains a character without a shape (U+{ord(sign):04X})")
