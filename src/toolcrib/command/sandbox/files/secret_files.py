"""Finds files with secrets that no fixed table can name: `.env` files of other projects outside home folders.

The search is bounded, and made again once in `SECONDS`: what it does not reach can be read, and the report says so.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from functools import lru_cache

from toolcrib.command.backup_names import ADDED_BEFORE, ADDED_BEHIND
from toolcrib.command.sandbox.process.mount_table import mounts_of_process

# Where projects and their deployments lie, other than in home folders.
FOLDERS = ("/opt", "/srv", "/var/www", "/mnt", "/media", "/data", "/app")
NAMES = (
    ".env", ".netrc", ".pgpass", ".my.cnf", ".git-credentials", ".pypirc", ".htpasswd", ".vault-token", ".ssh",
    ".aws", ".gnupg", ".kube", ".docker", "id_rsa", "id_ed25519", "id_ecdsa",
)  # fmt: skip
_COPIES = rf"(?i:{ADDED_BEHIND})"
HOLDS_SECRETS = re.compile(
    rf"(?i:{ADDED_BEFORE})(?:{'|'.join(map(re.escape, NAMES))}){_COPIES}"
    rf"|\.env\.(?!.*(?:example|sample|template|dist|defaults?|test){_COPIES}\Z).*",
    re.DOTALL,
)
NOT_ENTERED = frozenset(
    {".git", "node_modules", ".venv", "venv", "__pycache__", "site-packages", "target", "lost+found"}
)
# File systems on which a search may wait for a network, or for a person.
REMOTE = (
    b"nfs", b"cifs", b"smb", b"9p", b"fuse", b"autofs", b"afs", b"ceph", b"glusterfs", b"drvfs", b"virtiofs",
)  # fmt: skip
MAX_DEPTH = 3
MAX_FOLDERS = 1_000
MAX_SECONDS = 0.05
MAX_FOUND = 100
MAX_BESIDE = 2_000  # names in the folders on the way, each of which a Landlock rule may have to name
SECONDS = 60

SEARCHED = (
    f"`.env` files and keys of other projects are hidden only below {', '.join(FOLDERS)}, where a bounded search found "
    "them; any other readable file may hold a secret"
)


def secret_files_elsewhere() -> tuple[str, ...]:
    """The files and folders with secrets below `FOLDERS`, absolute and without links."""
    return _search(FOLDERS, int(time.monotonic()) // SECONDS)


@lru_cache(maxsize=4)
def _search(folders: tuple[str, ...], now: int) -> tuple[str, ...]:
    remote = _remote_mounts()
    todo = deque((os.path.realpath(folder), 0) for folder in folders if os.path.isdir(folder))
    found: list[str] = []
    looked = beside = 0
    end = time.monotonic() + MAX_SECONDS
    while todo and looked < MAX_FOLDERS and time.monotonic() < end:
        folder, depth = todo.popleft()
        if folder in remote:
            continue
        looked += 1
        try:
            with os.scandir(folder) as entries:
                known = [
                    (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries
                ]
        except PermissionError:
            # A command may give its user's own folder the rights again that an earlier one took from it.
            if _is_own(folder):
                found.append(folder)
            continue
        except OSError:
            continue
        secret = [f"{folder}/{name}" for name, _, is_link in known if not is_link and holds_secrets(name)]
        beside += len(known) if secret else 0
        if beside <= MAX_BESIDE:
            found += secret
        if depth < MAX_DEPTH:
            inner = (name for name, is_folder, _ in known if is_folder and name not in NOT_ENTERED)
            todo += [(f"{folder}/{name}", depth + 1) for name in inner if not holds_secrets(name)]
    return tuple(found[:MAX_FOUND])


def holds_secrets(name: str) -> bool:
    """Whether a file or folder of this name holds secrets.

    >>> [holds_secrets(name) for name in (".env", ".env.production", ".env.example", "id_rsa~", "README")]
    [True, True, False, True, False]
    """
    return HOLDS_SECRETS.fullmatch(name) is not None


def _is_own(folder: str) -> bool:
    try:
        return os.lstat(folder).st_uid == os.geteuid()
    except OSError:
        return False


def _remote_mounts() -> set[str]:
    try:
        mounts = mounts_of_process()
    except (OSError, ValueError):
        return set()
    return {os.fsdecode(mount.point) for mount in mounts if mount.kind.startswith(REMOTE)}
