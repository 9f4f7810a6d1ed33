"""The changes between two texts, for a person: a unified diff in linear time."""

from __future__ import annotations

import difflib

from toolcrib.tools.backends.protocol import Backend

CONTEXT = 3
MAX_ALIGNED = 400  # changed lines up to which lines are matched up; beyond, old lines then new ones
MAX_CHARS = 100_000


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

    The common start and end of both texts are removed first, so that a small edit of a large file is cheap.
    """
    before, after = old.splitlines(), new.splitlines()
    same = _common(before, after, 0)
    tail = _common(before, after, same, from_end=True)
    first = max(0, same - CONTEXT)
    shown = max(0, tail - CONTEXT)
    left = before[first : len(before) - shown]
    right = after[first : len(after) - shown]
    if max(len(left), len(right)) > MAX_ALIGNED + 2 * CONTEXT:
        body = [f"@@ -{same + 1},{len(before) - same - tail} +{same + 1},{len(after) - same - tail} @@"]
        body += ["-" + line for line in before[same : len(before) - tail]]
        body += ["+" + line for line in after[same : len(after) - tail]]
    else:
        body = _aligned(left, right, first)
    if not body:
        return ""
    text = "\n".join([f"--- {path}", f"+++ {path}", *body]) + "\n"
    return text if len(text) <= MAX_CHARS else text[:MAX_CHARS] + "\n[diff cut here]\n"


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
