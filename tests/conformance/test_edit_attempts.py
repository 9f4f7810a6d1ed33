"""Edits that 17 models attempted and another tool refused: what has one place is made, and no byte elsewhere changes.

How many plausible places an edit has is counted without the tools' own matching: where the old text, or the lines of each
hunk that are not added, stand when no white space counts. What stands in one place exactly as it was written has that place.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.conformance.conftest import load_cases
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import ApplyPatch, ApplyPatchParams, EditFile, EditFileParams
from toolcrib.tools.backends import MemoryBackend
from toolcrib.tools.line_address import address_of
from toolcrib.tools.text_match import fold

FOLDER = "corpora/edit-attempts"
NAMES_A_PLACE = re.compile(r"^ *\d+: |line \d|\d+:[a-z0-9]{2}\b|not found in f", re.MULTILINE)
LISTED_LINE = re.compile(
    r"^\s*(?:>>>)?\s*(\d+):([0-9a-z]{2})\|\s?(.*)$", re.MULTILINE
)  # in that tool's errors


def replacement(args: Any) -> tuple[str, str] | None:
    """What an attempt wants to replace by what; None if it is not written so."""
    old, new = (
        (args.get(name) for name in ("old_text", "new_text")) if isinstance(args, dict) else (None, None)
    )
    return (old, new) if isinstance(old, str) and isinstance(new, str) and old != new else None


def patch_body(args: Any) -> str | None:
    """The hunks of a patch, without the headers of other formats; None if it changes nothing."""
    text = args if isinstance(args, str) else args.get("diff") if isinstance(args, dict) else None
    if not isinstance(text, str):
        return None
    lines = [line for line in text.split("\n") if not line.startswith(("*** ", "--- ", "+++ "))]
    return "\n".join(lines).strip("\n") if any(line[:1] in ("+", "-") for line in lines if line) else None


def addressed(args: Any, error: str, text: str) -> tuple[str, str, str | None] | None:
    """The single edit of a call that addresses a line by that tool's own hash: old text, new text and our address.

    Which line a hash means is read from the tool's error. A hash that was not the line's becomes an address of ours that
    is not the line's either. None if the call holds another edit, or nobody knows its line's hash.
    """
    edits = args.get("edits") if isinstance(args, dict) else None
    if not isinstance(edits, list) or len(edits) != 1 or not isinstance(edits[0], dict):
        return None
    edit = edits[0]
    inner = next(
        (edit[name] for name in ("replace", "set_line", "single") if isinstance(edit.get(name), dict)), edit
    )
    if pair := replacement(inner):
        return (*pair, None)
    place = next((inner[name] for name in ("anchor", "loc", "src") if isinstance(inner.get(name), str)), "")
    new = next(
        (inner[name] for name in ("new_text", "replacement", "dst") if isinstance(inner.get(name), str)), None
    )
    found = re.match(r"(\d+):([0-9a-z]{2})(?![0-9a-z])", place)
    if new is None or not place:
        return None
    if found is None:
        return (place, new, None) if place != new else None
    number, lines = int(found[1]), text.split("\n")
    hashes = {
        int(n): code for n, code, line in LISTED_LINE.findall(error) if line in lines[int(n) - 1 : int(n)]
    }
    if number not in hashes or not lines[number - 1].strip():
        return None
    ours = address_of(number, lines[number - 1])
    stale = f"{number}:{'aa' if not ours.endswith('aa') else 'bb'}"
    return lines[number - 1], new, ours if hashes[number] == found[2] else stale


def squeezed(text: str) -> str:
    return "".join(fold(text).split())


def spans(text: str, old: str) -> Iterator[tuple[int, int]]:
    """Where a text stands in another when no white space counts, with the white space beside it in its lines."""
    offsets = [offset for offset, char in enumerate(text) if not char.isspace()]
    whole, wanted = squeezed(text), squeezed(old)
    at = whole.find(wanted) if wanted else -1
    while at >= 0:
        start, end = offsets[at], offsets[at + len(wanted) - 1] + 1
        line, stop = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        yield line if not text[line:start].strip() else start, stop if not text[end:stop].strip() else end
        at = whole.find(wanted, at + 1)


def hunk_places(text: str, body: str) -> int:
    """How many places the hunk with most of them has; 0 if a hunk has none. Blank lines do not count.

    Where the lines stand just so, and after the hunk before, that is the place. A hunk that changes nothing has one.
    """
    raw = text.split("\n")
    lines = [(number, short) for number, line in enumerate(raw) if (short := squeezed(line))]
    counts: list[int] = []
    position = 0
    for hunk in re.split(r"^@@.*$\n?", body, flags=re.MULTILINE):
        if not hunk.strip():
            continue
        old = [line[line[:1] in (" ", "-") :] for line in hunk.rstrip("\n").split("\n") if line[:1] != "+"]
        wanted = [line for line in map(squeezed, old) if line]
        starts = range(len(lines) - len(wanted) + 1) if wanted else range(0)
        found = [
            lines[at][0] for at in starts if [line for _, line in lines[at : at + len(wanted)]] == wanted
        ]
        exact = [at for at in range(position, len(raw)) if old and raw[at : at + len(old)] == old]
        places = exact if len(exact) == 1 else found
        changes = re.search("^[+-]", hunk, re.MULTILINE)
        counts.append(len(places) if changes else min(len(places), 1))
        position = places[0] + len(old) if len(places) == 1 else position
    return 0 if not counts or 0 in counts else max(counts)


def check_replaced(before: str, after: str, old: str, new: str) -> None:
    """Every byte outside one place of the old text is as it was, and the new text stands in that place."""
    assert any(
        after.startswith(before[:start])
        and after.endswith(before[end:])
        and squeezed(after[start : len(after) - (len(before) - end)]) == squeezed(new)
        for start, end in spans(before, old)
    )


def check_patched(before: str, after: str, body: str) -> None:
    """No line is gone that is not removed by the patch, and none has come that is not added; each as often at most."""
    was, now = Counter(before.split("\n")), Counter(after.split("\n"))
    signs = {"-": Counter[str](), "+": Counter[str]()}
    for line in body.split("\n"):
        if line[:1] in signs:
            signs[line[0]][squeezed(line[1:])] += 1
    assert not Counter(map(squeezed, (was - now).elements())) - signs["-"]
    assert not Counter(map(squeezed, (now - was).elements())) - signs["+"]


def attempt(before: str, old: str, new: str, body: str | None, at: str | None) -> tuple[str, str]:
    """Makes one attempt and checks what it changed: "made", "nothing left" or "refused", and the file afterwards."""
    files = MemoryBackend({"f": before})
    try:
        if body is not None:
            text = f"*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch"
            told = ApplyPatch(files).execute(ApplyPatchParams(patch=text), Context())
        else:
            params = EditFileParams(path="f", old_string=old, new_string=new, at=at)
            told = EditFile(files).execute(params, Context())
    except ToolError as refused:
        assert files.read("f", 10**7).decode() == before
        assert NAMES_A_PLACE.search(refused.message) or "of the patch" in refused.message, refused.message
        return "refused", before
    after = files.read("f", 10**7).decode()
    if after == before:
        assert "nothing was changed" in told.lower()
        return "nothing left", after
    if body is not None:
        check_patched(before, after, body)
    else:
        check_replaced(before, after, old, new)
    return "made", after


def outcomes() -> Counter[tuple[str, ...]]:
    """How many attempts of each kind had which outcome, in total and of those with one plausible place."""
    tasks = {task["task"]: task for task in load_cases(f"{FOLDER}/tasks.jsonl")}
    found: Counter[tuple[str, ...]] = Counter()
    for row in load_cases(f"{FOLDER}/attempts.jsonl"):
        task, kind = tasks[row["task"]], row["format"]
        before = task["input"]
        try:
            args = json.loads(row["args"])
        except ValueError:
            args = row["args"]
        body = patch_body(args) if kind == "patch" else None
        pair = replacement(args) if kind == "replace" else None
        edit = (
            addressed(args, row["error"], before) if kind == "hashline" else (*pair, None) if pair else None
        )
        if edit is None and body is None:
            found[kind, "no edit"] += 1
            continue
        old, new, at = edit or ("", "", None)
        if body is None and old == new:
            found[kind, "same text"] += 1
            continue
        outcome, after = attempt(before, old, new, body, at)
        found[kind, outcome] += 1
        found[kind, "as the task wants"] += outcome == "made" and after == task["expected"]
        if at is None:
            exact = before.count(old) if body is None else 0
            places = hunk_places(before, body) if body is not None else len([*spans(before, old)])
            places = 1 if exact == 1 else places
            found[kind, ("no place", "one place", "many places")[min(places, 2)], outcome] += 1
        else:
            found[kind, "addressed", outcome] += 1
        plain_old = old or "\n".join(line[1:] for line in (body or "").split("\n") if line[:1] in (" ", "-"))
        found[kind, "plain exact replace"] += plain_old != "" and before.count(plain_old) == 1
    return found


def test_refused_edits_are_made_where_they_have_one_place() -> None:
    found = outcomes()
    for kind in ("replace", "patch"):
        assert found[kind, "made"] > found[kind, "plain exact replace"] > 0
        assert found[kind, "many places", "made"] == found[kind, "no place", "made"] == 0
        assert found[kind, "one place", "refused"] == 0
