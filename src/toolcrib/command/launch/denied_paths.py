"""Deny rules on paths, enforced for commands: looked up when a command starts, and hidden from it by the sandbox.

Where the sandbox hides denied paths, nobody is asked about files that a command may meet. Where it does not, a command
that was not proved may reach any file, and rules decide on that before it runs.

The same holds for files that may hold secrets and lie where a proved command searches (`grep -r x .`): they look empty
to it, or each of them is decided on.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from toolcrib.access import PATHS, Access, Reach
from toolcrib.command.judge import paths
from toolcrib.command.judge.secrets_below import secrets_below
from toolcrib.command.sandbox import Files, Sandbox, SandboxError
from toolcrib.command.sandbox.files.paths import innermost_around, within_any
from toolcrib.dataclass import replace
from toolcrib.errors import ToolError

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.command.judge import Judgement
    from toolcrib.context import Context

# Only of the workspace: what lies outside is hidden by other means, or not at all.
ANY_FILE = [Access(reach, ".", subtree=True, free=True) for reach in (Reach.READ, Reach.WRITE)]
NOT_READ = "The command was not run: rules do not let this call read the workspace that it would run in."
CHANGED = (
    "The command was not run: the sandbox that would hide denied files from it was switched off. Try again."
)
MAY_SHOW = "run a command that may show files with secrets"
INCOMPLETE = "run a command from which not all that rules deny can be hidden"


class DeniedPathsInSandbox:
    """Applies deny rules to the commands in one workspace, by means of the sandbox."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._known: tuple[Sandbox, dict[bool, bool]] | None = None

    def accesses_to_decide(
        self, accesses: Iterable[Access], judgement: Judgement, sandbox: Sandbox | None
    ) -> Iterator[Access]:
        """The accesses of a command as rules have to decide on them. `sandbox` is None where none can be made.

        If the sandbox hides denied paths, accesses of whole folders are marked as filtered. If not, a command that was
        not proved counts as reading and writing any file of the workspace.
        """
        if sandbox is not None and self._hides_for(sandbox, judgement):
            places = (self.root, *_opened(sandbox))
            yield from (_filtered(access, places) for access in accesses)
        else:
            yield from accesses
            yield from () if judgement.proved else ANY_FILE

    def secrets_to_decide(
        self, judgement: Judgement, sandbox: Sandbox | None, folder: str
    ) -> Iterator[Access]:
        """The files that may hold secrets where a proved command searches, if nothing hides them from it."""
        if not _searches(judgement) or (sandbox is not None and self._hides_for(sandbox, judgement)):
            return
        found = secrets_below(folder, judgement.shows)
        yield from map(self._content, (*found.paths, *([self.root] if found.incomplete else [])))

    async def without_secrets(
        self, ctx: Context[Any], sandbox: Sandbox, command: str, judgement: Judgement, folder: str
    ) -> tuple[Sandbox, tuple[str, ...]]:
        """The sandbox in which files that may hold secrets look empty where a proved command searches; and these files.

        Raises ToolError if there are too many of them and nobody allows it.
        """
        if not (_searches(judgement) and self._hides_for(sandbox, judgement)):
            return sandbox, ()
        import asyncio

        found = await asyncio.to_thread(secrets_below, folder, judgement.shows)
        if found.incomplete and not ctx.permits(self._content(self.root)):
            await ctx.ask(f"{MAY_SHOW}: {found.incomplete}", [command])
            return sandbox, ()
        level = sandbox.level
        seen = (path for path in found.paths if not innermost_around(path, level.hidden))
        blank = tuple(path for path in seen if not ctx.permits(self._content(path)))
        return (sandbox.at(replace(level, blank=blank)), blank) if blank else (sandbox, ())

    def _content(self, path: str) -> Access:
        return Access(Reach.READ, paths.relative(path, self.root), secret=True)

    async def hide(self, ctx: Context[Any], sandbox: Sandbox, command: str, judgement: Judgement) -> Sandbox:
        """The sandbox with everything hidden or read-only that rules deny to the call.

        Raises ToolError if that is not possible and nobody allows it.
        """
        if ctx.denied_paths is None:
            return sandbox
        import asyncio

        hides = self._hides_for(sandbox, judgement)
        if not hides and (judgement.proved or ctx.approved):  # its accesses were decided on before
            return sandbox
        denied = await asyncio.to_thread(ctx.denied_paths, self.root, _opened(sandbox))
        if not hides:
            if any(within_any(path, [self.root]) for path in (*denied.hidden, *denied.read_only)):
                raise ToolError(CHANGED)
            return sandbox
        if self.root in denied.hidden:
            raise ToolError(NOT_READ)
        if denied.incomplete:
            await ctx.ask(f"{INCOMPLETE}: {denied.incomplete}", [command], person_only=True)
        level = sandbox.level
        if self.root in denied.read_only:
            level = replace(level, files=Files.READ_ONLY)
        read_only = tuple(path for path in denied.read_only if path != self.root)
        level = replace(level, hidden=denied.hidden, read_only=read_only)
        return sandbox if level == sandbox.level else sandbox.at(level)

    def _hides_for(self, sandbox: Sandbox, judgement: Judgement) -> bool:
        """Whether a sandbox hides denied paths from a command. Its report is read once for each sandbox."""
        if self._known is None or self._known[0] is not sandbox:
            self._known = (sandbox, {})
        known = self._known[1]
        if judgement.only_reads not in known:
            known[judgement.only_reads] = _hides(sandbox, judgement)
        return known[judgement.only_reads]


def _searches(judgement: Judgement) -> bool:
    return judgement.only_reads and bool(judgement.shows)


def _hides(sandbox: Sandbox, judgement: Judgement) -> bool:
    try:
        used = sandbox.at(sandbox.level.only_reading()) if judgement.only_reads else sandbox
        return used.report().hides_denied_paths
    except SandboxError:
        return False


def _opened(sandbox: Sandbox) -> list[str]:
    """The paths that are open in addition to the workspace, since the sandbox was made or later."""
    level = sandbox.level
    opened = (*getattr(sandbox, "readable", ()), *level.readable, *level.writable)
    return [os.path.realpath(path) for path in opened]


def _filtered(access: Access, places: Collection[str]) -> Access:
    """An access of a folder marked as filtered if it lies in the places that are searched for denied paths.

    What is shown of the system is not searched.
    """
    if not (access.subtree and access.reach in PATHS):
        return access
    below = access.pattern[1:].removesuffix("/**") if access.target == "/" else access.target
    if not below.startswith("/") or within_any(below, places):
        return replace(access, filtered=True)
    if access.target == "/" and not _may_be_folder(below):
        return replace(access, pattern=access.pattern.removesuffix("/**"))  # nothing lies below it
    return access


def _may_be_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - paths of commands are text
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
