"""Whether every value of given arguments occurs in what the user wrote.

A value that does not may come from an injected instruction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolcrib.rules.name_patterns import any_name_matches

__all__ = ["not_mentioned"]

# Punctuation beside words. A dot ends a sentence, but begins or ends a path: "a/..", "./b".
BEFORE = "\"'`([{<\u2018\u201c\u201e\u00ab"
AFTER = "\"'`)]}>\u2019\u201d\u201c\u00bb,;:!?"
AFTER_IN_TEXT = AFTER + ".\u2026"


def not_mentioned(
    names: tuple[str, ...], arguments: Any, user_texts: Sequence[str], schema: Any = None
) -> bool:
    """Whether an argument with one of the names (patterns; at any depth) occurs in none of the user's texts.

    A value occurs in a text if its words do, whole and in a row, in upper or lower case: "x.com" does not occur in
    "bob@x.com". Each item of a list must occur, and each key of an object that is no field by the tool's `schema`.
    Empty values, true, false and null need not. True without arguments.
    """
    if not isinstance(arguments, Mapping):
        return True
    texts = [_words(text, AFTER_IN_TEXT) for text in user_texts]
    values = list(_values_named(names, arguments))
    fields = _fields_in(schema) if any(isinstance(value, Mapping | list | tuple) for value in values) else ()
    return any(not _occurs(value, texts, fields) for value in values)


def _fields_in(schema: Any) -> Collection[str]:
    """The names of all fields that a schema declares at any depth."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            fields = part.get("properties")
            found.update(fields if isinstance(fields, Mapping) else ())
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
    return found


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


def _occurs(value: Any, texts: Sequence[str], fields: Collection[str]) -> bool:
    for scalar in _scalars(value, fields):
        whole = isinstance(scalar, float) and scalar.is_integer()
        words = _words(str(int(scalar) if whole else scalar), AFTER)
        if words.strip() and not any(words in text for text in texts):
            return False
    return True


def _scalars(value: Any, fields: Collection[str]) -> Iterable[Any]:
    """The texts and numbers in JSON data, and the keys that are no fields."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Mapping):
            yield from (key for key in inner if key not in fields)
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
