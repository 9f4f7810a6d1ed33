"""Vocabularies for tests of local guides: bytes, and a byte-pair encoding that is trained on the pages of docs/."""

from __future__ import annotations

import functools
import heapq
import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

from toolcrib.guided.local import Vocabulary

PAGES = Path(__file__).parents[1] / "docs"


@functools.cache
def byte_vocabulary() -> Vocabulary:
    """A token for each byte, and one for the end."""
    return Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end=256)


@functools.cache
def trained_vocabulary(size: int = 4_096) -> Vocabulary:
    """A byte-pair encoding of so many tokens, the end among them; trained in about a second."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md")))
    words = Counter(re.findall(r" ?\w+| ?[^\w\s]+|\s+", text))
    tokens = [bytes([byte]) for byte in range(256)]
    spelled = [[*word.encode()] for word in words]
    counts = [*words.values()]
    pairs: Counter[tuple[int, int]] = Counter()
    places: dict[tuple[int, int], set[int]] = defaultdict(set)
    for number, word in enumerate(spelled):
        for pair in pairwise(word):
            pairs[pair] += counts[number]
            places[pair].add(number)
    waiting = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(waiting)
    while len(tokens) < size - 1:
        count, best = heapq.heappop(waiting)
        if pairs[best] != -count:  # an entry that a merge has made old
            continue
        changed: set[tuple[int, int]] = set()
        for number in places.pop(best):
            word = spelled[number]
            for pair in pairwise(word):
                pairs[pair] -= counts[number]
            spelled[number] = joined = _joined(word, best, len(tokens))
            for pair in pairwise(joined):
                pairs[pair] += counts[number]
                places[pair].add(number)
            changed.update(pairwise(word), pairwise(joined))
        for pair in changed:
            heapq.heappush(waiting, (-pairs[pair], pair))
        tokens.append(tokens[best[0]] + tokens[best[1]])
    return Vocabulary([*tokens, b""], end=size - 1)


def _joined(word: list[int], pair: tuple[int, int], new: int) -> list[int]:
    out: list[int] = []
    at = 0
    while at < len(word):
        if at + 1 < len(word) and (word[at], word[at + 1]) == pair:
            out.append(new)
            at += 2
        else:
            out.append(word[at])
            at += 1
    return out
