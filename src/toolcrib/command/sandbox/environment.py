"""The environment of a command: a list of what may pass, and a git that obeys no repository's commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from toolcrib.errors import listed

PASSED = (
    "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "NO_COLOR", "CI",
)  # fmt: skip
LOCALE = re.compile(  # and not LC_API_KEY, though servers let it pass for its beginning
    "LC_(ALL|ADDRESS|COLLATE|CTYPE|IDENTIFICATION|MEASUREMENT|MESSAGES|MONETARY|NAME|NUMERIC|PAPER|TELEPHONE|TIME)"
)

# What `git status` in a hostile repository would run otherwise; later entries win over the repository's own.
GIT = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "protocol.ext.allow": "never",
}
QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat"}


def environment(
    ours: Mapping[str, str], *, passed: Iterable[str] = (), added: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Of our environment what is on the list, or named in `passed`; then git's overrides; then what is `added`.

    >>> made = environment({"PATH": "/bin", "LC_ALL": "C", "API_TOKEN": "x", "LD_PRELOAD": "y"})
    >>> [name for name in made if not name.startswith("GIT_")]
    ['PATH', 'LC_ALL']
    >>> made["GIT_CONFIG_KEY_0"], made["GIT_CONFIG_VALUE_0"]
    ('core.fsmonitor', 'false')
    """
    names = {*PASSED, *listed("passed", passed)}
    kept = {name: ours[name] for name in ours if name in names or LOCALE.fullmatch(name)}
    return {**kept, **git_overrides(), **(added or {})}


def outer_and_inner(env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What may stand in the environment of a sandbox's own programs, and what only the command is to get.

    `LD_PRELOAD` and its like would be obeyed by what is started first, which nothing confines yet.
    """
    outer = {
        name: env[name] for name in env if name in PASSED or LOCALE.fullmatch(name) or name.startswith("GIT_")
    }
    return outer, {name: env[name] for name in env if name not in outer}


def git_overrides() -> dict[str, str]:
    """Variables under which git runs no hook, no monitor and no remote helper, and asks nothing."""
    made = {"GIT_CONFIG_COUNT": str(len(GIT)), **QUIET}
    for number, (key, value) in enumerate(GIT.items()):
        made[f"GIT_CONFIG_KEY_{number}"] = key
        made[f"GIT_CONFIG_VALUE_{number}"] = value
    return made
