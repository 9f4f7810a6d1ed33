"""The prefixes that "always" may remember of a command: the beginning of its arguments, never more than was meant.

How many words say what a command is stands in a table; an option ends them, so that `git commit --amend` is not
remembered as `git commit`. A command has no prefix, and only its exact arguments are remembered, if it runs other code
(of a file, a package, a container), installs it, reaches another machine, redirects, or sets a variable.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from toolcrib.command.judge.judged_commands import JudgedCommand
from toolcrib.command.judge.judgement import Judgement
from toolcrib.command.programs.traits import count_of_words, traits_of

Prefix = tuple[str, ...]

# Sub-commands and options that mean, for any program, that it runs code, installs it, or reaches another machine.
RUNS = {
    "exec", "run", "x", "dlx", "--", "-c", "-e", "--eval", "--exec", "shell", "config", "alias", "submodule", "bisect",
    "filter-branch", "difftool", "mergetool", "tool", "install", "i", "ci", "start", "serve", "script", "ssh", "api",
    "extension", "plugin", "clone", "fetch", "pull", "push", "deploy", "publish",
}  # fmt: skip


def prefix_of(argv: Sequence[str]) -> Prefix | None:
    """The prefix that may stand for a command from now on, or None if only the exact command may be remembered."""
    name = argv[0]
    if "/" in name or not re.fullmatch(r"\w[\w+-]*(?:\.\d+)*", name):
        return None
    count = count_of_words(argv)
    words = tuple(argv[:count])
    remembered = traits_of(name).remembered
    if remembered is not None and (len(words) < 2 or words[1] not in remembered):
        return None
    if len(words) < count and count > 1 and len(argv) < 2:
        return None  # a program's name alone would stand for all of its sub-commands
    if not all(re.fullmatch(r"[\w@.:/+-]+", word) for word in words[1:]):
        return None
    if any(word.startswith("-") for word in words[1:]) or set(argv[1:2]) & RUNS or set(words[1:]) & RUNS:
        return None
    return words


def prefixes(judgement: Judgement) -> tuple[Prefix, ...] | None:
    """One prefix for each command that asks, or None if "always" must not be offered."""
    if judgement.verdict != "ask" or not judgement.grantable:
        return None
    found: list[Prefix] = []
    for part in judgement.parts:
        if not part.reason:
            continue
        prefix = _of_part(part)
        if prefix is None:
            return None
        found.append(prefix)
    return tuple(dict.fromkeys(found)) or None


def covered(judgement: Judgement, remembered: Collection[Sequence[str]]) -> bool:
    """Whether each command of a line is plain or begins with a remembered prefix, word for word.

    What leaves the workspace, names secrets, redirects into files or sets variables is never covered.
    """
    if judgement.verdict == "deny" or judgement.plan is None:
        return False
    if judgement.verdict == "plain":
        return True
    known = {tuple(prefix) for prefix in remembered if prefix}
    if not judgement.grantable:
        return False
    return all(
        not part.reason or (_of_part(part) in known and _of_part(part) is not None)
        for part in judgement.parts
    )


def _of_part(part: JudgedCommand) -> Prefix | None:
    if not part.argv or not part.grantable:
        return None
    return prefix_of(part.argv)
