"""The sandbox of a tool at the level that is in force now, made once for each level."""

from __future__ import annotations

import threading

from toolcrib.command.sandbox.choose import choose, why_not_contained
from toolcrib.command.sandbox.interface import Sandbox
from toolcrib.command.sandbox.level import Files, Level, SandboxError
from toolcrib.command.sandbox.unconfined import NoSandbox


class SandboxInForce:
    """Gives the sandbox of a workspace: the one that was given, or else the best that works here, at a level."""

    def __init__(self, workspace: str, given: Sandbox | None) -> None:
        self._workspace = workspace
        self._given = given
        self._lock = threading.Lock()
        self._made: tuple[Level | None, Sandbox] | None = None
        self._confining: tuple[Sandbox, bool] | None = None
        self._keeping: tuple[Sandbox, str] | None = None

    def at(self, level: Level | None) -> Sandbox:
        """The sandbox at a level, or at its own where `level` is None. Raises SandboxError if it cannot keep to it."""
        made = self._made
        if made is None or made[0] != level:
            with self._lock:
                made = self._made = (level, self._make(level))
        return made[1]

    def confines(self, level: Level | None) -> bool:
        """Whether commands are confined at a level, or a caller passed `NoSandbox` and so wants them unconfined."""
        try:
            sandbox = self.at(level)
        except SandboxError:  # no command will run
            return False
        if self._confining is None or self._confining[0] is not sandbox:
            holds = sandbox.wanted if isinstance(sandbox, NoSandbox) else sandbox.report().confines
            self._confining = (sandbox, holds)
        return self._confining[1]

    def keeper(self, level: Level | None) -> str:
        """Names what keeps commands in the workspace and off the network at a level; "" where nothing does."""
        try:
            sandbox = self.at(level)
        except SandboxError:
            return ""
        if self._keeping is None or self._keeping[0] is not sandbox:
            by = "" if why_not_contained(sandbox) else f"{sandbox.report().backend} without network"
            self._keeping = (sandbox, by)
        return self._keeping[1]

    def _make(self, level: Level | None) -> Sandbox:
        given = self._given
        if given is None:
            return choose(self._workspace, level)
        if level is None or given.level == level:
            return given
        if level.files is Files.OFF:
            return NoSandbox()
        return choose(self._workspace, level) if isinstance(given, NoSandbox) else given.at(level)
