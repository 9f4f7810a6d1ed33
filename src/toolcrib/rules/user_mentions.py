"""Whether the user named what a call is given: what they did not, somebody else may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolcrib.rules.patterns import any_matches

# What stands beside words and is no part of them. A dot ends a sentence, but begins or ends a path: "a/..", "./b".
BEFORE = "\"'`([{<\u2018\u201c\u201e\u00ab"
AFTER = "\"'`)]}>\u2019\u201d\u201c\u00bb,;:!?"
ENDS = AFTER + ".\u2026"


def not_mentioned(names: tuple[str, ...], arguments: Any, said: Sequence[str]) -> bool:
    """Whether an argument of one of these names (patterns; at any depth) stands in none of the texts.

    It stands there if its words do, in a row and whole, in upper or lower case: "x.com" does not stand in
    "bob@x.com". Each item of a list must; what is empty, true, false or null says nothing that would have to.
    Without arguments nobody knows.
    """
    if not isinstance(arguments, Mapping):
        return True
    texts = [_spaced(text, ENDS) for text in said]
    return any(not _stands(value, texts) for value in _named(names, arguments))


def _named(names: tuple[str, ...], arguments: Any) -> Iterable[Any]:
    waiting = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if any_matches(names, name):
                    yield inner
                else:
                    waiting.append(inner)
        elif isinstance(value, list | tuple):
            waiting += value


def _stands(value: Any, texts: Sequence[str]) -> bool:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        elif one is not None and not isinstance(one, bool):
            whole = isinstance(one, float) and one.is_integer()
            words = _spaced(str(int(one) if whole else one), AFTER)
            if words.strip() and not any(words in text for text in texts):
                return False
    return True


@lru_cache(maxsize=64)
def _spaced(text: str, after: str) -> str:
    """The words of a text without what stands beside them, in lower case, with a space before and after each."""
    words = (word.lstrip(BEFORE).rstrip(after) or word for word in text.lower().split())
    return f" {' '.join(words)} "
