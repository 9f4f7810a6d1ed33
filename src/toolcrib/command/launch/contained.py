"""Commands that run without a question because they are contained: a sandbox keeps them in the workspace, off the
network, and away from what no checkpoint brings back."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Iterable
from pathlib import Path

from toolcrib.access import PATHS, Access, Confinement, Reach
from toolcrib.command.judge import Judgement
from toolcrib.command.judge.paths import may_hold_secrets
from toolcrib.command.judge.repository_history import VERSION_CONTROL, changes_history
from toolcrib.command.sandbox import ConfiningSandbox, Denial, Sandbox, why_not_contained
from toolcrib.command.sandbox.files.git_repositories import GitRepositories
from toolcrib.command.sandbox.files.paths import within_any
from toolcrib.dataclass import replace
from toolcrib.errors import ToolError
from toolcrib.secrets.pattern_search import looks_like_a_token

MAX_KEPT = 500  # repositories of a workspace, each of which is a mount
MET = 4_000  # bytes at the end of an output in which a refused write to a history is looked for
READ_ONLY = os.strerror(errno.EROFS)
NOT_CONTAINED = (
    "The command was not run. Nobody was asked about it because a sandbox confined it, and none does now. "
    "Try again."
)
TOO_MANY = (
    f"The command was not run: the workspace holds more than {MAX_KEPT} repositories, or too many folders to look for "
    "them, and what they store cannot be kept from a command that nobody was asked about."
)
HISTORY_KEPT = (
    "A command that nobody was asked about cannot change a repository's history, because no checkpoint brings it back. "
    "Run the command of the version control by itself: the user is asked about it."
)


def contained_accesses(
    accesses: Iterable[Access], judgement: Judgement, confinement: Confinement, sandbox: Sandbox | None
) -> tuple[Access, ...]:
    """The accesses of a command that a sandbox confines, each marked as confined.

    They stay unmarked, and are decided on as without a sandbox, if the command names a file that may hold secrets (the
    sandbox shows it to the command), or changes the history of a repository. Paths in the sandbox's own folders for
    temporary files are marked as temporary.
    """
    found = tuple(accesses)
    if changes_history(judgement) or any(map(_names_secrets, found)):
        return found
    own = sandbox.own_temporary if isinstance(sandbox, ConfiningSandbox) else ()

    def confined(access: Access) -> Access:
        place = posixpath.normpath(access.target)
        if access.reach in PATHS and within_any(place, own) and ".." not in access.pattern.split("/"):
            return replace(access, confined=replace(confinement, folder=place, temporary=True))
        return replace(access, confined=confinement)

    return tuple(one if one.free else confined(one) for one in found)


def keep_history(sandbox: Sandbox, root: str) -> Sandbox:
    """The sandbox for a contained command: no history of a repository in the workspace can be changed in it.

    Looks at every folder of the workspace. Raises ToolError if there are more repositories than can be kept.
    """
    level = sandbox.level
    repositories = sandbox.repositories if isinstance(sandbox, ConfiningSandbox) else GitRepositories()
    found, whole = repositories.named(root, frozenset(VERSION_CONTROL.values()))
    kept = {*level.read_only, *level.hidden}
    there = [path for path in found if path not in kept and _has_history(Path(path))]
    if len(there) > MAX_KEPT or not whole:
        raise ToolError(TOO_MANY)
    return sandbox.at(replace(level, read_only=(*level.read_only, *there))) if there else sandbox


def _has_history(path: Path) -> bool:
    """Whether there is anything at a path. While another command runs, an empty placeholder may be there."""
    try:
        return any(path.iterdir()) if path.is_dir() else path.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True


def check_contained(sandbox: Sandbox) -> None:
    """Raises ToolError if the sandbox lets commands do more than change the workspace."""
    if why_not_contained(sandbox):
        raise ToolError(NOT_CONTAINED)


def history_denial(printed: str) -> Denial | None:
    """The denial, if a contained command says at the end of its output that it could not write to a history."""
    refused = [line for line in printed.split("\n") if READ_ONLY in line]
    names = [sign for name in VERSION_CONTROL.values() for sign in (f"{name}/", f"{name}'")]
    met = any(name in line for line in refused for name in names)
    return Denial("write", "", HISTORY_KEPT) if met else None


def _names_secrets(access: Access) -> bool:
    """Whether an access of a command may be meant for a secret: by the path, or by what its text looks like."""
    if access.reach is Reach.RUN:
        return not access.hint and looks_like_a_token(access.target)
    path = access.pattern.removeprefix("./").removesuffix("/**") or access.target
    return access.secret or (access.reach in PATHS and may_hold_secrets(path))
