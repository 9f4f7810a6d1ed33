"""Masks known secrets in texts, in common encodings too. A mark with the secret's name replaces the value.

Covered: the value in upper or lower case, reversed, in hex, base64 (any offset, both alphabets, wrapped), base32,
decimal and octal bytes, UTF-16, and with URL, JSON, HTML, shell, C and terminal escapes or separators. Not covered:
compression, encryption, xor, rot13, base85, hashes, an encoding of an encoding (except escapes), and a value in parts
with other words between them, because the value cannot be recognised in these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, Generic, TypeVar

from toolcrib.dataclass import dataclass
from toolcrib.secrets.encodings import MIN_VALUE
from toolcrib.secrets.json_strings import replace_strings
from toolcrib.secrets.pattern_search import TokenSearch
from toolcrib.secrets.patterns import PATTERNS, TokenPattern
from toolcrib.secrets.secret_finder import SecretFinder, mark, merged
from toolcrib.secrets.stream import RedactedStream

__all__ = ["Redacted", "Redactor", "UnfitSecret", "why_unusable"]

T = TypeVar("T")


class UnfitSecret(ValueError):
    """A value that cannot be told from ordinary text, so that it cannot be masked."""


@dataclass(slots=True, frozen=True)
class Redacted(Generic[T]):
    """A text or data that may be shown, and the names of the secrets (or kinds of tokens) that were masked in it."""

    value: T
    found: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """A note for the model that something was masked; "" if nothing was."""
        if not self.found:
            return ""
        return f"Masked in this output, because it is secret: {', '.join(self.found)}."


def why_unusable(value: str, name: str = "") -> str | None:
    """Why a value cannot be used as a secret (of that name); None if it can.

    >>> why_unusable("1234")
    'it is 4 bytes long: below 6 it cannot be told from ordinary text to be masked'
    """
    size = len(value.strip().encode("utf-8", "surrogatepass"))
    if size < MIN_VALUE:
        return f"it is {size} bytes long: below {MIN_VALUE} it cannot be told from ordinary text to be masked"
    if len(set(value.strip())) == 1:
        return "it is one character repeated, which ordinary text holds too"
    if name and value.strip().lower() in mark(name).lower():
        return "it is part of its own name, which is shown"
    return None


class Redactor:
    """Masks secrets in texts, in JSON data and in streams. It is made for a set of values, and keeps no text.

    `values` maps names to values; UnfitSecret is raised for a value that is too short. `patterns` are formats of tokens
    that are masked as well (`()` for none). With `automaton` true it uses `pyahocorasick`, with false plain Python, and
    with None whichever is installed.

    >>> redactor = Redactor({"API_KEY": "hunter2-hunter3"})
    >>> redactor.redact_text("key: hunter2-hunter3, aHVudGVyMi1odW50ZXIz")
    Redacted(value='key: [secret API_KEY], [secret API_KEY]', found=('API_KEY',))
    """

    def __init__(
        self,
        values: Mapping[str, str],
        *,
        patterns: Iterable[TokenPattern] = PATTERNS,
        automaton: bool | None = None,
    ) -> None:
        for name, value in sorted(values.items()):
            if (reason := why_unusable(value)) is not None:
                raise UnfitSecret(f"secret {name!r} cannot be used: {reason}")
        self.finder = SecretFinder(values, automaton=automaton)
        self._tokens = TokenSearch(patterns)

    def __repr__(self) -> str:
        return f"Redactor({len(self.finder.names)} secrets)"

    def finds_nothing(self, text: str) -> bool:
        """Whether a text, or a string in it if it is JSON, holds nothing to mask; False where that is not certain."""
        if self._tokens.may_find(text):
            return False
        return self.finder.finds_nothing(text.encode("utf-8", "surrogatepass"))

    def redact_text(self, text: str) -> Redacted[str]:
        """The text with every secret, and every token in a known format, replaced by a mark."""
        found: dict[str, None] = {}
        made = self._masked(text, found)
        return Redacted(made, tuple(found))

    def redact_json(self, value: Any) -> Redacted[Any]:
        """A copy of JSON data in which strings, dict keys and numbers are masked at any depth.

        What is no JSON data (bytes, a model) is left as it is, unless something is masked in its JSON form.
        """
        found: dict[str, None] = {}

        def as_text(text: str) -> str:
            return self._masked(text, found)

        def as_number(number: float) -> Any:
            text = repr(number)
            if len(text) < MIN_VALUE:
                return number
            made = self._masked(text, found)
            return number if made == text else made

        def as_other(value: Any) -> Any:
            if isinstance(value, bytes | bytearray):
                made = self.redact_bytes(bytes(value))
                found.update(dict.fromkeys(made.found))
                return made.value if made.found else value
            from pydantic_core import to_jsonable_python

            data = self.redact_json(to_jsonable_python(value, bytes_mode="base64", fallback=str))
            found.update(dict.fromkeys(data.found))
            return data.value if data.found else value

        made = replace_strings(value, as_text, key=as_text, number=as_number, other=as_other)
        return Redacted(made, tuple(found))

    def redact_bytes(self, data: bytes) -> Redacted[bytes]:
        """Bytes of any kind with known values masked."""
        out: list[bytes] = []
        found: dict[str, None] = {}
        at = 0
        for start, end, name in merged(self.finder.spans(data)):
            found[name] = None
            out += (data[at:start], mark(name).encode())
            at = end
        return Redacted(b"".join((*out, data[at:])), tuple(found))

    def without_patterns(self) -> Redactor:
        """A redactor of the same values, without formats of tokens."""
        same = copy(self)
        same._tokens = TokenSearch(())
        return same

    def stream(self) -> RedactedStream:
        """A redactor of a text in pieces: `feed` each piece, `finish` at the end. It masks known secrets only."""
        return RedactedStream(self.finder)

    def _masked(self, text: str, found: dict[str, None]) -> str:
        if not self.finder.names:
            return self._without_keys(text, found)
        data = text.encode("utf-8", "surrogatepass")
        spans = merged(self.finder.spans(data))
        if not spans:
            return self._without_keys(text, found)
        out: list[str] = []
        at = 0
        for start, end, name in spans:
            found[name] = None
            out += (self._without_keys(_text(data[at:start]), found), mark(name))
            at = end
        out.append(self._without_keys(_text(data[at:]), found))
        return "".join(out)

    def _without_keys(self, text: str, found: dict[str, None]) -> str:
        out: list[str] = []
        at = 0
        for start, end, kind in self._tokens.find(text):
            found[kind] = None
            out += (text[at:start], mark(kind))
            at = end
        return "".join((*out, text[at:])) if out else text


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
