"""The tokens of JSON, complete or cut off at the end of a chunk: patterns, and the reading of strings.

A pattern matches a key, its colon and the start of its value at once, because a chunk mostly contains that
much; each group (`KEY` to `CUT_KEY`) says what was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError, decoder
from typing import cast

# Surrogates in a str chunk are halves of a pair that a provider cut: they are read like escaped ones. The class is
# negated, because `re` compiles that in a twelfth of the time: 2 ms for all patterns instead of 22.
_TEXT = r'[^"\\\x00-\x1f\ud800-\udfff]*+'
_SPACE = r"[ \t\n\r]*+"
_HIGH = r"\\u[dD][89abAB][0-9a-fA-F]{2}|[\ud800-\udbff]"
_LOW = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}|[\udc00-\udfff]"

# A value as far as the chunk has it. A number is taken only if what follows cannot belong to it.
_ANY_VALUE = (
    rf'{_SPACE}(?:"({_TEXT})(?:"|(\Z))|([\[{{])'
    r"|(-?(?:0|[1-9][0-9]*+)((?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+))(?=[ \t\n\r,\]}])|(true|false|null))"
)
_MEMBER = rf'(?:({_TEXT})"{_SPACE}:(?:{_ANY_VALUE})?|({_TEXT})\Z)'
KEY, STRING, CUT_STRING, OPENING, NUMBER, FRACTION, LITERAL, CUT_KEY = range(1, 9)
match_value = re.compile("((?!))?" + _ANY_VALUE).match  # the same groups, and never a key
match_next_value = re.compile(f"((?!))?{_SPACE},{_ANY_VALUE}").match
match_member = re.compile(_MEMBER).match
match_first_member = re.compile(f'{_SPACE}"{_MEMBER}').match
match_next_member = re.compile(f'{_SPACE},{_SPACE}"{_MEMBER}').match

_match_text = cast("Callable[[str, int], re.Match[str]]", re.compile(_TEXT).match)  # at least no character
_match_character = re.compile(
    rf'({_TEXT[:-2]}++)|\\(["\\/bfnrt])|({_HIGH})({_LOW})|(\\u[0-9a-fA-F]{{4}}|[\ud800-\udfff])'
).match
_RUN, _SIMPLE, _HIGH_HALF, _LOW_HALF, _UNIT = range(1, 6)
SIMPLE_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_is_unfinished = re.compile(rf"(?:{_HIGH})?(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?\Z").match
match_escape_start = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?").match

# json's own reader of strings, written in C; untyped. Takes the text and where the characters begin.
_scan_string = cast("Callable[[str, int], tuple[str, int]]", vars(decoder)["scanstring"])

LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
LITERAL_STARTS = {literal[0]: literal for literal in LITERALS}


def _arrows(**arrows: str) -> dict[str, str]:
    return {character: phase for phase, characters in arrows.items() for character in characters}


NUMBER_PHASES = {
    "start": _arrows(minus="-", zero="0", whole="123456789"),
    "minus": _arrows(zero="0", whole="123456789"),
    "zero": _arrows(point=".", e="eE"),
    "whole": _arrows(whole="0123456789", point=".", e="eE"),
    "point": _arrows(fraction="0123456789"),
    "fraction": _arrows(fraction="0123456789", e="eE"),
    "e": _arrows(sign="+-", exponent="0123456789"),
    "sign": _arrows(exponent="0123456789"),
    "exponent": _arrows(exponent="0123456789"),
}
NUMBER_ENDS = ("zero", "whole", "fraction", "exponent")
INTEGER_ENDS = ("zero", "whole")


def read_text(text: str, at: int) -> tuple[str, int, str, int]:
    """The characters of a string or key from `at` on: up to the quote that ends them, the end, or what may not
    stand there. Gives the characters, the position where they end, an incomplete escape or surrogate pair at
    the end of the text (to be read again with the next chunk), and the number of lone surrogates read as
    U+FFFD.
    """
    if at == 0 and text[-1] != "\\" and text.isascii() and "\\u" not in text:
        try:
            piece, after = _scan_string(text + '"', 0)
            return piece, after - 1, "", 0
        except JSONDecodeError:  # a wrong escape, a control character
            pass
    end = _match_text(text, at).end()
    if end == len(text) or text[end] == '"':
        return text[at:end], end, "", 0
    pieces: list[str] = []
    lone = 0
    while (found := _match_character(text, at)) is not None:
        group = found.lastindex
        if group == _RUN:
            pieces.append(found[_RUN])
        elif group == _SIMPLE:
            pieces.append(SIMPLE_ESCAPES[found[_SIMPLE]])
        elif group == _LOW_HALF:
            pieces.append(_paired(_code(found[_HIGH_HALF]), _code(found[_LOW_HALF])))
        else:
            code = _code(found[_UNIT])
            if 0xD800 <= code < 0xDC00 and _is_unfinished(text, at):
                break
            is_half = 0xD800 <= code < 0xE000
            lone += is_half
            pieces.append("\ufffd" if is_half else chr(code))
        at = found.end()
    held = text[at:] if at < len(text) and _is_unfinished(text, at) else ""
    return "".join(pieces), at, held, lone


def _code(unit: str) -> int:
    """The UTF-16 code unit at a position, escaped or raw."""
    return ord(unit) if len(unit) == 1 else int(unit[2:], 16)


def _paired(high: int, low: int) -> str:
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
