"""Foreign text as it may be shown to a person: what would move a cursor or hide something is spelled out.

Arguments, results and a model's words come from elsewhere. An escape sequence among them could repaint a
question into another one, so control characters and invisible or reordering ones are shown by their code.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

# C0 without tab and line feed, DEL, C1; zero-width and bidirectional controls; line separators; surrogates.
UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef\ud800-\udfff"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0]"  # blanks that are no spaces
)
# What some file systems (HFS+) ignore in a name when they compare it.
IGNORED_IN_FILE_NAMES = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Parameters whose value is a credential, by the words of their name; what tells about one is none (token_count).
CREDENTIALS = frozenset(
    {
        "password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "token", "tokens", "apikey",
        "credential", "credentials", "bearer", "auth", "authorization", "authorisation", "cookie", "cookies",
    }
)  # fmt: skip
KEYS = frozenset({"api", "private", "access", "signing", "encryption", "account", "ssh", "gpg", "master"})
ABOUT = frozenset(
    {
        "count", "limit", "name", "names", "path", "file", "dir", "folder", "url", "uri", "id", "type", "kind", "mode",
        "method", "policy", "length", "size", "max", "min", "expires", "expiry", "ttl", "scheme", "required", "enabled",
    }
)  # fmt: skip
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def shown(text: str) -> str:
    """Text with every control character spelled out; line breaks and tabs stay."""
    return UNSHOWN.sub(_spelled, text.replace("\r\n", "\n"))


def on_one_line(text: str, limit: int = 0) -> str:
    """The same on one line, cut with an ellipsis after `limit` characters (0: not)."""
    text = text if not limit else text[: limit * 4]
    line = shown(text).replace("\n", "⏎").replace("\t", " ")
    return line if not limit or len(line) <= limit else line[: limit - 1] + "…"


def spoken(text: str, limit: int = 65_536) -> str:
    """What a person says to a model: no control characters but line breaks and tabs, at most `limit` bytes."""
    kept = CONTROL.sub("", str(text)[:limit])
    return kept.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def without_credentials(value: Any, name: str = "") -> Any:
    """JSON data with the texts hidden that stand under the name of a credential.

    >>> without_credentials({"user": "ann", "login": {"api_key": "abc"}, "max_tokens": 5})
    {'user': 'ann', 'login': {'api_key': '(hidden, 3 characters)'}, 'max_tokens': 5}
    """
    if isinstance(value, dict):
        return {key: without_credentials(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_credentials(item, name) for item in value]
    hidden = (
        isinstance(value, str) and value and not value.startswith("<secret_ref:") and _is_credential(name)
    )
    return f"(hidden, {len(value):,} characters)" if hidden else value


def arguments_shown(arguments: Any, limit: int = 200) -> str:
    """Arguments as JSON on one line, cut, without credentials: for lists of what was approved."""
    return on_one_line(json.dumps(without_credentials(arguments), ensure_ascii=False, default=str), limit)


def _is_credential(name: str) -> bool:
    words = [word for word in re.split(r"[^a-z0-9]+", CAMEL.sub("_", name).lower()) if word]
    if not words or words[-1] in ABOUT or words[0] in ("max", "min", "num"):
        return False
    keys = any(one in KEYS and other in ("key", "keys") for one, other in pairwise(words))
    return keys or not CREDENTIALS.isdisjoint(words)


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
