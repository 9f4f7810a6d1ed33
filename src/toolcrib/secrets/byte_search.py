"""Finds all places of many byte strings in one pass, in a time that does not depend on how many there are.

There are two implementations, which find the same. `BlockSearch` is plain Python: the text is cut into blocks of q
bytes, and each block is looked up in one set. What is at least 2q-1 bytes long contains a whole block at any offset,
so an encoding is listed under q neighbouring slices of its middle (the ends are what many keys have in common).
`AhoCorasick` uses `pyahocorasick` (extra `secrets`); it is steadier where nearly every block occurs in an encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

from toolcrib.secrets.encodings import SecretEncoding

__all__ = ["AhoCorasick", "BlockSearch", "ByteSearch", "UnfinishedMatches", "aho_corasick_installed"]

CHUNK = 1 << 16  # bytes that are cut into blocks at a time
MAX_BLOCK = 8


class ByteSearch(Protocol):
    """Finds all places of all encodings in a text."""

    def find(self, data: bytes) -> Iterable[tuple[int, SecretEncoding]]:
        """Start and encoding of every place, overlapping ones too, in any order."""
        ...


class BlockSearch:
    """The search without any dependency. `q` follows from the shortest encoding."""

    def __init__(self, encodings: Sequence[SecretEncoding]) -> None:
        self.q = min([MAX_BLOCK, *((len(encoding.text) + 1) // 2 for encoding in encodings)])
        self._cut = re.compile(b"(?s:.{%d})" % self.q)
        self._table: dict[bytes, list[tuple[int, SecretEncoding]]] = {}
        for encoding in encodings:
            middle = (len(encoding.text) - (2 * self.q - 1)) // 2
            for offset in range(middle, middle + self.q):
                self._table.setdefault(encoding.text[offset : offset + self.q], []).append((offset, encoding))

    def find(self, data: bytes) -> Iterator[tuple[int, SecretEncoding]]:
        q, table = self.q, self._table
        step = CHUNK // q * q
        for begin in range(0, len(data), step):
            blocks = self._cut.findall(data, begin, min(begin + step, len(data)))
            if table.keys().isdisjoint(blocks):
                continue
            for number, block in enumerate(blocks):
                for offset, encoding in table.get(block, ()):
                    start = begin + number * q - offset
                    if start >= 0 and data.startswith(encoding.text, start):
                        yield start, encoding


class AhoCorasick:
    """The search by `pyahocorasick`, which works on text: each byte becomes a character."""

    def __init__(self, encodings: Sequence[SecretEncoding]) -> None:
        import ahocorasick  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self._automaton: Any = ahocorasick.Automaton()
        known: dict[bytes, list[SecretEncoding]] = {}
        for encoding in encodings:
            known.setdefault(encoding.text, []).append(encoding)
        for text, same in known.items():
            self._automaton.add_word(text.decode("latin-1"), (len(text), same))
        self._automaton.make_automaton()

    def find(self, data: bytes) -> Iterator[tuple[int, SecretEncoding]]:
        for last, (length, same) in self._automaton.iter(data.decode("latin-1")):
            for encoding in same:
                yield last + 1 - length, encoding


def aho_corasick_installed() -> bool:
    """Whether `pyahocorasick` can be imported."""
    return find_spec("ahocorasick") is not None


class UnfinishedMatches:
    """Finds where the end of a text may be the beginning of an encoding, which a stream has to hold back."""

    def __init__(self, encodings: Sequence[SecretEncoding]) -> None:
        self.longest = max((len(encoding.text) for encoding in encodings), default=0)
        self._before = {encoding.before for encoding in encodings if encoding.before}
        self._begun = {before[:size] for before in self._before for size in range(1, len(before) + 1)}
        self._after = {encoding.after[:size] for encoding in encodings for size in range(len(encoding.after))}
        self._short = {f.text[:size] for f in encodings for size in range(1, min(MAX_BLOCK, len(f.text)))}
        self._long: dict[bytes, list[bytes]] = {}
        for text in {encoding.text for encoding in encodings}:
            self._long.setdefault(text[:MAX_BLOCK], []).append(text)

    def hold(self, data: bytes) -> int:
        """The first index from which `data` is the beginning of an encoding, but not all of it; else its length."""
        size = len(data)
        for start in range(max(0, size - self.longest + 1), size - MAX_BLOCK + 1):
            candidates = self._long.get(data[start : start + MAX_BLOCK])
            if candidates:
                rest = data[start:]
                if any(len(text) > len(rest) and text.startswith(rest) for text in candidates):
                    return start
        for start in range(max(0, size - MAX_BLOCK + 1), size):
            if data[start:] in self._short:
                return start
        return size

    def with_before(self, data: bytes, start: int) -> int:
        """The start of held text, moved in front of the punctuation that the value begins with."""
        known = self._before if start < len(data) else self._begun
        for size in range(min(start, max(map(len, self._before), default=0)), 0, -1):
            if data[start - size : start] in known:
                return start - size
        return start

    def may_go_on(self, rest: bytes) -> bool:
        """Whether the text after a found value may be the beginning of the punctuation that the value ends with."""
        return rest in self._after
