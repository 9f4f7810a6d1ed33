"""Finds the lines of a TOML text in which keys and tables stand, which `tomllib` does not tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["TomlLines"]


class TomlLines:
    """The lines of a text, counted from 1."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")

    def of_headers(self, name: str) -> list[int]:
        """The lines of all headers [[name]]."""
        header = re.compile(rf"^\s*\[\[\s*{re.escape(name)}\s*\]\]")
        return [number for number, line in enumerate(self._lines, 1) if header.match(line)]

    def of_key(self, key: str) -> int:
        """The line where a key or a table at the top level begins; 1 if it is not written as expected."""
        begins = re.compile(rf"""\s*\[{{0,2}}\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
        return next((number for number, line in enumerate(self._lines, 1) if begins.match(line)), 1)

    def of_path(self, keys: Sequence[str]) -> int:
        """The line of a key in tables, such as ("shell", "kind"); of the innermost table that is found, else 1."""
        if not keys:
            return 1
        *tables, key = keys
        header = re.compile(rf"\s*\[\s*{_dotted(tables)}\s*\]") if tables else None
        top, inside, found = True, False, 1
        for number, line in enumerate(self._lines, 1):
            if re.match(rf"\s*\[\s*{_dotted(keys)}\s*[.\]]", line):
                return number
            if top and re.match(rf"\s*{_dotted(keys)}\s*[=.]", line):
                return number
            if line.lstrip().startswith("["):
                top = False
                inside = header is not None and header.match(line) is not None
                found = number if inside else found
            elif inside and re.match(rf"\s*{_dotted([key])}\s*[=.]", line):
                return number
        return found if found > 1 or not tables else self.of_key(tables[0])

    def of_text(self, text: str, key: str, start: int) -> int:
        """The line of a text below a key, searched from a line on; that line if it is not written as expected."""
        lines = range(start, len(self._lines) + 1)
        begins = re.compile(rf"\s*{key}\s*=")
        first = next((number for number in lines if begins.match(self._lines[number - 1])), start)
        return next((n for n in lines if n >= first and text in self._lines[n - 1]), start)


def _dotted(keys: Sequence[str]) -> str:
    """A pattern of a dotted key, each part plain or in quotes."""
    return r"\s*\.\s*".join(rf"""["']?{re.escape(key)}["']?""" for key in keys)
