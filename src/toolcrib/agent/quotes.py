"""Quotes: texts that must stand, word for word, in what the model was given to read."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.agent.completion import COMPLETION
from toolcrib.content import Json, Text
from toolcrib.messages import ResultPart

if TYPE_CHECKING:
    from toolcrib.errors import FieldError
    from toolcrib.messages import Message

__all__ = ["Quote", "mentions_quotes", "source_text", "unfound_quotes"]

# Marks that stand for each other: quotation marks, and dashes.
MARKS = ("'\u2018\u2019\u201a", '"\u201c\u201d\u201e', "-\u2013\u2014\u2212")
ALIKE = str.maketrans({mark: marks[0] for marks in MARKS for mark in marks} | {"\u00ad": ""})
SPACE = re.compile(r"\s+")


class Quote(str):
    """Words of the source, copied. As a field of an output type, it is checked against all that the run was given.

    White space, and the forms of quotation marks and dashes, need not be the same; every other character must. What
    stands only in pictures or documents that the model reads itself cannot be checked, and is refused: take a plain
    `str` for those.

    >>> Quote("the  total").find_in("This is the total: 3")
    (8, 17)
    """

    __slots__ = ()

    def find_in(self, source: str) -> tuple[int, int] | None:
        """Where it stands in a text first: begin and end; None where it does not."""
        words = self.split()
        if not words:
            return None
        pattern = r"\s+".join(_pattern(word) for word in words)
        found = re.search(pattern, source)
        return None if found is None else found.span()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        text = core_schema.str_schema(min_length=1)
        return core_schema.no_info_after_validator_function(cls, text)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        return {**handler(core), "description": "Copied word for word from the source."}


def _pattern(word: str) -> str:
    """A word as a pattern in which marks of one kind stand for each other."""
    return "".join(
        next((f"[{re.escape(marks)}]" for marks in MARKS if letter in marks), re.escape(letter))
        for letter in word
    )


def mentions_quotes(kinds: Sequence[Any]) -> bool:
    """Whether a type has a Quote in it."""
    from toolcrib.compiling.core_schema import core_schema_of

    for kind in kinds:
        try:
            core = core_schema_of(kind)
        except Exception:  # no type of Pydantic's: a function, a JSON Schema
            continue
        if _has_quote(core, set()):
            return True
    return False


def _has_quote(core: Any, seen: set[int]) -> bool:
    if id(core) in seen:
        return False
    if isinstance(core, dict):
        seen.add(id(core))
        return any(item is Quote or _has_quote(item, seen) for item in core.values())
    if isinstance(core, list | tuple):
        seen.add(id(core))
        return any(_has_quote(item, seen) for item in core)
    return False


def source_text(messages: Iterable[Message]) -> str:
    """What a run was given to read: the texts of its user, and the results of its calls.

    What a model wrote itself is no source, nor what it was told about that.
    """
    texts: list[str] = []
    for message in messages:
        if message.is_the_users:
            texts += [part.as_text() for part in message.parts if isinstance(part, Text | Json)]
        for part in message.parts:
            if isinstance(part, ResultPart) and not part.result.is_error and part.call.name != COMPLETION:
                texts.append(part.result.text)
    return "\n".join(texts)


def unfound_quotes(value: Any, source: str) -> tuple[FieldError, ...]:
    """The quotes in a value that do not stand in the source."""
    from toolcrib.errors import FieldError
    from toolcrib.field_errors import path_label, show

    known = _plain(source)
    return tuple(
        FieldError(path_label(path), "words copied from the source, without a change", show(str(quote)))
        for path, quote in _quotes(value)
        if not (words := _plain(quote)) or words not in known
    )


def _plain(text: str) -> str:
    return SPACE.sub(" ", unicodedata.normalize("NFC", text).translate(ALIKE)).strip()


def _quotes(value: Any) -> Iterator[tuple[tuple[Any, ...], Quote]]:
    """The quotes in a value, however deep, with their paths; those that are names in an object, too."""
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    seen: dict[int, Any] = {}  # an object may refer to its container
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, Quote):
            yield path, one
        elif id(one) not in seen:
            seen[id(one)] = one
            waiting += [((*path, name), inner) for name, inner in reversed(_children(one))]


def _children(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, str | int | float | bytes | None):
        return []
    if isinstance(value, dict):
        names = [(name, name) for name in value if isinstance(name, Quote)]
        return [*names, *value.items()]
    if isinstance(value, list | tuple | set | frozenset | deque):
        return [*enumerate(value)]
    if hasattr(type(value), "model_fields"):
        named = [(name, getattr(value, name)) for name in type(value).model_fields]
        return [*named, *(value.model_extra or {}).items()]
    if dataclasses.is_dataclass(value):
        return [(item.name, getattr(value, item.name, None)) for item in dataclasses.fields(value)]
    return []
