"""Commands that remove a repository's history, as far as their words show it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.question import Doubt

if TYPE_CHECKING:
    from toolcrib.command.judge import Judgement

REMOVERS = {"rm", "rmdir", "mv", "unlink", "shred"}
LOOSELY = re.compile(
    r"""(?:^|[\s/'"=])\.(?:git|g?\*|\[[!^]\.\]\*)(?:/(?:objects|refs|\*))?/?(?=$|[\s'";&|)])"""
)
HISTORY = ("objects", "refs", "HEAD", "packed-refs", "logs", "*")
ENDS_HISTORY = "it removes or overwrites the repository itself, and with it all that was not pushed"


def ends_history(judgement: Judgement, command: str) -> Doubt | None:
    """The doubt about a command whose words say that it removes a repository's `.git`: no autonomy is meant so."""
    removes = not judgement.parts and REMOVERS & {*judgement.programs} and LOOSELY.search(command)
    named = (
        _is_history(operand.path, operand.access, part.argv[0].rpartition("/")[2] if part.argv else "")
        for part in judgement.parts
        for operand in part.operands
    )
    return Doubt(ENDS_HISTORY, must_ask=True) if removes or any(named) else None


def _is_history(path: str, access: str, program: str) -> bool:
    *above, name = path.rstrip("/").split("/")
    if above and above[-1] == ".git" and name in HISTORY:
        return access in ("delete", "write")
    return access == "delete" and (name == ".git" or (path == "." and program == "rm"))
