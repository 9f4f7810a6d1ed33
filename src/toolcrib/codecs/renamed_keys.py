"""Puts names of parameters back into arguments that a model wrote with other names, also while they stream."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from toolcrib.json_text.lenient_grammar import MAX_DEPTH

__all__ = ["StreamedKeys", "renamed_keys"]

# What may be a key: its opening quote, the name, the closing quote, the space behind it, and the colon.
KEY = re.compile(r"""(["']?)([\w.-]*+)(\1?)(\s{0,200}+)(:?)""")
# Texts in which no key begins: prose before the first bracket, as in "It's {...}"; signs between strings and words; the
# rest of a word, with its apostrophes; the rest of a string.
PROSE = re.compile(r"[^{\[]*+")
BETWEEN = re.compile(r"""[^"'\w.-]*+""")
WORD = re.compile(r"[\w.'-]*+")
STRINGS = {
    '"': re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL),
    "'": re.compile(r"[^'\\]*+(?:\\.[^'\\]*+)*+", re.DOTALL),
}


class StreamedKeys:
    """Replaces wire names in arguments that come piece by piece, in linear time.

    The end of a piece that may be the beginning of such a name is given with the next piece. Wire names are replaced
    wherever they are keys, as no other key has such a name: models wrap arguments in a further object, and write nested
    objects with the names of outer ones.
    """

    __slots__ = ("_beginnings", "_names", "_rest", "_skipping")

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._beginnings = {name[:length] for name in names for length in range(len(name) + 1)}
        self._rest = ""
        self._skipping = PROSE

    def add(self, piece: str, *, final: bool = False) -> str:
        """Takes a piece, and gives the text of which it is known that it stays so; with `final`, all the rest."""
        if not self._names:
            return piece
        text, at = self._rest + piece, 0
        done: list[str] = []
        while (skipped := self._skipping.match(text, at)) is not None:
            done.append(skipped[0])
            at = skipped.end()
            if at == len(text):
                break
            if self._skipping is not BETWEEN:
                if self._skipping in STRINGS.values():
                    if text[at] == "\\":  # the last character of the text: what it escapes has not come
                        break
                    done.append(text[at])
                    at += 1
                self._skipping = BETWEEN
            elif (key := KEY.match(text, at)) is not None:
                if not final and key.end() == len(text) and self._may_grow(key):
                    break
                at += self._take(key, done)
        self._rest = "" if final else text[at:]
        return "".join([*done, text[at:]] if final else done)

    def _may_grow(self, key: re.Match[str]) -> bool:
        """Whether a match at the end of the text can still become a key that is replaced when more text comes."""
        quote, name, close, space, colon = key.groups()
        if colon:
            return False
        return name in (self._names if close or (space and not quote) else self._beginnings)

    def _take(self, key: re.Match[str], done: list[str]) -> int:
        """Adds a key with its own name to `done`, or begins to skip a string or a word. Returns how much was read."""
        quote, name, close, space, colon = key.groups()
        if colon and quote == close and name in self._names:
            done.append(json.dumps(self._names[name], ensure_ascii=False) + space + colon)
            return len(key[0])
        self._skipping = STRINGS[quote] if quote else WORD
        done.append(quote)
        return len(quote)


def renamed_keys(arguments: Any, names: Mapping[str, str]) -> Any:
    """What a model wrote, as an object or text, with the wire names of parameters replaced; the rest stays as it is.

    >>> renamed_keys('{"arguments": {"_top_81bf98e4": 1.50}}', {"_top_81bf98e4": "$top"})
    '{"arguments": {"$top": 1.50}}'
    """
    if isinstance(arguments, str):
        return StreamedKeys(names).add(arguments, final=True)
    return _renamed_inside(arguments, names, MAX_DEPTH) if names else arguments


def _renamed_inside(value: Any, names: Mapping[str, str], depth: int) -> Any:
    """The value with its keys replaced. What is nested too deeply for any tool stays as it is."""
    if depth < 0:
        return value
    if isinstance(value, dict):
        return {
            names.get(name, name): _renamed_inside(inner, names, depth - 1) for name, inner in value.items()
        }
    return [_renamed_inside(inner, names, depth - 1) for inner in value] if isinstance(value, list) else value
