"""What deny rules take from a command that runs: looked for when it starts, and left to the sandbox, which hides it.

Where the sandbox does that, nothing is asked about what a command may meet on its way. Where it does not, a command
that was not proved may reach any file, and rules decide on that before it runs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.access import PATHS, Access, Reach
from toolcrib.command.sandbox import Files, Level, Network, Sandbox, SandboxError
from toolcrib.errors import ToolError

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context
    from toolcrib.shell import Judgement

READING = Level(Files.READ_ONLY, Network.OFF)  # what a command gets that was proved only to read
# Of the workspace: what lies outside is hidden by other means, or not at all.
ANY_FILE = [Access(reach, ".", subtree=True, free=True) for reach in (Reach.READ, Reach.WRITE)]
NOT_READ = "The command was not run: rules do not let this call read the workspace that it would run in."
CHANGED = (
    "The command was not run: the sandbox that would hide denied files from it was switched off. Try again."
)
BEYOND = "run a command from which not all that rules deny can be hidden"


def reading(level: Level) -> Level:
    """The level of a command that was proved only to read, in a sandbox made for another."""
    return replace(READING, readable=level.readable, hidden=level.hidden, read_only=level.read_only)


class Withholding:
    """What rules and sandbox have to do with each other, for the commands of one shell."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._known: tuple[Sandbox, dict[bool, bool]] | None = None

    def met(
        self, accesses: Iterable[Access], judgement: Judgement, chosen: Callable[[], Sandbox]
    ) -> Iterator[Access]:
        """What a command reaches, as rules have to look at it in the sandbox that would be taken."""
        try:
            sandbox = chosen()
        except SandboxError:  # it will not run at all
            sandbox = None
        if sandbox is not None and self._holds(sandbox, judgement):
            places = (self.root, *_opened(sandbox))
            yield from (_filtered(access, places) for access in accesses)
        else:
            yield from accesses
            yield from () if judgement.proved else ANY_FILE

    async def kept_to(
        self, ctx: Context[Any], sandbox: Sandbox, command: str, judgement: Judgement
    ) -> Sandbox:
        """The sandbox without what rules deny a call. Raises ToolError where that cannot be and nobody allows it."""
        if ctx.denied_paths is None:
            return sandbox
        import asyncio

        level, holds = sandbox.level, self._holds(sandbox, judgement)
        if not holds and (judgement.proved or ctx.approved):  # what it may meet was decided on
            return sandbox
        found = await asyncio.to_thread(ctx.denied_paths, self.root, _opened(sandbox))
        if not holds:
            if any(_is_inside(path, (self.root,)) for path in (*found.hidden, *found.read_only)):
                raise ToolError(CHANGED)
            return sandbox
        if self.root in found.hidden:
            raise ToolError(NOT_READ)
        if found.incomplete:
            await ctx.ask(f"{BEYOND}: {found.incomplete}", [command], person_only=True)
        if self.root in found.read_only:
            level = replace(level, files=Files.READ_ONLY)
        read_only = tuple(path for path in found.read_only if path != self.root)
        level = replace(level, hidden=found.hidden, read_only=read_only)
        return sandbox if level == sandbox.level else sandbox.at(level)

    def _holds(self, sandbox: Sandbox, judgement: Judgement) -> bool:
        """`_hides`, asked once of each sandbox."""
        if self._known is None or self._known[0] is not sandbox:
            self._known = (sandbox, {})
        known, reads = self._known[1], _reads(judgement)
        if reads not in known:
            known[reads] = self._hides(sandbox, judgement)
        return known[reads]

    def _hides(self, sandbox: Sandbox, judgement: Judgement) -> bool:
        """Whether a sandbox hides what rules deny from such a command."""
        try:
            at_work = sandbox.at(reading(sandbox.level)) if _reads(judgement) else sandbox
            return at_work.report().hides_denied_paths
        except SandboxError:
            return False


def _opened(sandbox: Sandbox) -> list[str]:
    """What was opened beside the workspace, when the sandbox was made and since."""
    level = sandbox.level
    opened = (*getattr(sandbox, "readable", ()), *level.readable, *level.writable)
    return [os.path.realpath(path) for path in opened]


def _filtered(access: Access, places: Collection[str]) -> Access:
    """The same, where it lies in what is worked on; what is shown of the system is not looked through."""
    if not (access.subtree and access.reach in PATHS):
        return access
    below = access.pattern[1:].removesuffix("/**") if access.target == "/" else access.target
    if not below.startswith("/") or _is_inside(below, places):
        return replace(access, filtered=True)
    if access.target == "/" and not _may_hold(below):
        return replace(access, pattern=access.pattern.removesuffix("/**"))  # below it there is nothing
    return access


def _is_inside(path: str, places: Collection[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _may_hold(path: str) -> bool:
    """Whether there may be something below a path."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - paths of commands are text
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True


def _reads(judgement: Judgement) -> bool:
    """Whether a command was proved only to read, and so runs at that level."""
    return judgement.verdict == "plain" and judgement.effect == "read"
