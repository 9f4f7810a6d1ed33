"""Many byte strings looked for at once. Both ways answer alike, and one encoding costs what thousands do.

`Blocks` is plain Python: the text is cut into blocks of q bytes, which are looked up in one set. Whatever is at
least 2q-1 bytes long holds a whole block at any offset, so an encoding is listed under q neighbouring slices of
its middle (the ends are what keys have in common). `Automaton` is Aho-Corasick from `pyahocorasick`
(extra `secrets`): steadier where nearly every block meets an encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

from toolcrib.secrets.encodings import Encoding

PIECE = 1 << 16
WIDEST = 8


class Finder(Protocol):
    """Finds all places of all encodings."""

    def find(self, data: bytes) -> Iterable[tuple[int, Encoding]]:
        """(start, encoding) for every place of every encoding, overlapping ones too, in any order."""
        ...


class Blocks:
    """Without any dependency. `q` follows from the shortest encoding."""

    def __init__(self, encodings: Sequence[Encoding]) -> None:
        self.q = min([WIDEST, *((len(encoding.text) + 1) // 2 for encoding in encodings)])
        self._cut = re.compile(b"(?s:.{%d})" % self.q)
        self._table: dict[bytes, list[tuple[int, Encoding]]] = {}
        for encoding in encodings:
            middle = (len(encoding.text) - (2 * self.q - 1)) // 2
            for offset in range(middle, middle + self.q):
                self._table.setdefault(encoding.text[offset : offset + self.q], []).append((offset, encoding))

    def find(self, data: bytes) -> Iterator[tuple[int, Encoding]]:
        q, table = self.q, self._table
        step = PIECE // q * q
        for begin in range(0, len(data), step):
            blocks = self._cut.findall(data, begin, min(begin + step, len(data)))
            if table.keys().isdisjoint(blocks):
                continue
            for number, block in enumerate(blocks):
                for offset, encoding in table.get(block, ()):
                    start = begin + number * q - offset
                    if start >= 0 and data.startswith(encoding.text, start):
                        yield start, encoding


class Automaton:
    """Through `pyahocorasick`, which works on text: each byte is one character."""

    def __init__(self, encodings: Sequence[Encoding]) -> None:
        import ahocorasick  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self._automaton: Any = ahocorasick.Automaton()
        known: dict[bytes, list[Encoding]] = {}
        for encoding in encodings:
            known.setdefault(encoding.text, []).append(encoding)
        for text, same in known.items():
            self._automaton.add_word(text.decode("latin-1"), (len(text), same))
        self._automaton.make_automaton()

    def find(self, data: bytes) -> Iterator[tuple[int, Encoding]]:
        for last, (length, same) in self._automaton.iter(data.decode("latin-1")):
            for encoding in same:
                yield last + 1 - length, encoding


def automaton_installed() -> bool:
    """Whether `pyahocorasick` can be imported."""
    return find_spec("ahocorasick") is not None


class Prefixes:
    """Where the end of a text may be the beginning of an encoding: what a stream has to hold back."""

    def __init__(self, encodings: Sequence[Encoding]) -> None:
        self.longest = max((len(encoding.text) for encoding in encodings), default=0)
        self._before = {encoding.before for encoding in encodings if encoding.before}
        self._begun = {before[:size] for before in self._before for size in range(1, len(before) + 1)}
        self._after = {encoding.after[:size] for encoding in encodings for size in range(len(encoding.after))}
        self._short = {f.text[:size] for f in encodings for size in range(1, min(WIDEST, len(f.text)))}
        self._long: dict[bytes, list[bytes]] = {}
        for text in {encoding.text for encoding in encodings}:
            self._long.setdefault(text[:WIDEST], []).append(text)

    def hold(self, data: bytes) -> int:
        """The first index from which on `data` is a proper beginning of an encoding; its length if there is none."""
        size = len(data)
        for start in range(max(0, size - self.longest + 1), size - WIDEST + 1):
            candidates = self._long.get(data[start : start + WIDEST])
            if candidates:
                rest = data[start:]
                if any(len(text) > len(rest) and text.startswith(rest) for text in candidates):
                    return start
        for start in range(max(0, size - WIDEST + 1), size):
            if data[start:] in self._short:
                return start
        return size

    def with_before(self, data: bytes, start: int) -> int:
        """The start of held text moved over the punctuation that a value begins with; at the end, over some of it."""
        known = self._before if start < len(data) else self._begun
        for size in range(min(start, max(map(len, self._before), default=0)), 0, -1):
            if data[start - size : start] in known:
                return start - size
        return start

    def may_go_on(self, rest: bytes) -> bool:
        """Whether what follows a found value to the end of the text may be the beginning of what belongs to it."""
        return rest in self._after
