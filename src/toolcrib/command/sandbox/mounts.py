"""The arguments by which bwrap lays out the file system of a command."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from toolcrib.command.sandbox.files.file_view import FileView
from toolcrib.command.sandbox.files.paths import between, innermost_around, within, within_any
from toolcrib.command.sandbox.level import Files, Level, Limits, Network, SandboxError

# The scratch folder of the sandbox is mounted on these.
TEMPORARY = ("/tmp", "/var/tmp")
RESOLVED = "/run/systemd/resolve"  # where /etc/resolv.conf often leads
EMPTY = str(Path(__file__).resolve().parents[2] / "py.typed")  # bwrap would follow links
NOT_INSTALLED = "bwrap is not installed"
SMALL = 1 << 20  # bytes of a hidden folder, which only holds the way to what is shown below it

BINDS = ("--bind", "--bind-try", "--ro-bind", "--ro-bind-try")

Mounts = dict[str, list[str]]
"""The arguments for each mount point."""


def bwrap() -> str:
    """The path of the bwrap program. Raises SandboxError if it is not installed."""
    found = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin")
    if found is None or not stat.S_ISREG(os.stat(found).st_mode):
        raise SandboxError(NOT_INSTALLED)
    return found


def bwrap_knows(option: str) -> bool:
    """Whether the installed bwrap has an option."""
    return f" {option} " in _help_of_bwrap()


@cache
def _help_of_bwrap() -> str:
    done = subprocess.run([bwrap(), "--help"], capture_output=True, text=True, timeout=10, check=False)
    return done.stdout + done.stderr


def mount_arguments(mounts: Mounts, read_only: Sequence[str]) -> list[str]:
    """The arguments for the whole file system. `read_only` are mount points that are made read-only in the end."""
    words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if os.geteuid() == 0:  # a new /proc belongs to root inside too, who could write the kernel's settings
        words += ["--remount-ro", "/proc"]
    outer_first = sorted(mounts, key=lambda path: path.split("/"))
    words += [word for path in outer_first for word in mounts[path]]
    return words + [word for path in read_only for word in ("--remount-ro", path)]


def sources_of(mounts: Mounts) -> dict[str, str]:
    """{mount point: the path that is mounted there, or "" for what is made for it}."""
    found: dict[str, str] = {}
    for path, words in mounts.items():
        binds = [number for number, word in enumerate(words) if word in BINDS]
        found[path] = words[binds[0] + 1] if binds else ""
    return found


def mounts_of(
    view: FileView,
    level: Level,
    limits: Limits,
    scratch: str,
    redacted: Mapping[str, int],
    caches: Mounts,
    placeholders: Collection[str],
) -> tuple[Mounts, list[str]]:
    """The mounts of what is hidden, shown again, writable and protected; and the points to make read-only at last.

    `redacted` are descriptors with what is shown in the place of hidden files, `caches` the mounts for caches,
    `placeholders` folders that are known to be empty.
    """
    mounts = caches | _hidden_and_shown(view, limits)
    mounts |= {path: ["--ro-bind-data", str(fd), path] for path, fd in redacted.items()}
    if level.network is Network.ON and os.path.isdir(RESOLVED):
        mounts[RESOLVED] = ["--ro-bind-try", RESOLVED, RESOLVED]
    mounts |= _temporary(view, level, limits, scratch)
    mounts |= _writable(view, level)
    _fix(mounts, view, level, placeholders)
    _clear_mount_points(mounts)
    # Made read-only when everything is mounted in it: files beside the workspace must not seem to be written.
    around = [path for place in TEMPORARY for path in _around_workspace(os.path.realpath(place), view, level)]
    return mounts, around


def _hidden_and_shown(view: FileView, limits: Limits) -> Mounts:
    mounts: Mounts = {}
    for path in view.hidden:
        if _hidden_anyway(path, view):
            continue
        if os.path.isdir(path):
            size = limits.scratch if path == view.home else SMALL
            mounts[path] = [*_size(size), "--tmpfs", path]
        elif os.access(path, os.R_OK):
            mounts[path] = ["--ro-bind", "/dev/null", path]
    return mounts | {path: ["--ro-bind-try", path, path] for path in view.shown}


def _temporary(view: FileView, level: Level, limits: Limits, scratch: str) -> Mounts:
    """The scratch folder in the place of the folders for temporary files, with mount points for opened paths."""
    mounts: Mounts = {}
    for place in TEMPORARY:
        if os.path.isdir(place):
            path = os.path.realpath(place)
            mounts[path] = ["--bind", scratch, path]
            mounts |= {top: ["--tmpfs", top] for top in _tops_of_opened(path, level)}
            mounts |= {outer: ["--tmpfs", outer] for outer in _around_workspace(path, view, level)}
    return mounts | {"/dev/shm": [*_size(limits.scratch or None), "--tmpfs", "/dev/shm"]}


def _writable(view: FileView, level: Level) -> Mounts:
    bind = "--bind" if level.files is Files.WORKSPACE_WRITE else "--ro-bind"
    mounts = {view.workspace: [bind, view.workspace, view.workspace]}
    for path in level.writable:
        if path in view.shown or within(path, view.workspace):
            mounts[path] = ["--bind-try", path, path]
    return mounts


def _fix(mounts: Mounts, view: FileView, level: Level, placeholders: Collection[str]) -> None:
    """Adds the mounts that protect, hide and keep read-only what a command could otherwise write to."""
    fixed = [*view.denied, *view.read_only]
    if level.files is Files.WORKSPACE_WRITE:
        fixed += [*view.protected, *(path for path in view.hidden if within(path, view.workspace))]
        mounts |= {path: _unwritable(path, placeholders) for path in view.protected}
    for path in fixed:
        # A folder that is no mount point could be renamed, with what is protected or hidden in it.
        for outer in _above(path, view, level):
            mounts.setdefault(outer, ["--bind-try", outer, outer])
    outside = [path for path in view.read_only if not within(path, view.workspace)]
    mounts |= {path: _unwritable(path, placeholders) for path in outside if os.path.lexists(path)}
    for path in [path for path, words in mounts.items() if _reopens_denied(path, words, view)]:
        del mounts[path]
    mounts |= {path: _emptied(path, level) for path in view.denied if os.path.exists(path)}


def _clear_mount_points(mounts: Mounts) -> None:
    """Removes links where mount points are made in folders of ours that earlier commands wrote to.

    bwrap would follow them, outside the sandbox, and create folders and files where they lead.
    """
    ours = {path: words[1] for path, words in mounts.items() if words[0] == "--bind" and words[1] != path}
    for path in mounts:
        if (around := innermost_around(path, mounts)) in ours:
            place = ours[around] + path[len(around) :]
            for part in (*between(ours[around], place), place):
                if os.path.islink(part):
                    os.unlink(part)


def _size(size: int | None) -> list[str]:
    return ["--size", str(size)] if size is not None and bwrap_knows("--size") else []


def _unwritable(path: str, placeholders: Collection[str]) -> list[str]:
    """A read-only mount. An empty folder is replaced by an empty one in memory, which is mounted faster."""
    if (path in placeholders or _is_empty(path)) and bwrap_knows("--perms") and bwrap_knows("--size"):
        return ["--perms", "0555", "--size", "4096", "--tmpfs", path]
    return ["--ro-bind-try", path, path]


def _is_empty(path: str) -> bool:
    """Whether a path is a folder without content; never one that cannot be listed."""
    try:
        return os.path.isdir(path) and not os.listdir(path)
    except PermissionError:
        return False


def _emptied(path: str, level: Level) -> list[str]:
    """A mount that hides a denied path: behind an empty folder, a file that cannot be opened, or an empty file."""
    if os.path.isdir(path):
        return ["--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind", EMPTY if path in level.blank else "/dev/null", path]


def _reopens_denied(path: str, words: list[str], view: FileView) -> bool:
    """Whether a mount lies in what deny rules take away, and would open it again."""
    read_only = view.read_only if words[0] in ("--bind", "--bind-try") else ()
    return any(path != place and within(path, place) for place in (*view.denied, *read_only))


def _above(path: str, view: FileView, level: Level) -> list[str]:
    """The folders above a path that a command may write to."""
    around = innermost_around(path, view.writable(level))
    return between(around, path) if around else []


def _hidden_anyway(path: str, view: FileView) -> bool:
    """Whether a hidden path lies in something that is hidden."""
    return innermost_around(path, (*view.hidden, *view.shown, view.workspace)) in view.hidden


def _tops_of_opened(temporary: str, level: Level) -> list[str]:
    """The first folders below a folder for temporary files that lead to opened paths.

    They are mounted in memory, or the mount points would stay behind in the scratch folder.
    """
    opened = [path for path in (*level.readable, *level.writable) if within(path, temporary)]
    tops = {"/".join(path.split("/")[: temporary.count("/") + 2]) for path in opened}
    return [top for top in tops if top not in opened]


def _around_workspace(temporary: str, view: FileView, level: Level) -> list[str]:
    """The folder around a workspace that lies below a folder for temporary files, unless it is shared with others."""
    if not within(view.workspace, temporary):
        return []
    above = between(temporary, view.workspace)[:2]
    opened = (*view.shown, *level.readable, *level.writable)
    return [path for path in above[-1:] if not within_any(path, opened)]


def mount_points_in(scratch: str, level: Level) -> list[str]:
    """Files of the scratch folder on which opened files right below a folder for temporary files are mounted."""
    return [
        f"{scratch}/{os.path.basename(path)}"
        for path in (*level.readable, *level.writable)
        if os.path.dirname(path) in TEMPORARY and os.path.isfile(path)
    ]
