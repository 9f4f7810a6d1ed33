"""Removes from what git left of a stopped operation what would run a program when somebody goes on with it.

These are the steps of a rebase, and the names of merge strategies: git takes a name that it does not know for a
program (`git-merge-NAME`), also by a path. Options for `git apply`, of which one writes to any file, are taken out too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toolcrib.command.sandbox.files.git_config import lines

# Steps of a rebase that run no program of their own; all others, `exec` and those of future versions, are taken out.
STEPS = frozenset(
    b"pick p reword r edit e squash s fixup f break b drop d label l reset t merge m update-ref u noop revert".split()
)
STRATEGIES = frozenset(b"ort recursive resolve octopus ours subtree".split())
USUAL_STRATEGY = b"recursive\n"  # known to every version
# Options that may stay in a stopped series of picks, beside its strategy.
OPTIONS = frozenset(
    b"no-commit edit allow-empty allow-empty-message drop-redundant-commits keep-redundant-commits signoff "
    b"record-origin allow-ff mainline gpg-sign strategy-option allow-rerere-auto default-msg-cleanup "
    b"commit-use-reference".split()
)
# What `git am` and `git rebase --apply` hand on to `git apply`.
IN_QUOTES = rb"[^']*(?:'\\['!]'[^']*)*"  # git ends the quotes for a `'` and a `!`
OF_APPLY = re.compile(
    rb"(?:\s*'(?:--(?:whitespace|directory|exclude|include)=" + IN_QUOTES + rb"|"
    rb"--ignore-space-change|--ignore-whitespace|--reject|-[Cp][0-9]+)')*\s*"
)


def _steps(data: bytes, known: set[bytes]) -> bytes:
    kept = (
        line
        for line in data.split(b"\n")
        if not (words := line.split())
        or words[0].startswith(b"#")
        or words[0] in STEPS
        or line.strip() in known
    )
    return b"\n".join(kept)


def _strategy(data: bytes, known: set[bytes]) -> bytes:
    return data if not data or data.strip() in STRATEGIES or data.strip() in known else USUAL_STRATEGY


def _options(data: bytes, known: set[bytes]) -> bytes:
    kept = (
        raw
        for raw, (line, name, key, _, value) in zip(data.split(b"\n"), lines(data), strict=True)
        if not name
        or raw.strip() in known
        or (line[0] == b"options." and (key in OPTIONS or (key == b"strategy" and value in STRATEGIES)))
    )
    return b"\n".join(kept)


def _options_of_apply(data: bytes, known: set[bytes]) -> bytes:
    return data if OF_APPLY.fullmatch(data) or data.strip() in known else b""


UNFINISHED: dict[str, Callable[[bytes, set[bytes]], bytes]] = {
    "rebase-merge/git-rebase-todo": _steps,
    "rebase-merge/strategy": _strategy,
    "sequencer/opts": _options,
    "rebase-apply/apply-opt": _options_of_apply,
}
"""{file of a repository: what of its content may stay, beside the lines that were known before}."""
