"""Reads Python literals as text and writes them as JSON; nothing is ever evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from toolcrib.codecs.text.scanner import Into, Scanner, Steps

__all__ = ["literal"]

NUMBER_RUN: Final = re.compile(r"[\w.+-]+")
# A number or a string of one reading, with what must follow it.
SIMPLE: Final = re.compile(r"""(?:(-?(?:0|[1-9][0-9]{0,15}))|"([^"\\\n]*)"|'([^'\\\n]*)')(?=\s*[,)\]}])""")
PLAIN: Final = {quote: re.compile(rf"[^\\{quote}]+") for quote in "'\""}
CONSTANTS: Final = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}
ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    "0": "\0",
    "\n": "",
}
CODES: Final = {"x": 2, "u": 4, "U": 8}  # hexadecimal digits behind a backslash and this letter
CLOSING: Final = {"[": "]", "(": ")", "{": "}"}


def literal(scan: Scanner, into: Into) -> Steps[bool]:
    """Read one Python literal and write it as JSON; whether it was one, and whole."""
    open_: list[str] = []  # the brackets around, "{:" for a dict whose value comes next
    while True:
        mark = yield from scan.mark()
        if mark in ("[", "{", "("):
            if open_ and open_[-1] == "{":
                return False  # no key
            scan.skip(1)
            into("{" if mark == "{" else "[")
            open_.append(mark)
            if (yield from scan.mark()) != CLOSING[mark]:
                continue
        elif open_ and open_[-1] == "{":
            if mark not in ("'", '"') or not (yield from _strings(scan, into)):
                return False
            if (yield from scan.mark()) != ":":
                return False
            scan.skip(1)
            into(": ")
            open_[-1] = "{:"
            continue
        elif not (yield from _scalar(scan, into, mark)):
            return False
        # A value is complete: close what it completes.
        while open_:
            if open_[-1] == "{:":
                open_[-1] = "{"
            mark = yield from scan.mark()
            if mark == ",":
                scan.skip(1)
                if (yield from scan.mark()) != CLOSING[open_[-1]]:
                    into(", ")
                    break
                mark = CLOSING[open_[-1]]
            if mark != CLOSING[open_[-1]]:
                return False
            scan.skip(1)
            into("}" if mark == "}" else "]")
            open_.pop()
        else:
            return True


def _scalar(scan: Scanner, into: Into, mark: str) -> Steps[bool]:
    if (simple := scan.take(SIMPLE)) is not None:
        number, *quoted = simple.groups()
        into(number or json.dumps(next(text for text in quoted if text is not None), ensure_ascii=False))
        return True
    if mark in ("'", '"'):
        return (yield from _strings(scan, into))
    pieces: list[str] = []
    yield from scan.take_while(NUMBER_RUN, pieces.append)
    word = "".join(pieces)
    if word in ("r", "u", "R", "U") and (yield from scan.peek()) in ("'", '"') and not scan.at_end:
        return (yield from _strings(scan, into, raw=word in "rR"))
    value = CONSTANTS.get(word) or _number(word)
    if value is None or (scan.ended and scan.at_end):
        return False
    into(value)
    return True


def _number(word: str) -> str | None:
    """A Python number as JSON."""
    for read in _READERS:
        try:
            number = read(word)
        except ValueError:
            continue
        return json.dumps(number) if abs(number) < float("inf") else None
    return None


_READERS: tuple[Callable[[str], int | float], ...] = (
    lambda word: int(word, 0) if len(word) < 4000 else float("inf"),
    float,
)


def _strings(scan: Scanner, into: Into, *, raw: bool = False) -> Steps[bool]:
    """A string, or several side by side, as one JSON string."""
    into('"')
    while True:
        quote = yield from scan.peek(3)
        if quote not in ("'''", '"""'):
            quote = quote[:1]
        scan.skip(len(quote))
        if not (yield from _string(scan, into, quote, raw)):
            return False
        if (yield from scan.mark()) not in ("'", '"') or scan.at_end:
            into('"')
            return True


def _string(scan: Scanner, into: Into, quote: str, raw: bool) -> Steps[bool]:
    def said(text: str) -> None:
        into(json.dumps(text, ensure_ascii=False)[1:-1])

    plain = PLAIN[quote[0]]
    while True:
        yield from scan.take_while(plain, said)
        ahead = yield from scan.peek(len(quote))
        if ahead == quote:
            scan.skip(len(quote))
            return True
        if ahead[:1] != "\\":
            if not ahead:
                return False
            said(ahead[0])  # a quote inside a string of three
            scan.skip(1)
            continue
        ahead = yield from scan.peek(2)
        if len(ahead) < 2:
            return False
        scan.skip(2)
        if raw:
            said(ahead)
        elif (length := CODES.get(ahead[1])) is not None:
            digits = yield from scan.peek(length)
            try:
                said(chr(int(digits, 16)))
                scan.skip(length)
            except (ValueError, OverflowError):
                said(ahead)
        elif ahead[1] in "\\'\"":
            said(ahead[1])
        else:
            said(ESCAPES.get(ahead[1], ahead))
