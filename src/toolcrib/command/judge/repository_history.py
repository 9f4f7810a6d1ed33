"""Recognises commands that change or remove a repository's history, as far as their words show it."""

from __future__ import annotations

import re

from toolcrib.command.judge.judgement import Judgement

REMOVERS = {"rm", "rmdir", "mv", "unlink", "shred"}
# A `.git`, or what a pattern could expand to it, among the words of a command that was not understood.
GIT_FOLDER = re.compile(
    r"""(?:^|[\s/'"=])\.(?:git|g?\*|\[[!^]\.\]\*)(?:/(?:objects|refs|\*))?/?(?=$|[\s'";&|)])"""
)
HISTORY = ("objects", "refs", "HEAD", "packed-refs", "logs", "*")
VERSION_CONTROL = {
    "git": ".git",
    "hg": ".hg",
    "svn": ".svn",
    "jj": ".jj",
}  # programs, and where each keeps history
REMOVES_HISTORY = "it removes or overwrites the repository itself, and with it all that was not pushed"


def changes_history(judgement: Judgement) -> bool:
    """Whether a command of a version control is more than a look at its repository, as far as the words show it."""
    if not judgement.parts:
        return not VERSION_CONTROL.keys().isdisjoint(judgement.programs)
    return any(part.program in VERSION_CONTROL and part.effect != "read" for part in judgement.parts)


def removes_history(judgement: Judgement, command: str) -> bool:
    """Whether the words of a command say that it removes a repository's `.git`. No level of autonomy allows that."""
    if not judgement.parts:
        return bool(REMOVERS & {*judgement.programs} and GIT_FOLDER.search(command))
    return any(
        _is_history(operand.path, operand.access, part.argv[0].rpartition("/")[2] if part.argv else "")
        for part in judgement.parts
        for operand in part.operands
    )


def _is_history(path: str, access: str, program: str) -> bool:
    *above, name = path.rstrip("/").split("/")
    if above and above[-1] == ".git" and name in HISTORY:
        return access in ("delete", "write")
    return access == "delete" and (name == ".git" or (path == "." and program == "rm"))
