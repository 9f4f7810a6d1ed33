"""Edits that 17 models attempted and another tool refused: what has one place is made, and no byte elsewhere changes."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.conformance.conftest import load_cases
from toolcrib.context import Context
from toolcrib.errors import ToolError
from toolcrib.tools import ApplyPatch, ApplyPatchParams, EditFile, EditFileParams
from toolcrib.tools.backends import MemoryBackend
from toolcrib.tools.text_match import fold

FOLDER = "corpora/edit-attempts"


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


def touched(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that are no longer there, and those that are new; a line that only moved is neither."""
    old, new = Counter(before.split("\n")), Counter(after.split("\n"))
    return [*(old - new)], [*(new - old)]


def plain(lines: list[str]) -> set[str]:
    return {"".join(fold(line).split()) for line in lines}


def attempt(task: dict[str, Any], kind: str, old: str, new: str, body: str) -> str:
    """Makes one attempt and checks what it changed: "made", "made already" or "refused"."""
    before = task["input"]
    files = MemoryBackend({"f": before})
    try:
        if kind == "replace":
            params = EditFileParams(path="f", old_string=old, new_string=new)
            EditFile(files).execute(params, Context())
        else:
            text = f"*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch"
            ApplyPatch(files).execute(ApplyPatchParams(patch=text), Context())
    except ToolError as refused:
        assert files.read("f", 10**7).decode() == before
        assert "f" in refused.message
        return "refused"
    after = files.read("f", 10**7).decode()
    removed, added = touched(before, after)
    if kind == "replace":
        assert plain(removed) <= plain(before.split("\n"))
        assert after == task["expected"] or not plain(removed) - plain(old.split("\n")) or old in before
    else:
        signs: dict[str, list[str]] = {"-": [], "+": []}
        for line in body.split("\n"):
            if line[:1] in signs:
                signs[line[0]].append(line[1:])
        assert plain(removed) <= plain(signs["-"]) | {""}
        assert plain(added) <= plain(signs["+"]) | {""}
    return "made already" if after == before else "made"


def outcomes() -> Counter[tuple[str, str]]:
    tasks = {task["task"]: task for task in load_cases(f"{FOLDER}/tasks.jsonl")}
    found: Counter[tuple[str, str]] = Counter()
    for row in load_cases(f"{FOLDER}/attempts.jsonl"):
        task, kind = tasks[row["task"]], row["format"]
        try:
            args = json.loads(row["args"])
        except ValueError:
            args = row["args"]
        pair = replacement(args) if kind == "replace" else None
        body = patch_body(args) if kind == "patch" else None
        if pair is None and body is None:
            found[kind, "no edit"] += 1
            continue
        old, new = pair or ("", "")
        found[kind, attempt(task, kind, old, new, body or "")] += 1
        if body is not None:
            old = "\n".join(line[1:] for line in body.split("\n") if line[:1] in (" ", "-"))
        found[kind, "plain exact replace"] += old != "" and task["input"].count(old) == 1
    return found


def test_refused_edits_are_made_where_they_have_one_place() -> None:
    found = outcomes()
    assert found["replace", "made"] > found["replace", "plain exact replace"] > 0
    assert found["patch", "made"] > found["patch", "plain exact replace"] > 0
