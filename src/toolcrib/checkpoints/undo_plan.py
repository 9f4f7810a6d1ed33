"""Which paths an undo changes, and which it keeps: decided from the trees, before anything is touched.

A path goes back to what it was at the checkpoint, or, if a person changed it since, to what the person left last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from toolcrib.checkpoints.entry import FOLDER, ROOT, FileTree, PathEntry, changed_paths
from toolcrib.checkpoints.history import Whose
from toolcrib.command.sandbox.files.placeholders import TIME_OF_A_PLACEHOLDER
from toolcrib.dataclass import dataclass, field

__all__ = ["KEPT", "UndoPlan", "UndoStep", "make_plan"]

KEPT = "it was changed by someone else than the run since then"
CAME = "it was there before, at a place that is not covered"
CLOCK_MARGIN = 1_000_000_000  # nanoseconds by which the clock of a file system may be behind ours


@dataclass(frozen=True, slots=True)
class UndoStep:
    """The change of one path from `have` to `want`; None stands for nothing at the path."""

    path: str
    have: PathEntry | None
    want: PathEntry | None


@dataclass(slots=True)
class UndoPlan:
    """The steps of an undo, and for each path that stays as it is, why."""

    steps: list[UndoStep] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


def make_plan(
    trees: Sequence[FileTree], then: Sequence[Whose], since: float, born: Callable[[str], int]
) -> UndoPlan:
    """Plans the undo from the last of the trees to the first; `then[i]` says who made the changes after tree i.

    `since` is the time at which the first of the trees was stored, and `born` tells when what stands at a path was
    made, in nanoseconds; 0 where nobody knows.
    """
    target, present = trees[0], trees[-1]
    left_by_person: dict[str, int] = {}  # the last tree in which a person's change of the path shows
    made_by_person: set[str] = set()  # paths that are not covered; a folder stands for all in it
    for index, whose in enumerate(then[: len(trees) - 1], 1):
        if whose == "person":
            old, new = trees[index - 1].entries, trees[index].entries
            changed = (path for path in changed_paths(old, new) if not _same(old.get(path), new.get(path)))
            left_by_person.update(
                (path, index) for path in changed if not _only_seen_again(path, trees, index)
            )
            left_out = trees[index].not_covered.keys() - trees[index - 1].not_covered.keys()
            made_by_person.update(path for path in left_out if path and path not in new)
    wanted: dict[str, PathEntry | None] = {}
    for path in {*changed_paths(present.entries, target.entries), *left_by_person}:
        wanted[path] = trees[left_by_person.get(path, 0)].entries.get(path)
    # A checkpoint of an earlier version does not hold the workspace itself.
    if ROOT in wanted and wanted[ROOT] is None:
        del wanted[ROOT]
    came = _came_from_elsewhere(target, present, int(since * 10**9) - CLOCK_MARGIN, born)
    for path in wanted if came else ():
        if path not in target.entries and _lies_in(path, came):
            wanted[path] = present.entries.get(path)
    stays = {**dict.fromkeys(left_by_person, KEPT), **dict.fromkeys(came, CAME)}
    plan = UndoPlan(kept=dict.fromkeys(came, CAME))
    for path in sorted(wanted, key=lambda path: path.count("/")):  # folders before what lies in them
        if made_by_person and _lies_in(path, made_by_person):
            plan.kept[path] = KEPT
            wanted[path] = present.entries.get(path)
        else:
            _decide(plan, path, wanted, stays, target, present)
    for path, why in target.not_covered.items():
        if path not in present.entries and not present.why_not_covered(path):
            plan.kept[path] = f"it is gone and was not saved: {why}"
    touched = {step.path for step in plan.steps}
    for folder in sorted({path.rpartition("/")[0] or ROOT for path in touched} - touched):
        entry = present.entries.get(folder)
        if entry is not None and entry.mode & 0o300 != 0o300:  # made writable on the way
            plan.steps.append(UndoStep(folder, entry, entry))  # it gets its mode back
    plan.steps.sort(key=lambda step: step.path)
    return plan


def _decide(
    plan: UndoPlan,
    path: str,
    wanted: dict[str, PathEntry | None],
    stays: Mapping[str, str],
    target: FileTree,
    present: FileTree,
) -> None:
    have, want = present.entries.get(path), wanted[path]
    if stays.get(path) == KEPT and not _same(target.entries.get(path), want):
        plan.kept[path] = KEPT
    if _same(have, want):
        return
    reason = ""
    if want is None and (why := target.why_not_covered(path)):
        reason = f"{why}, so that it may have been there"
    elif want is None and have is not None and not have.saved:
        reason = f"it could not be saved, so it stays: {have.reason}"
    elif want is not None and not want.saved:
        reason = f"it was not saved: {want.reason}"
    elif want is not None and (above := _above_that_is_no_folder(path, wanted, present)):
        reason = f"{above} is no folder any more"
    if reason:
        plan.kept[path] = reason
        wanted[path] = have
        return
    if (want is None or want.kind != FOLDER) and (
        have is not None and have.kind == FOLDER and (inside := _kept_inside(path, wanted, stays))
    ):
        plan.kept[path] = f"{inside} in it stays: {stays[inside]}"
        wanted[path] = have
        return
    plan.steps.append(UndoStep(path, have, want))


def _came_from_elsewhere(
    target: FileTree, present: FileTree, before_ns: int, born: Callable[[str], int]
) -> set[str]:
    """The new folders and files that hold something older than the checkpoint, which it covers under no other name.

    A run moved them there from a place that no checkpoint covers, such as `node_modules`, where no copy is put back.
    Where nobody knows when a file was made, the time of its last change counts, which a folder that is moved leaves to
    what lies in it. Folders alone tell nothing: the sandbox makes some, which are left out while they are empty.
    """
    old = [
        path
        for path, entry in present.entries.items()
        if path not in target.entries
        and entry.kind != FOLDER
        and not target.why_not_covered(path)
        and 0 < (born(path) or entry.changed_ns) < before_ns
    ]
    covered = {entry.inode for entry in target.entries.values() if entry.saved} if old else set()
    found: set[str] = set()
    for path in old:
        if present.entries[path].inode not in covered:
            while (above := path.rpartition("/")[0]) and above not in target.entries:
                path = above
            found.add(path)
    return found


def _only_seen_again(path: str, trees: Sequence[FileTree], index: int) -> bool:
    """Whether a path of an earlier tree was only left out of the tree before this one, and may have existed then."""
    before, entry = trees[index - 1], trees[index].entries.get(path)
    if entry is None or path in before.entries:
        return False
    may_have_been = before.why_not_covered(path) or entry.mtime_ns // 10**9 == TIME_OF_A_PLACEHOLDER
    return bool(may_have_been) and any(path in tree.entries for tree in trees[: index - 1])


def _lies_in(path: str, folders: Collection[str]) -> bool:
    """Whether a path is one of these, or lies below one."""
    while path:
        if path in folders:
            return True
        path = path.rpartition("/")[0]
    return False


def _same(one: PathEntry | None, other: PathEntry | None) -> bool:
    return one is other or (one is not None and other is not None and one.is_same(other))


def _above_that_is_no_folder(path: str, wanted: dict[str, PathEntry | None], present: FileTree) -> str:
    """The parent of a path if it will not be a folder; else ""."""
    above = path.rpartition("/")[0]
    if not above:
        return ""
    entry = wanted[above] if above in wanted else present.entries.get(above)
    return "" if entry is not None and entry.kind == FOLDER else above


def _kept_inside(folder: str, wanted: dict[str, PathEntry | None], stays: Collection[str]) -> str:
    """A path below a folder that stays, so that the folder has to stay, too; "" if there is none."""
    below = f"{folder}/"
    return next((path for path in stays if path.startswith(below) and wanted[path] is not None), "")
