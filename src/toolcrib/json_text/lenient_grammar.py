"""The grammar of JSON as models write it: everything here has one reading, or is `Unreadable`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from toolcrib.dataclass import dataclass
from toolcrib.json_text.tokens import SIMPLE_ESCAPES
from toolcrib.json_text.values import same_json

MAX_DEPTH = 200  # the depth at which pydantic's JSON parser stops too
EXCERPT = 60

FIXES = {
    "byte_order_mark": "ignored a byte order mark",
    "code_fence": "took the JSON out of a code fence",
    "comment": "ignored a comment",
    "control_character": "kept an unescaped line break or control character in a string",
    "double_encoded": "decoded arguments that were encoded twice",
    "duplicate_key": "read a key that stood twice with the same value once",
    "escaped_whitespace": "read an escaped line break between values as space",
    "extra_closer": "ignored closing brackets after the end",
    "fullwidth_punctuation": "read a full-width comma or colon",
    "invalid_escape": "kept the backslash of an escape that JSON does not have",
    "number_format": "read a number that JSON writes differently",
    "other_literal": "read a spelling of true, false or null that JSON does not have",
    "over_escaped": "removed one level of escaping",
    "prose": "ignored text around the JSON",
    "reasoning_block": "ignored a reasoning block",
    "repeated_value": "read a value that was sent several times once",
    "single_quotes": "read single-quoted strings",
    "smart_quotes": "read typographic quotes",
    "special_token": "ignored tags or special tokens around the JSON",
    "trailing_comma": "ignored a trailing comma",
    "unquoted_key": "read an unquoted key",
    "unusual_space": "read unusual white space",
}
"""Everything that a reading may put right in a text, with words for a person."""

TOO_DEEP = "The arguments are nested too deeply. Send them with fewer levels."


_QUOTES = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "’": "’"}
_QUOTE_FIX = {"'": "single_quotes", "”": "smart_quotes", "’": "smart_quotes"}
_PLAIN = {close: re.compile(rf"[^{close}\\\x00-\x1f]*") for close in set(_QUOTES.values())}
_FOREIGN_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|u[0-9a-fA-F]|N\{|[0-7\r\n])")
_PYTHON_ESCAPE = re.compile(r"\\[av]")
_UNICODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_LITERALS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "None", "NULL", "Null")),
}
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_SPACE = re.compile(r"[ \t\r\n]*")
_ZERO_WIDTH = "\ufeff\u200b\u2060"


class Unreadable(ValueError):
    """A text without exactly one reading as JSON; the message tells the model what to send instead."""


@dataclass(frozen=True, slots=True)
class Fix:
    """The first deviation of its kind from JSON: the text, and what it was read as."""

    kind: str
    before: str
    after: str


def check_json(value: Any) -> None:
    """Raises `Unreadable` for a value that JSON readers would understand differently."""
    waiting = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Unreadable(TOO_DEEP)
        if isinstance(item, str):
            _check_text(item)
        elif isinstance(item, dict):
            for key in item:
                if not isinstance(key, str):
                    raise Unreadable("The arguments have a key that is not a string.")
                _check_text(key)
            waiting.extend((child, depth + 1) for child in item.values())
        elif isinstance(item, list):
            waiting.extend((child, depth + 1) for child in item)
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise Unreadable("The arguments hold a number that is not finite.")
        elif item is not None and not isinstance(item, int):
            raise Unreadable("The arguments hold something that is not JSON.")


def is_json(value: Any) -> bool:
    """Whether a value is JSON that all readers would understand alike."""
    try:
        check_json(value)
    except Unreadable:
        return False
    return True


def _check_text(text: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Unreadable("A string holds half of a surrogate pair, which is no character.") from None


class WrittenNumber(float):
    """A number with a fraction or an exponent that Python writes differently, and its text."""

    __slots__ = ("text",)
    text: str

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | float):
            return False
        try:
            return Decimal(self.text) == Decimal(
                other.text if isinstance(other, WrittenNumber) else repr(other)
            )
        except ArithmeticError:  # an exponent that not even Decimal holds
            return False

    def __hash__(self) -> int:
        return super().__hash__()


def written_number(text: str) -> int | float:
    """The number in the text; a `WrittenNumber` where the text says more than the number."""
    if not any(mark in text for mark in ".eE"):
        return exact_number(text)
    number = float(text)
    if repr(number) == text:
        return number
    written = WrittenNumber(number)
    written.text = text
    return written


def exact_number(text: str) -> int | float:
    """The number in the text; a number that would lose a digit is refused."""
    try:
        number = float(text) if any(mark in text for mark in ".eE") else int(text)
    except ValueError:
        raise Unreadable(f"The number {text[:EXCERPT]} is too long.") from None
    if isinstance(number, float) and repr(number) != text:
        try:
            exact = math.isfinite(number) and Decimal(text) == Decimal(repr(number))
        except ArithmeticError:  # an exponent that not even Decimal holds
            exact = False
        if not exact:
            raise Unreadable(
                f"The number {text[:EXCERPT]} cannot be held exactly. "
                "Send a number of at most 15 significant digits."
            )
    return number


ReadNumber = Callable[[str], int | float]


class Notes(dict[str, Fix]):
    def note(self, kind: str, before: str, after: str = "") -> None:
        if kind not in self:
            self[kind] = Fix(kind, before[:EXCERPT], after[:EXCERPT])

    def put(self, into: dict[str, Any], key: str, value: Any) -> None:
        if key in into:
            if not same_json(into[key], value):
                raise Unreadable(
                    f"The key {json.dumps(key)} stands twice with different values. Send it once."
                )
            self.note("duplicate_key", key, key)
        else:
            into[key] = value

    def merge(self, others: Notes) -> None:
        for kind, fix in others.items():
            self.setdefault(kind, fix)

    def done(self) -> tuple[Fix, ...]:
        return tuple(self.values())


class Reader:
    """A recursive reader of one value; it reads every character a bounded number of times."""

    def __init__(self, text: str, notes: Notes, number: ReadNumber = exact_number) -> None:
        self.text = text
        self.notes = notes
        self.number = number

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise Unreadable(TOO_DEEP)
        at = self.space(at)
        char = self.char(at, "a value")
        if char == "{":
            return self.object(at, depth)
        if char == "[":
            return self.array(at, depth)
        if char in _QUOTES:
            return self.string(at)
        number = _NUMBER.match(self.text, at)
        if number:
            if not _JSON_NUMBER.match(number.group()):
                self.notes.note("number_format", number.group())
            return self.number(number.group()), number.end()
        word = _WORD.match(self.text, at)
        if word and word.group() in _LITERALS:
            literal = _LITERALS[word.group()]
            if not word.group().islower():
                self.notes.note("other_literal", word.group(), json.dumps(literal))
            return literal, word.end()
        raise self.unexpected(at, "a JSON value")

    def object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self.space(at + 1)
        while self.char(at, "an object") != "}":
            key, at = self.key(at)
            at = self.space(at)
            if self.char(at, "an object") not in ":：":
                raise self.unexpected(at, "a colon")
            self.punctuation(at)
            value, at = self.value(at + 1, depth + 1)
            self.notes.put(found, key, value)
            at = self.separator(at, "}", "an object")
        return found, at + 1

    def array(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self.space(at + 1)
        while self.char(at, "an array") != "]":
            value, at = self.value(at, depth + 1)
            found.append(value)
            at = self.separator(at, "]", "an array")
        return found, at + 1

    def separator(self, at: int, closer: str, where: str) -> int:
        at = self.space(at)
        char = self.char(at, where)
        if char == closer:
            return at
        if char not in ",，":
            raise self.unexpected(at, f"a comma or {closer}")
        self.punctuation(at)
        following = self.space(at + 1)
        if self.text[following : following + 1] == closer:
            self.notes.note("trailing_comma", self.text[at : following + 1], closer)
        return following

    def punctuation(self, at: int) -> None:
        if self.text[at] not in ",:":
            self.notes.note("fullwidth_punctuation", self.text[at])

    def key(self, at: int) -> tuple[str, int]:
        if self.text[at] in _QUOTES:
            key, end = self.string(at)
            if not key.isprintable() and min(key) < " ":
                raise self.unexpected(at, "a key")  # more likely a quote that was forgotten
            return key, end
        word = _WORD.match(self.text, at)
        if not word or word.group() in _LITERALS:
            raise self.unexpected(at, "a key")
        self.notes.note("unquoted_key", word.group(), json.dumps(word.group()))
        return word.group(), word.end()

    def string(self, at: int) -> tuple[str, int]:
        opened = at
        close = _QUOTES[self.text[at]]
        if close in _QUOTE_FIX:
            self.notes.note(_QUOTE_FIX[close], self.text[at], '"')
        parts: list[str] = []
        escapes: set[str] = set()
        at += 1
        while True:
            plain = _PLAIN[close].match(self.text, at)
            assert plain
            parts.append(plain.group())
            at = plain.end()
            char = self.char(at, "a string")
            if char == close:
                break
            if char != "\\":
                self.notes.note("control_character", self.text[opened : at + 1], json.dumps(char)[1:-1])
                parts.append(char)
                at += 1
                continue
            part, kind, at = self.escape(at, close)
            parts.append(part)
            escapes.add(kind)
        if {"raw", "json"} <= escapes:
            # "C:\Program Files\temp": whoever wrote \P did not escape, so \t may not be a tab either.
            raise Unreadable(
                f"A string mixes escapes and bare backslashes: ⟨{self.near(opened)}⟩. Write \\\\ for each."
            )
        return _paired("".join(parts)), at + 1

    def escape(self, at: int, close: str) -> tuple[str, str, int]:
        """Reads one escape as (text, kind, end); a `raw` escape keeps its backslash, and `quote` may occur with
        either kind.
        """
        char = self.char(at + 1, "a string")
        if char == close:
            return char, "quote", at + 2
        unicode = _UNICODE.match(self.text, at)
        if unicode:
            return chr(int(unicode.group(1), 16)), "json", unicode.end()
        if char in SIMPLE_ESCAPES:
            return SIMPLE_ESCAPES[char], "json", at + 2
        if char in _QUOTES:
            self.notes.note("invalid_escape", f"\\{char}", char)
            return char, "json", at + 2
        if _FOREIGN_ESCAPE.match(self.text, at) or (close == "'" and _PYTHON_ESCAPE.match(self.text, at)):
            raise Unreadable(f"JSON has no such escape: ⟨{self.near(at)}⟩. Write \\\\ for a backslash.")
        self.notes.note("invalid_escape", f"\\{char}", f"\\\\{char}")
        return f"\\{char}", "raw", at + 2

    def space(self, at: int) -> int:
        """Skips white space and comments."""
        while True:
            match = _SPACE.match(self.text, at)
            assert match
            at = match.end()
            char = self.text[at : at + 1]
            if char in ("/", "#"):
                end = self.comment(at)
                if end == at:
                    return at
                at = end
            elif char == "\\" and self.text[at + 1 : at + 2] in ("n", "r", "t"):
                self.notes.note("escaped_whitespace", self.text[at : at + 2])
                at += 2
            elif char and (char.isspace() or char in _ZERO_WIDTH):
                self.notes.note("unusual_space", char, " ")
                at += 1
            else:
                return at

    def comment(self, at: int) -> int:
        """The end of the comment that starts here, or `at` if none does."""
        if self.text.startswith("/*", at):
            end = self.text.find("*/", at + 2) + 2
            if end < 2:
                raise _cut_off("a comment")
        elif self.text.startswith(("//", "#"), at):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
        else:
            return at
        comment = self.text[at:end]
        if '"' in comment or ("single_quotes" in self.notes and "'" in comment):
            # It may as well be the rest of a string whose quotes were not escaped.
            raise Unreadable(f"A quote stands in a comment: ⟨{self.near(at)}⟩. Send JSON without comments.")
        self.notes.note("comment", comment)
        return end

    def char(self, at: int, inside: str) -> str:
        if at >= len(self.text):
            raise _cut_off(inside)
        return self.text[at]

    def near(self, at: int) -> str:
        return " ".join(self.text[max(0, at - 20) : at + 20].split())

    def unexpected(self, at: int, wanted: str) -> Unreadable:
        return Unreadable(
            f"The arguments are not JSON: expected {wanted} at character {at}, near ⟨{self.near(at)}⟩. "
            'Send one JSON object; a quote inside a string is written \\".'
        )


def _cut_off(inside: str) -> Unreadable:
    return Unreadable(
        f"The arguments end before they are complete, inside {inside}. Send the whole call again."
    )


def _paired(text: str) -> str:
    """Joins surrogate pairs that were written as two escapes; a lone surrogate is refused."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise Unreadable("A string holds half of a surrogate pair, which is no character.") from None
