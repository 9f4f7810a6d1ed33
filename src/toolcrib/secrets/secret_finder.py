"""Finds where known secrets stand in a text, in whatever encoding."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from toolcrib.secrets.byte_search import (
    AhoCorasick,
    BlockSearch,
    ByteSearch,
    UnfinishedMatches,
    aho_corasick_installed,
)
from toolcrib.secrets.decodings import Decoding, decodings, may_have_escapes
from toolcrib.secrets.dumps import dumps_in, may_hold_dumps
from toolcrib.secrets.encodings import SecretEncoding, encodings_of, flatten

__all__ = ["FlattenedText", "SecretFinder", "Span", "mark", "merged"]

Span = tuple[int, int, str]
"""The first byte of a secret, the byte after its last, and its name."""

_RUN = re.compile(rb"[0-9A-Za-z\x80-\xff]+")


def mark(name: str) -> str:
    """The text that replaces a secret."""
    return f"[secret {name}]"


class SecretFinder:
    """Searches texts for a set of values. With `automaton` None it uses `pyahocorasick` if that is installed."""

    def __init__(self, values: Mapping[str, str], *, automaton: bool | None = None) -> None:
        self.names = frozenset(values)
        flat: list[SecretEncoding] = []
        exact: list[SecretEncoding] = []
        for name, value in sorted(values.items()):
            as_flat, as_exact = encodings_of(name, value)
            flat += as_flat
            exact += as_exact
        wanted = aho_corasick_installed() if automaton is None else automaton
        make: type[AhoCorasick | BlockSearch] = AhoCorasick if wanted else BlockSearch
        self._flat: ByteSearch | None = make(flat) if flat else None
        self._exact: ByteSearch | None = make(exact) if exact else None
        self._encodings = flat, exact
        self._unfinished: tuple[UnfinishedMatches, UnfinishedMatches] | None = None

    def spans(self, data: bytes) -> list[Span]:
        """Where secrets stand in a text; spans may overlap. In a dump (`xxd`, `od`), a span covers whole lines."""
        spans = self._spans(data)
        for dump in dumps_in(data):
            spans += (
                (*dump.place(start, end), name) for start, end, name in self._spans(dump.data, text=False)
            )
        return spans

    def finds_nothing(self, data: bytes) -> bool:
        """Whether a text, or a string in it if it is JSON, holds no secret; False where that is not certain.

        Without escapes, each string of a JSON text stands in it as it is.
        """
        if may_have_escapes(data) or may_hold_dumps(data):
            return False
        flat = () if self._flat is None else self._flat.find(flatten(data))
        exact = () if self._exact is None else self._exact.find(data)
        return next(iter(flat), None) is None and next(iter(exact), None) is None

    def _spans(self, data: bytes, *, text: bool = True) -> list[Span]:
        spans: list[Span] = []
        for decoding in decodings(data, of_terminals=text):
            if self._flat is not None:
                flat = FlattenedText(decoding.data)
                for start, encoding in self._flat.find(flat.text):
                    first, last = flat.origin(start), flat.origin(start + len(encoding.text) - 1) + 1
                    spans.append(_widened(decoding, first, last, encoding))
            if self._exact is not None:
                for start, encoding in self._exact.find(decoding.data):
                    spans.append(_widened(decoding, start, start + len(encoding.text), encoding))
        return spans

    @property
    def unfinished(self) -> tuple[UnfinishedMatches, UnfinishedMatches]:
        """The searches for unfinished encodings, in flattened and in exact text; made when first needed."""
        if self._unfinished is None:
            self._unfinished = UnfinishedMatches(self._encodings[0]), UnfinishedMatches(self._encodings[1])
        return self._unfinished


class FlattenedText:
    """A flattened text that knows where each of its bytes stood."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.text = flatten(data)
        self._flat: list[int] = []
        self._start: list[int] = []

    def origin(self, index: int) -> int:
        """Where the byte at `index` of the flattened text stood."""
        if not self._flat or index < self._flat[0]:
            self._map(index)
        place = bisect_right(self._flat, index) - 1
        return self._start[place] + index - self._flat[place]

    def _map(self, index: int) -> None:
        """List the runs of kept bytes, only those at the end if that is enough: a stream asks for its last bytes."""
        begin = max(0, len(self.data) - 2 * (len(self.text) - index) - 1024)
        if begin and index < len(self.text) - len(flatten(self.data[begin:])):
            begin = 0
        at = len(self.text) - len(flatten(self.data[begin:])) if begin else 0
        self._flat, self._start = [], []
        for run in _RUN.finditer(self.data, begin):
            self._flat.append(at)
            self._start.append(run.start())
            at += run.end() - run.start()


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, overlapping ones joined under the name of the first (if several start there, of the longest)."""
    out: list[Span] = []
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        if out and start < out[-1][1]:
            if end > out[-1][1]:
                out[-1] = (out[-1][0], end, out[-1][2])
        else:
            out.append((start, end, name))
    return out


def _widened(decoding: Decoding, start: int, end: int, encoding: SecretEncoding) -> Span:
    """The span of a value with the punctuation that belongs to it, in the text as it came."""
    data = decoding.data
    if encoding.before and data.endswith(encoding.before, 0, start):
        start -= len(encoding.before)
    if encoding.after and data.startswith(encoding.after, end):
        end += len(encoding.after)
    return decoding.origin(start), decoding.origin(end, end=True), encoding.name
