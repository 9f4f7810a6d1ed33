"""Shows foreign text to a person: characters that would move a cursor or hide something are spelled out.

Arguments, results and a model's words come from elsewhere. An escape sequence among them could repaint a
question into another one, so control characters and invisible or reordering ones are shown by their code.
"""

from __future__ import annotations

import re

__all__ = [
    "BIDIRECTIONAL",
    "CONTROLS",
    "IGNORED_IN_FILE_NAMES",
    "INVISIBLE",
    "LINE_SEPARATORS",
    "WITHOUT_GLYPH",
    "ZERO_WIDTH",
    "counted",
    "escape_invisible",
    "on_one_line",
    "spelled_out",
    "with_title",
    "without_controls",
]

LONGEST_TEXT = 65_536  # bytes of what `without_controls` lets through

# Characters that a person does not see, as ranges for a set in a regular expression.
CONTROLS = "\x00-\x1f\x7f-\x9f"  # C0 with tab and line feed, DEL, C1
ZERO_WIDTH = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # these change the order of what is shown
LINE_SEPARATORS = "\u2028\u2029"
# Letters and marks that are drawn as nothing or as a blank, and selectors of variants of a letter.
WITHOUT_GLYPH = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\U0001d159"
    "\U000e0100-\U000e01ef"
)
# Operators, annotations and tags, with the places beside them that are ignored before they are assigned; the controls
# of hieroglyphs, shorthand and music.
_OTHER_FORMATS = (
    "\u2061-\u2065\u206a-\u206f\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_SURROGATES = "\ud800-\udfff"

# What some file systems (HFS+) ignore in a name when they compare it.
IGNORED_IN_FILE_NAMES = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)

_CONTROLS_BUT_TAB_AND_LINE_FEED = "\x00-\x08\x0b-\x1f\x7f-\x9f"
INVISIBLE = re.compile(
    f"[{_CONTROLS_BUT_TAB_AND_LINE_FEED}{ZERO_WIDTH}{BIDIRECTIONAL}{LINE_SEPARATORS}{WITHOUT_GLYPH}"
    f"{_OTHER_FORMATS}{_SURROGATES}]"
)
_REMOVED = re.compile(f"[{_CONTROLS_BUT_TAB_AND_LINE_FEED}]")


def escape_invisible(text: str) -> str:
    """Text in which every control or invisible character is written as its code; line breaks and tabs stay.

    >>> escape_invisible("a\\x1b[2Jb\\u202e")
    'a\\\\x1b[2Jb\\\\u202e'
    """
    return INVISIBLE.sub(_code, text.replace("\r\n", "\n"))


def with_title(words: str, tool: str, title: str) -> str:
    """Words about a tool with its title behind them, unless the title only says the tool's name again.

    A title may be a stranger's, so that it never stands instead of the name.
    """
    says_more = title and title.lower().replace(" ", "_") != tool.lower()
    return f'{words} "{title}"' if says_more else words


def on_one_line(text: str, limit: int = 0) -> str:
    """The text of `escape_invisible` on one line, cut with an ellipsis after `limit` characters (0: not cut)."""
    text = text if not limit else text[: limit * 4]
    line = escape_invisible(text).replace("\n", "⏎").replace("\t", " ")
    return line if not limit or len(line) <= limit else line[: limit - 1] + "…"


def without_controls(text: str) -> str:
    """Text without control characters other than line breaks and tabs, cut after `LONGEST_TEXT` bytes."""
    kept = _REMOVED.sub("", str(text)[:LONGEST_TEXT])
    return kept.encode("utf-8", "replace")[:LONGEST_TEXT].decode("utf-8", "ignore")


def spelled_out(line: str) -> str:
    """A line in which every character is escaped that a person could not see, or could take for a plain space.

    >>> print(spelled_out("rm" + chr(0xA0) + "x" + chr(0x200B)))
    rm\\xa0x\\u200b
    """
    if line.isascii() and line.isprintable():
        return line
    return "".join(
        char if char.isprintable() and char != "\ufe0f" and not INVISIBLE.match(char) else _escape(char)
        for char in line
    )


def _code(match: re.Match[str]) -> str:
    return _escape(match[0])


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def counted(number: float, word: str, words: str = "") -> str:
    """A number of things; `words` are several of them, with an "s" if left out.

    >>> counted(1, "rule"), counted(2000, "rule"), counted(0, "entry", "entries"), counted(1.5, "second")
    ('1 rule', '2,000 rules', '0 entries', '1.5 seconds')
    """
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.10g}"
    return f"{shown} {word if number == 1 else words or f'{word}s'}"
