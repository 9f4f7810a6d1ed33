"""Settings of the home folder that commands are shown, without the credentials that stand in them.

git, cargo, conda and npm need their settings, and people write tokens into them. A line with a credential is taken out
of what a command sees. Where a back end cannot show a changed file, or a credential goes on over several lines, the
whole file is hidden.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import time
from collections.abc import Container
from functools import lru_cache

from toolcrib.credentials import is_credential
from toolcrib.folder_handles import CLOEXEC, NONBLOCK

# Relative to a home folder; each is shown, or lies in a folder that is.
GLOBAL_OF_GIT = (".config/git/config", ".gitconfig")  # git reads them in this order
SYSTEM_OF_GIT = "/etc/gitconfig"
SETTINGS = (
    *GLOBAL_OF_GIT, ".cargo/config.toml", ".cargo/config", ".conda/.condarc", ".conda/condarc",
    "miniconda3/.condarc", "anaconda3/.condarc",
)  # fmt: skip
PATTERNS = (".nvm/versions/node/*/etc/npmrc", ".local/share/virtualenvs/*/pip.conf")
# Of the system, and readable by everybody.
SETTINGS_OF_SYSTEM = (
    SYSTEM_OF_GIT, "/etc/pip.conf", "/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc", "/etc/conda/.condarc",
    "/etc/uv/uv.toml", "/etc/environment",
)  # fmt: skip
SECONDS = 60
MAX_BYTES = 1 << 20
PAIR = re.compile(r"([A-Za-z][\w.-]*)[\"']?[ \t]*[=:][ \t]*(?=[^\s=])")
# `//user:password@host`, `user:password@host`, a token alone before a host, and a token in a path (conda's).
IN_URL = re.compile(r"[^\s\"'/@:]+:[^\s\"'/@]+@[\w.\[-]|//[^\s\"'/@:]{16,}@|/t/[\w-]{8,}(?:/|$)")
BARE_WORD = re.compile(r"[A-Za-z][\w.-]*")
HARMLESS = frozenset({"signingkey", "credential-provider", "global-credential-providers"})
ALWAYS = frozenset({"extraheader"})
GOES_ON = ("\\", "|", ">", "|-", ">-", "[", "{", "(", '"""', "'''", "=", ":")


def settings_of(home: str, names: Container[str]) -> list[str]:
    """Where settings with credentials may be, given the names in a home folder.

    Patterns are looked up once in `SECONDS`.
    """
    own = [f"{home}/{name}" for name in SETTINGS if name.partition("/")[0] in names]
    return [*own, *SETTINGS_OF_SYSTEM, *_found(home, int(time.monotonic()) // SECONDS)]


@lru_cache(maxsize=8)
def _found(home: str, now: int) -> list[str]:
    return [
        path
        for pattern in PATTERNS
        if os.path.isdir(os.path.join(home, pattern.partition("*")[0]))
        for path in glob.glob(os.path.join(glob.escape(home), pattern))
    ]


def settings_of_git(home: str) -> list[str]:
    """Git's settings, of the system and of a home folder, in the order in which git reads them."""
    return [SYSTEM_OF_GIT, *(f"{home}/{name}" for name in GLOBAL_OF_GIT)]


def readable_settings(path: str) -> bytes:
    """A file of settings without its credentials; b"" if it does not exist, or nothing of it may be shown."""
    data = without_credentials_in(path)
    if data is not None:
        return data
    try:
        fd = os.open(path, os.O_RDONLY | NONBLOCK | CLOEXEC)
    except OSError:
        return b""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return b""
    with open(fd, "rb") as file:
        return file.read(MAX_BYTES)


def without_credentials_in(path: str) -> bytes | None:
    """A file of settings without its credentials; None if it holds none, b"" if nothing of it may be shown."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return _read(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@lru_cache(maxsize=128)
def _read(path: str, stamp: tuple[int, ...]) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | NONBLOCK | CLOEXEC)
        with open(fd, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return b""  # a command may give its user's own file the rights again that an earlier one took from it
    if len(data) > MAX_BYTES:
        return b""
    return cleaned(data)


def cleaned(data: bytes) -> bytes | None:
    """Settings without lines that hold a credential; None if no line does, b"" if a credential goes on over lines.

    >>> cleaned(b"[user]\\n\\tname = Ann\\n[http]\\n\\textraHeader = Authorization: Bearer abc\\n")
    b'[user]\\n\\tname = Ann\\n[http]\\n'
    """
    text = data.decode("utf-8", "surrogateescape")
    kept: list[str] = []
    found = 0
    for line in text.split("\n"):
        plain = line.strip()
        if not _holds_credential(plain):
            kept.append(line)
            continue
        found += 1
        if plain.endswith(GOES_ON) or plain.count('"""') == 1 or plain.count("'''") == 1:
            return b""
        if plain.startswith("["):  # what follows belongs to this section, and not to the one before it
            kept.append(f"[hidden-{found}]")
    return "\n".join(kept).encode("utf-8", "surrogateescape") if found else None


def _holds_credential(line: str) -> bool:
    if IN_URL.search(line):
        return True
    names = [match[1] for match in PAIR.finditer(line)]
    if not names and line.endswith(GOES_ON):  # its value stands on the next line
        names = BARE_WORD.findall(line)[:1]
    return any(_names_credential(name) for name in names)


def _names_credential(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return last in ALWAYS or (last not in HARMLESS and is_credential(name))
