"""Text of others made harmless: what a tool returns can neither close a tag, forge a call nor speak for another.

Broken is the first character of every word to which a text format or a chat template gives a meaning:
`<tool_call>` becomes `&lt;tool_call>`. All other text, code and markup included, stays as it is.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

# Tags by which formats mark calls, results, declarations, thinking and turns, with any prefix of a namespace.
TAGS = (
    r"tools?(?:[_-]?(?:calls?|responses?|results?|outputs?|uses?|name|sep|prefix|suffix))?",
    r"functions?(?:[_-]?(?:calls?|results?|responses?|outputs?))?",
    r"invoke|parameters?|arguments?|arg_(?:key|value)|name|result|output|response|observation|action",
    r"think(?:ing)?|thought|answer|system|user|assistant|human|s|pad|bos|eos|unk",
    r"(?:start|end)_of_(?:turn|image)|(?:start|end)_function_(?:call|response|declaration)|escape|steptml",
)
TAG = r"<(?=\s*/?\s*(?:[\w.|｜-]+:)?(?:" + "|".join(TAGS) + r")\b[^<]{0,200}?[>=])"
SPECIAL = r"<(?=\s*/?\s*[|｜])|<(?=/?\w*[|｜])|<(?=SPECIAL_\d)|[◁]"
BRACKETS = r"\[(?=\s*/?\s*(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_|ARGS|CALL_ID|THINK|IMG|PREFIX|SUFFIX))"
SHARED = f"{TAG}|{SPECIAL}|{BRACKETS}"


@cache
def _pattern(guards: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join([SHARED, *map(_broken, guards)]), re.IGNORECASE)


def _broken(word: str) -> str:
    """The pattern of one character of a word: of its first that is no letter, which JSON never escapes."""
    at = next((at for at, character in enumerate(word) if not character.isalnum()), 0)
    before, after = re.escape(word[:at]), re.escape(word[at + 1 :])
    return f"(?<={before}){re.escape(word[at])}(?={after})"


def guarded(text: str, guards: tuple[str, ...] = ()) -> str:
    """A text in which no word means anything to a format or a template; `guards` are further such words.

    >>> guarded("a < b, </tool_response><b>bold</b>")
    'a < b, &lt;/tool_response><b>bold</b>'
    """
    return _pattern(guards).sub(_entity, text)


def guarded_json(value: Any, guards: tuple[str, ...] = ()) -> str:
    """JSON on one line in which no word means anything but what it says; it reads back as the same value."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _pattern(guards).sub(_escape, text)


def _entity(match: re.Match[str]) -> str:
    return "&lt;" if match.group()[0] == "<" else f"&#{ord(match.group()[0])};" + match.group()[1:]


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()[0]):04x}" + match.group()[1:]
