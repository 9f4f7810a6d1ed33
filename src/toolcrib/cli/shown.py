"""Foreign text as it may be shown on a terminal: what would move the cursor or hide something is spelled out.

Arguments, results and a model's words come from elsewhere. An escape sequence among them could repaint a
question into another one, so control characters and invisible or reordering ones are shown by their code.
"""

from __future__ import annotations

import json
import re
from typing import Any

# C0 without tab and line feed, DEL, C1; zero-width and bidirectional controls; line separators; surrogates.
UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef\ud800-\udfff"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0]"  # blanks that are no spaces
)


def shown(text: str) -> str:
    """Text with every control character spelled out; line breaks and tabs stay."""
    return UNSHOWN.sub(_spelled, text.replace("\r\n", "\n"))


def on_one_line(text: str, limit: int = 0) -> str:
    """The same on one line, cut with an ellipsis after `limit` characters (0: not)."""
    text = text if not limit else text[: limit * 4]
    line = shown(text).replace("\n", "⏎").replace("\t", " ")
    return line if not limit or len(line) <= limit else line[: limit - 1] + "…"


def value_on_one_line(value: Any, limit: int = 0) -> str:
    """JSON data on one line; strings are quoted."""
    return on_one_line(json.dumps(value, ensure_ascii=False, default=str), limit)


def arguments_on_one_line(arguments: Any, limit: int = 40) -> str:
    """Arguments as `name="value"` pairs, each value cut."""
    if not isinstance(arguments, dict):
        return value_on_one_line(arguments, limit)
    return "  ".join(f"{on_one_line(str(k))}={_cut_value(v, limit)}" for k, v in arguments.items())


def _cut_value(value: Any, limit: int) -> str:
    """A value cut before it is written out: a card that is redrawn must not read a whole file each time."""
    return value_on_one_line(value[: limit * 2] if isinstance(value, str) else value, limit)


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
