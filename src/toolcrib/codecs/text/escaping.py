"""Escapes what a tool returns, so that it can neither close a tag, forge a call nor begin another turn.

Only words to which a text format or a chat template gives a meaning are escaped, by their first character:
`<tool_call>` becomes `&lt;tool_call>`. All other text, code and markup included, stays as it is.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

__all__ = ["SPECIAL", "escape_json", "escape_markers", "escape_words"]

# Tags by which formats mark calls, results, declarations, thinking and turns, in any case and namespace.
TAGS = (
    r"tools?[_-]?(?:calls?|responses?|results?|outputs?|uses?|name|sep|prefix|suffix|declare)",
    r"functions?[_-]?(?:calls?|results?|responses?|outputs?)|functions?(?=\s*=|\s+name)",
    r"tools\s*>|invoke\b|parameter(?=\s*=|\s+name)|/(?:function|parameter)\s*>|arg_(?:key|value)",
    r"think(?:ing)?\s*>|thought\s*>|(?:start|end)_of_\w|(?:start|end)_function_\w|escape\s*>|steptml",
    r"(?-i:functions?|result|response|s|bos|eos|pad|unk)\s*>",  # in this case alone: `Some<Result>` is code
)
SPACE = r"\s{0,3}"  # no format reads any, but a model may
TAG = rf"<(?={SPACE}/?{SPACE}(?:[\w.|｜-]{{1,40}}:)?(?:{'|'.join(TAGS)}))"
SPECIAL = r"<(?=/?[|｜][^\s|>]|/?\w{0,40}[|｜]>|SPECIAL_\d)|◁"  # `a <| b` and `Array<string|number>` are code
BRACKETS = (
    r"\[(?=(?-i:/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_|ARGS|CALL_ID|THINK|IMG|PREFIX|SUFFIX)\w*+\]))"
)
SHARED = f"{TAG}|{SPECIAL}|{BRACKETS}"


@lru_cache(maxsize=128)  # the names of tools may be reserved
def _pattern(reserved: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join([SHARED, *map(_broken, reserved)]), re.IGNORECASE)


def _broken(word: str) -> str:
    """The pattern of one character of a word: of its first that is no letter, which JSON never escapes."""
    at = next((at for at, character in enumerate(word) if not character.isalnum()), 0)
    before, after = re.escape(word[:at]), re.escape(word[at + 1 :])
    return f"(?<={before}){re.escape(word[at])}(?={after})"


def escape_markers(text: str, reserved: tuple[str, ...] = ()) -> str:
    """A text, escaped so that no word in it has a meaning for a format or a template. `reserved` are further
    words with a meaning.

    >>> escape_markers("a < b, </tool_response><b>bold</b>")
    'a < b, &lt;/tool_response><b>bold</b>'
    """
    return _pattern(reserved).sub(_entity, text)


def escape_json(value: Any, reserved: tuple[str, ...] = ()) -> str:
    """JSON on one line in which no word has such a meaning; it reads back as the same value."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _pattern(reserved).sub(_escape, text)


@lru_cache(maxsize=128)
def _words(words: tuple[str, ...]) -> re.Pattern[str]:
    own = (f"{re.escape(word[0])}(?={re.escape(word[1:])})" for word in words)
    return re.compile("|".join([SPECIAL, *own]))


def escape_words(text: str, words: tuple[str, ...]) -> str:
    """A model's own string, escaped so that none of these words and no special token in it has a meaning.

    >>> escape_words("a<b></parameter>", ("</parameter>",))
    'a<b>&lt;/parameter>'
    """
    return _words(words).sub(_entity, text)


def _entity(match: re.Match[str]) -> str:
    return "&lt;" if match[0] == "<" else f"&#{ord(match[0])};"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
