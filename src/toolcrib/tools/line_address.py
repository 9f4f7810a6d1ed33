"""Addresses of lines: number and short hash, as in "42:k9", so that an edit names a line that cannot be another one."""

from __future__ import annotations

import re
import zlib

ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # without l, o, 0 and 1, which are taken for each other
ADDRESS = re.compile(r"\s*(\d{1,9}):([a-z0-9]{2})\b")
SHOWN = 8  # lines of a region whose addresses are listed; of longer ones the first and the last


def address_of(number: int, line: str) -> str:
    """The address of a line, counted from 1. Spaces at its ends do not count.

    >>> address_of(42, "return None")
    '42:ga'
    """
    code = zlib.crc32(line.strip().encode("utf-8", "surrogatepass"))
    return f"{number}:{ALPHABET[code & 31]}{ALPHABET[code >> 5 & 31]}"


def parse_address(text: str) -> tuple[int, str] | None:
    """The number of a line and its whole address; None if the text has none. Text of the line after it is ignored."""
    match = ADDRESS.match(text)
    return None if match is None else (int(match[1]), f"{match[1]}:{match[2]}")


def region_addresses(text: str, start: int, end: int) -> str:
    """The addresses of the lines that a span of a text touches: "42:k9 43:xx", or of many "42:k9-60:ab"."""
    first = text.rfind("\n", 0, start) + 1
    number = text.count("\n", 0, first) + 1
    stop = text.find("\n", max(start, end - 1))
    lines = text[first : len(text) if stop < 0 else stop].split("\n")
    if len(lines) > SHOWN:
        return f"{address_of(number, lines[0])}-{address_of(number + len(lines) - 1, lines[-1])}"
    return " ".join(address_of(index, line) for index, line in enumerate(lines, number))
