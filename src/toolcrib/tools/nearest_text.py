"""The places of a text that are most like one that was not found: what a model needs to try again."""

from __future__ import annotations

from collections import Counter

from toolcrib.tools.text_match import Source, fold, indent_of

LOOKED_AT = 20  # lines of the wanted text that vote for a place, the longest ones
CANDIDATES = 2
MAX_HITS = 1_000  # of one line or word: one that is more frequent says nothing about the place
WORDS = 6  # of the most distinctive line, the longest ones
COMPARED = 50  # lines that share most of these words
ENOUGH_ALIKE = 0.4  # share of words that two lines have in common
SHOWN_CHARS = 200
# What models most often get wrong: case, spacing and quotes.
BREAK = ord("\n")
SPACES, QUOTES = b" \t\r\f\v", bytes.maketrans(b'"', b"'")


def nearest(source: Source, old: str) -> list[tuple[int, list[str], str]]:
    """The places most similar to `old`: line number, lines, and the first difference."""
    wanted = old.strip("\n").split("\n")
    lower = source.folded.lower()
    plain = _plain(lower)
    keys: dict[bytes, int] = {}
    for index, line in enumerate(wanted):
        if key := _plain(fold(line).lower()):
            keys.setdefault(key, index)
    votes: Counter[int] = Counter()
    for key in sorted(keys, key=len, reverse=True)[:LOOKED_AT]:
        for line_number in _lines_that_are(plain, key):
            votes[line_number - keys[key]] += len(key)
    starts = [max(0, start) for start, _ in votes.most_common(CANDIDATES)] or _similar(lower, wanted)
    if not starts:
        return []
    lines = source.text.removesuffix("\n").split("\n", max(starts) + len(wanted))
    lines = lines[: max(starts) + len(wanted)]
    places = [(start + 1, lines[start : start + len(wanted)]) for start in dict.fromkeys(starts)]
    return [(number, there, _difference(there, wanted)) for number, there in places]


def _plain(lower: str) -> bytes:
    """A folded text in small letters without what models most often get wrong, as bytes: they lose it quickly."""
    return lower.encode("utf-8", "surrogatepass").translate(QUOTES, SPACES)


def _lines_that_are(plain: bytes, key: bytes) -> list[int]:
    """The numbers, from 0, of the lines that are equal to a text; none if there are too many."""
    found: list[int] = []
    number = counted = 0
    end = len(plain)
    at = plain.find(key)
    while at >= 0:
        stop = at + len(key)
        if (at == 0 or plain[at - 1] == BREAK) and (stop == end or plain[stop] == BREAK):
            number += plain.count(b"\n", counted, at)
            counted = at
            found.append(number)
            if len(found) > MAX_HITS:
                return []
        at = plain.find(key, stop)
    return found


def _similar(lower: str, wanted: list[str]) -> list[int]:
    """The places whose line shares most words with the most distinctive line of the wanted text."""
    index, line = max(enumerate(wanted), key=lambda pair: len(pair[1].strip()))
    words = set(_words(fold(line)))
    votes: Counter[int] = Counter()  # by where the line starts
    for word in sorted(words, key=len, reverse=True)[:WORDS]:
        hits: set[int] = set()
        at = lower.find(word)
        while at >= 0 and len(hits) <= MAX_HITS:
            hits.add(lower.rfind("\n", 0, at) + 1)
            end = lower.find("\n", at)
            at = lower.find(word, end) if end >= 0 else -1
        if len(hits) <= MAX_HITS:
            votes.update(dict.fromkeys(hits, len(word)))
    best, best_share = -1, ENOUGH_ALIKE
    for start, _ in sorted(votes.items(), key=lambda item: (-item[1], item[0]))[:COMPARED]:
        theirs = set(_words(lower[start : start + SHOWN_CHARS].partition("\n")[0]))
        share = len(words & theirs) / len(words | theirs)
        if share > best_share:
            best, best_share = lower.count("\n", 0, start), share
    return [max(0, best - index)] if best >= 0 else []


def _words(line: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in line.lower()).split()


def _difference(there: list[str], wanted: list[str]) -> str:
    for index, want in enumerate(wanted):
        if index >= len(there):
            return f"the file ends after {index} of the {len(wanted)} lines"
        line = there[index]
        if line == want:
            continue
        where = f"line {index + 1} of old_string differs "
        if line.strip() == want.strip():
            same_start = indent_of(line) == indent_of(want)
            return where + ("in spaces at its end" if same_start else "in its indentation")
        if "".join(line.split()) == "".join(want.split()):
            return where + "in its spacing"
        if fold(line).replace('"', "'").strip() == fold(want).replace('"', "'").strip():
            return where + "in its quotes or other typography"
        if line.casefold().strip() == want.casefold().strip():
            return where + "in upper and lower case"
        return where + "in its text"
    return "only the surroundings differ"
