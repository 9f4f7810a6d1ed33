"""Checkpoints, and what an undo does, in words for a person."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.cli.wording import local_minute
from toolcrib.visible import counted, escape_invisible, on_one_line

if TYPE_CHECKING:
    from toolcrib.checkpoints import Change, Checkpoint, Checkpoints, Restoration

MAX_FILES = 100  # files that are listed; further ones are only counted
MAX_NAMES = 3  # names on one line


def undo_hint(checkpoints: Checkpoints, run: str, again: str = "toolcrib undo") -> str:
    """What can be undone of a run that has just ended; "" if it changed nothing."""
    first = next((one for one in checkpoints.list() if one.run == run), None)
    if first is None:
        return ""
    preview = checkpoints.preview_undo(first.id)
    if not preview.changes:
        return ""
    pronoun = "it" if len(preview.changes) == 1 else "them"
    left_out = names_of(preview.not_covered)
    note = f" (not covered: {left_out})" if left_out else ""
    return f"{_files(preview.changes)} changed; `{again}` puts {pronoun} back{note}"


def restoration_lines(done: Restoration, checkpoints: Checkpoints, *, diffs: bool = False) -> Iterator[str]:
    """What an undo did or would do, file by file, and what it leaves."""
    for change in done.changes[:MAX_FILES]:
        yield f"  {change.what:<10}  {on_one_line(change.path)}{_size(change, checkpoints)}"
        if diffs and (text := _diff(change, checkpoints)):
            yield escape_invisible(text).rstrip("\n")
    if len(done.changes) > MAX_FILES:
        yield f"  and {len(done.changes) - MAX_FILES:,} more"
    for path, new in list(done.aside.items())[:MAX_FILES]:
        yield f"set aside: what stood at {on_one_line(path)} could not be saved, and is now {on_one_line(new)}"
    yield from _reasons("stays as it is", done.kept)
    yield from _reasons("not covered", done.not_covered)


def checkpoints_to_go_to(known: list[Checkpoint]) -> Iterator[tuple[Checkpoint, int | None]]:
    """The checkpoints that something changed after, newest first, each with how many paths; None for the newest."""
    for one, after in reversed(list(zip(known, [*known, None][1:], strict=True))):
        if after is None or after.changed:
            yield one, None if after is None else after.changed


def checkpoint_line(one: Checkpoint, changed: int | None) -> str:
    """A checkpoint, and what changed after it."""
    whose = {"run": "", "person": " by somebody else", "undo": " by an undo"}[one.then]
    what = "the state now" if changed is None else f"{counted(changed, 'path')} changed then{whose}"
    return f"{one.id:>5}  {local_minute(one.time)}  {on_one_line(one.label, 60)}: {what}"


def checkpoint_data(one: Checkpoint, changed: int | None) -> dict[str, Any]:
    """A checkpoint, and what changed after it, as JSON."""
    return {
        "id": one.id,
        "label": one.label,
        "time": one.time,
        "run": one.run or None,
        "changed_then": changed or 0,
        "changed_by": one.then,
    }


def restoration_data(
    done: Restoration, checkpoints: Checkpoints, *, preview: bool, diffs: bool
) -> dict[str, Any]:
    """What an undo did or would do, as JSON. Each change has what was there, and what is there then."""
    changes = [
        {
            "path": change.path,
            "what": change.what,
            "from": _kind(change.have) or None,
            "to": _kind(change.want) or None,
            **({"diff": _diff(change, checkpoints)} if diffs else {}),
        }
        for change in done.changes
    ]
    return {
        "preview": preview,
        "to": done.to.id,
        "changes": changes,
        "kept": done.kept,
        "not_covered": done.not_covered,
        "aside": done.aside,
        "checkpoint": None if done.checkpoint is None else done.checkpoint.id,
    }


def ago(seconds: float) -> str:
    """How long ago a time was.

    >>> ago(time.time() - 120)
    '2 minutes ago'
    """
    passed = max(0.0, time.time() - seconds)
    for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if passed >= size:
            return f"{counted(int(passed // size), word)} ago"
    return "just now"


def names_of(paths: Mapping[str, str]) -> str:
    """A few of the paths, and how many more there are."""
    shown = ", ".join(on_one_line(path or "the rest of the folder", 40) for path in list(paths)[:MAX_NAMES])
    return shown + (f" and {len(paths) - MAX_NAMES:,} more" if len(paths) > MAX_NAMES else "")


def _files(changes: tuple[Change, ...]) -> str:
    folders = sum(1 for change in changes if "folder" in (_kind(change.have), _kind(change.want)))
    files = len(changes) - folders
    parts = [counted(files, "file")] if files else []
    return " and ".join([*parts, *([counted(folders, "folder")] if folders else [])])


def _kind(entry: object) -> str:
    return getattr(entry, "kind", "")


def _reasons(words: str, reasons: Mapping[str, str]) -> Iterator[str]:
    by_reason: dict[str, dict[str, str]] = {}
    for path, reason in reasons.items():
        by_reason.setdefault(reason, {})[path] = reason
    for reason, paths in by_reason.items():
        yield f"{words}: {names_of(paths)}: {reason}"


def _size(change: Change, checkpoints: Checkpoints) -> str:
    """The number of added and removed lines; for a file that is no text, its kind."""
    kinds = {_kind(change.have), _kind(change.want)} - {""}
    if kinds != {"file"}:
        return f"  ({' to '.join(sorted(kinds))})" if kinds != {"folder"} else "/"
    texts = _texts(change, checkpoints)
    if texts is None:
        return "  (no text)"
    lines = _changed_lines(*texts)
    if not any(lines):
        return "  (mode)" if change.have is not None and change.want is not None else "  (empty)"
    return "  " + " ".join(f"{sign}{number:,}" for sign, number in zip("+-", lines, strict=True) if number)


def _changed_lines(old: str, new: str) -> tuple[int, int]:
    """How many lines are added and removed; the common start and end of both texts do not count."""
    from toolcrib.tools.diffs import unified_diff

    body = unified_diff(old, new, "").splitlines()[2:]
    return sum(line[:1] == "+" for line in body), sum(line[:1] == "-" for line in body)


def _diff(change: Change, checkpoints: Checkpoints) -> str:
    from toolcrib.command.judge.paths import may_hold_secrets
    from toolcrib.tools.diffs import unified_diff

    if may_hold_secrets(
        change.path
    ):  # what is printed may be read by a model: an agent that runs this command
        return "(not shown: it may hold secrets)\n"
    texts = _texts(change, checkpoints)
    return "" if texts is None else unified_diff(*texts, on_one_line(change.path))


def _texts(change: Change, checkpoints: Checkpoints) -> tuple[str, str] | None:
    """The texts before and after; None where one is no text."""
    try:
        old, new = (content or b"" for content in checkpoints.contents(change))
        return None if b"\0" in old + new else (old.decode(), new.decode())
    except UnicodeDecodeError:
        return None
