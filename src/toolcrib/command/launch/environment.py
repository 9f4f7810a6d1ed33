"""The environment of a command of the shell tool."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from toolcrib.command.sandbox import environment
from toolcrib.credentials import names_credential

PATTERN = re.compile(r"[*?\[]")

SAFE_ENV_VARS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ",
)  # fmt: skip
"""The variables that a command gets where no sandbox confines it."""
# No colours, no pagers, no questions, because no person sits at the terminal.
SET_ENV_VARS = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "LESSSECURE": "1",  # less runs nothing and writes nothing
    "MLRRC": "__none__",  # Miller obeys no file of options in the folder
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",  # npm would ask its registry for a newer npm
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",  # and so would pip, also to list what is installed
}


def command_environment(*, confined: bool, passed: Iterable[str], added: Mapping[str, str]) -> dict[str, str]:
    """The variables of our environment that a command gets, `passed` ones among them, and then those `added`.

    `passed` may hold patterns, such as `NODE_*`. A name that says that its value is a credential matches no pattern.
    """
    passed = tuple(_named(passed))
    set_here = {"PATH": search_path(), **SET_ENV_VARS, **added}
    if confined:
        return environment(os.environ, passed=passed, added=set_here)
    kept = {name: os.environ[name] for name in (*SAFE_ENV_VARS, *passed) if name in os.environ}
    return {**kept, **set_here}


def _named(passed: Iterable[str]) -> Iterator[str]:
    """The names of variables; for a pattern, those of our environment that match it."""
    for name in passed:
        if not PATTERN.search(name):
            yield name
            continue
        yield from (ours for ours in os.environ if fnmatchcase(ours, name) and not names_credential(ours))


def search_path(without: str = "") -> str:
    """PATH without relative folders, and without those that lie in the folder `without`."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = [folder for folder in folders if Path(folder).is_absolute()]
    found = [folder for folder in found if not without or not Path(folder).resolve().is_relative_to(without)]
    return os.pathsep.join(found) or os.defpath
