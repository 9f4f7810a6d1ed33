"""Many byte strings looked for at once. Both ways answer alike, and one form costs what thousands do.

`Blocks` is plain Python: the text is cut into blocks of q bytes, which are looked up in one set. Whatever is at
least 2q-1 bytes long holds a whole block at any offset, so a form is listed under q neighbouring slices of
its middle (the ends are what keys have in common). `Automaton` is Aho-Corasick from `pyahocorasick`
(extra `secrets`): steadier where nearly every block meets a form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

from .forms import Form

PIECE = 1 << 16
WIDEST = 8


class Finder(Protocol):
    """Finds all places of all forms."""

    def find(self, data: bytes) -> Iterable[tuple[int, Form]]:
        """(start, form) for every place of every form, overlapping ones too, in any order."""
        ...


class Blocks:
    """Without any dependency. `q` follows from the shortest form."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self.q = min([WIDEST, *((len(form.text) + 1) // 2 for form in forms)])
        self._cut = re.compile(b"(?s:.{%d})" % self.q)
        self._table: dict[bytes, list[tuple[int, Form]]] = {}
        for form in forms:
            middle = (len(form.text) - (2 * self.q - 1)) // 2
            for offset in range(middle, middle + self.q):
                self._table.setdefault(form.text[offset : offset + self.q], []).append((offset, form))

    def find(self, data: bytes) -> Iterator[tuple[int, Form]]:
        q, table = self.q, self._table
        step = PIECE // q * q
        for begin in range(0, len(data), step):
            blocks = self._cut.findall(data, begin, min(begin + step, len(data)))
            if table.keys().isdisjoint(blocks):
                continue
            for number, block in enumerate(blocks):
                for offset, form in table.get(block, ()):
                    start = begin + number * q - offset
                    if start >= 0 and data.startswith(form.text, start):
                        yield start, form


class Automaton:
    """Through `pyahocorasick`, which works on text: each byte is one character."""

    def __init__(self, forms: Sequence[Form]) -> None:
        import ahocorasick  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self._automaton: Any = ahocorasick.Automaton()
        known: dict[bytes, list[Form]] = {}
        for form in forms:
            known.setdefault(form.text, []).append(form)
        for text, same in known.items():
            self._automaton.add_word(text.decode("latin-1"), (len(text), same))
        self._automaton.make_automaton()

    def find(self, data: bytes) -> Iterator[tuple[int, Form]]:
        for last, (length, same) in self._automaton.iter(data.decode("latin-1")):
            for form in same:
                yield last + 1 - length, form


def automaton_installed() -> bool:
    """Whether `pyahocorasick` can be imported."""
    return find_spec("ahocorasick") is not None


class Prefixes:
    """Where the end of a text may be the beginning of a form: what a stream has to hold back."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self.longest = max((len(form.text) for form in forms), default=0)
        self._before = {form.before for form in forms if form.before}
        self._begun = {before[:size] for before in self._before for size in range(1, len(before) + 1)}
        self._after = {form.after[:size] for form in forms for size in range(len(form.after))}
        self._short = {f.text[:size] for f in forms for size in range(1, min(WIDEST, len(f.text)))}
        self._long: dict[bytes, list[bytes]] = {}
        for text in {form.text for form in forms}:
            self._long.setdefault(text[:WIDEST], []).append(text)

    def hold(self, data: bytes) -> int:
        """The first index from which on `data` is a proper beginning of a form; its length if there is none."""
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
