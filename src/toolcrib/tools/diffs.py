"""The changes between two texts, for a person: a unified diff in linear time."""

from __future__ import annotations

import difflib
from functools import partial

from toolcrib.tools.backends.protocol import Backend

CONTEXT = 3
MAX_ALIGNED = 400  # changed lines up to which lines are matched up; beyond, old lines then new ones
MAX_CHARS = 100_000
NO_END = "\n\\ No newline at end of file"  # as patches say it
PIECE = 65_536  # characters that are compared at once


def digest_of(data: bytes) -> str:
    """A digest of a file's content."""
    import hashlib

    return hashlib.sha256(data).hexdigest()


def shown_with_target(backend: Backend, path: str) -> str:
    """A path as it is shown to a person, with the path that links in it lead to, if that is another one."""
    shown = backend.place(path).shown
    real = backend.leads_to(path)
    return shown if real in (None, shown) else f"{shown} -> {real}"


def unified_diff(old: str, new: str, path: str) -> str:
    """A unified diff of one file; empty if nothing changed.

    The common start and end of both texts are removed first, so that a small edit of a large file is cheap. Line ends
    are left out where they are alike in both texts; else a line that ends in CRLF is shown with its carriage return.
    """
    lines = partial(_lines, ends=_ends_of(old) | _ends_of(new), last=_is_ended(old) != _is_ended(new))
    start = _same_start(old, new)
    end = _same_end(old, new, start)
    above = old.count("\n", 0, start)  # equal lines
    first = _back(old, start)
    before = lines(old[first : _on(old, len(old) - end)])
    after = lines(new[first : _on(new, len(new) - end)])
    skipped = above - old.count("\n", first, start)
    same = 0 if old == new else _common(before, after, 0)
    tail = _common(before, after, same, from_end=True)
    if max(len(before), len(after)) - same - tail > MAX_ALIGNED:
        left, right = before[same : len(before) - tail], after[same : len(after) - tail]
        at = skipped + same + 1
        body = [f"@@ -{at},{len(left)} +{at},{len(right)} @@"]
        body += ["-" + line for line in left] + ["+" + line for line in right]
    else:
        body = _aligned(before, after, skipped)
    if not body:
        return ""
    text = "\n".join([f"--- {path}", f"+++ {path}", *body]) + "\n"
    return text if len(text) <= MAX_CHARS else text[:MAX_CHARS] + "\n[diff cut here]\n"


def _same_start(old: str, new: str) -> int:
    """How long the equal start of both texts is, in whole lines."""
    at, most = 0, min(len(old), len(new))
    while at < most and old[at : at + PIECE] == new[at : at + PIECE]:
        at += PIECE
    at = min(at, most)
    while at < most and old[at] == new[at]:
        at += 1
    return old.rfind("\n", 0, at) + 1


def _same_end(old: str, new: str, start: int) -> int:
    """How long the equal end of both texts is, in whole lines, without what belongs to the equal start."""
    most = min(len(old), len(new)) - start
    count = 0
    while (
        count + PIECE <= most
        and old[len(old) - count - PIECE : len(old) - count]
        == (new[len(new) - count - PIECE : len(new) - count])
    ):
        count += PIECE
    while count < most and old[-1 - count] == new[-1 - count]:
        count += 1
    found = old.find("\n", len(old) - count)
    return 0 if found < 0 else len(old) - found - 1


def _back(text: str, start: int) -> int:
    """The start of the context above."""
    for _ in range(CONTEXT):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
    return start


def _on(text: str, end: int) -> int:
    """The end of the context below."""
    for _ in range(CONTEXT):
        end = text.find("\n", end) + 1 or len(text)
    return end


def _ends_of(text: str) -> set[str]:
    """The kinds of line ends in a text."""
    returns = text.count("\r\n")
    return {*(["\r\n"] if returns else ()), *(["\n"] if text.count("\n") > returns else ())}


def _is_ended(text: str) -> bool:
    return not text or text[-1] == "\n"


def _lines(text: str, ends: set[str], *, last: bool) -> list[str]:
    """The lines of a part of a text. With `last`, a note is added to a last line that has no line end."""
    lines = text.split("\n")
    rest = lines.pop()
    if len(ends) < 2:
        lines = [line.removesuffix("\r") for line in lines]
    return lines if not rest else [*lines, rest + NO_END if last else rest]


def _aligned(left: list[str], right: list[str], first: int) -> list[str]:
    body: list[str] = []
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        i1, i2, j1, j2 = group[0][1], group[-1][2], group[0][3], group[-1][4]
        body.append(f"@@ -{_range(first + i1, i2 - i1)} +{_range(first + j1, j2 - j1)} @@")
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                body += [" " + line for line in left[a1:a2]]
                continue
            body += ["-" + line for line in left[a1:a2]]
            body += ["+" + line for line in right[b1:b2]]
    return body


def _range(start: int, length: int) -> str:
    begin = start + 1 if length else start
    return str(begin) if length == 1 else f"{begin},{length}"


def _common(a: list[str], b: list[str], skip: int, *, from_end: bool = False) -> int:
    """How many lines two texts share at one end, the first `skip` lines not counted."""
    most = min(len(a), len(b)) - skip
    for count in range(most):
        index = -1 - count if from_end else skip + count
        if a[index] != b[index]:
            return count
    return most
