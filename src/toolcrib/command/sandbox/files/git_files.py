"""The small files by which a repository says what git obeys, read as git reads them.

They are files of settings, and files that name another folder: a `.git` that is no folder, `commondir`, `gitdir`.
"""

from __future__ import annotations

import os
import stat

from toolcrib.folder_handles import BINARY, CLOEXEC, NOFOLLOW, NONBLOCK

MAX_BYTES = 1 << 20  # git reads no larger `.git` either
OPEN = os.O_RDONLY | NONBLOCK | CLOEXEC | BINARY
LEADS_TO = b"gitdir: "


def content(path: str, *, behind_links: bool = True) -> bytes | None:
    """The content of a file; b"" if there is none, and None if it is no regular file, too large, or cannot be read.

    Git follows links. Without `behind_links`, a link gives None.
    """
    try:
        fd = os.open(path, OPEN if behind_links else OPEN | NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        with open(fd, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    return data if len(data) <= MAX_BYTES else None


def place_named(folder: str, data: bytes) -> str:
    """The real path that the content of a file in a folder names; "" where it names none."""
    place = os.fsdecode(data.rstrip(b"\r\n").partition(b"\0")[0])
    return os.path.realpath(os.path.join(folder, place)) if place else ""


def repository_led_to(path: str, *, behind_links: bool = True) -> str:
    """The folder that a `.git` leads to which is no folder; "" where it leads to none."""
    data = content(path, behind_links=behind_links) or b""
    if not data.startswith(LEADS_TO):
        return ""
    return place_named(os.path.dirname(path), data.removeprefix(LEADS_TO))


def common_folder(repository: str) -> str:
    """The folder of a repository with what all of its worktrees share: its own, unless a `commondir` names another."""
    named = place_named(repository, content(f"{repository}/commondir") or b"")
    return named or os.path.realpath(repository)
