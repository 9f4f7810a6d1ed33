"""Whether every value of given arguments occurs in what the user wrote.

A value that does not may come from an injected instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolcrib.rules.name_patterns import any_name_matches

__all__ = ["not_mentioned"]

# Punctuation beside words. A dot ends a sentence, but begins or ends a path: "a/..", "./b".
BEFORE = "\"'`([{<\u2018\u201c\u201e\u00ab"
AFTER = "\"'`)]}>\u2019\u201d\u201c\u00bb,;:!?"
AFTER_IN_TEXT = AFTER + ".\u2026"


def not_mentioned(names: tuple[str, ...], arguments: Any, user_texts: Sequence[str]) -> bool:
    """Whether an argument with one of the names (patterns; at any depth) occurs in none of the user's texts.

    A value occurs in a text if its words do, whole and in a row, in upper or lower case: "x.com" does not occur in
    "bob@x.com". Each item of a list must occur. Empty values, true, false and null need not. True without arguments.
    """
    if not isinstance(arguments, Mapping):
        return True
    texts = [_words(text, AFTER_IN_TEXT) for text in user_texts]
    return any(not _occurs(value, texts) for value in _values_named(names, arguments))


def _values_named(names: tuple[str, ...], arguments: Any) -> Iterator[Any]:
    waiting = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if any_name_matches(names, name):
                    yield inner
                else:
                    waiting.append(inner)
        elif isinstance(value, list | tuple):
            waiting += value


def _occurs(value: Any, texts: Sequence[str]) -> bool:
    for scalar in _scalars(value):
        whole = isinstance(scalar, float) and scalar.is_integer()
        words = _words(str(int(scalar) if whole else scalar), AFTER)
        if words.strip() and not any(words in text for text in texts):
            return False
    return True


def _scalars(value: Any) -> Iterable[Any]:
    """The texts and numbers in JSON data."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Mapping):
            waiting += inner.values()
        elif isinstance(inner, list | tuple):
            waiting += inner
        elif inner is not None and not isinstance(inner, bool):
            yield inner


@lru_cache(maxsize=64)
def _words(text: str, after: str) -> str:
    """The words of a text in lower case, without punctuation beside them, with a space before and after each."""
    words = (word.lstrip(BEFORE).rstrip(after) or word for word in text.lower().split())
    return f" {' '.join(words)} "
