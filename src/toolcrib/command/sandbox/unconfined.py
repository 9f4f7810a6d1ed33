"""Commands that no sandbox of ours confines: by choice, for want of one, or because the operator has one around us."""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping, Sequence

from toolcrib.command.sandbox.interface import Denial, Launch, SandboxReport, Strength
from toolcrib.command.sandbox.level import Files, Level, Network
from toolcrib.command.sandbox.process.instructions import Instructions


class NoSandbox:
    """Commands run with all rights of the user.

    `wanted` is True where a caller made it. `choose` makes it with `wanted=False` where nothing better works, and then
    every command has to be asked about.
    """

    level = Level(Files.OFF, Network.ON)

    def __init__(self, *, wanted: bool = True, why_not_better: Sequence[str] = (), fix: str = "") -> None:
        self.wanted = wanted
        self.why_not_better = tuple(why_not_better)
        self.fix = fix

    def report(self) -> SandboxReport:
        none = Strength.NONE
        gaps = ("commands run with all rights of the user: files, network, other processes",)
        return SandboxReport(
            "none",
            fs_write=none,
            fs_read=none,
            network=none,
            processes=none,
            protected_paths=none,
            known_gaps=gaps,
            why_not_better=self.why_not_better,
            fix=self.fix,
        )

    def at(self, level: Level) -> NoSandbox:
        return self

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        return _supervised(Launch(list(argv), dict(env), cwd))

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        return None


class ExternalSandbox:
    """A sandbox around this whole process, which the operator declares: a container, a virtual machine.

    Commands run as they are. `what` names it for reports and the audit log: "a Docker container without network, thrown
    away after the run". The report says that we did not check it. Raises ValueError if `what` is empty.
    """

    def __init__(self, what: str, level: Level | None = None) -> None:
        if not what.strip():
            raise ValueError("what: expected words that say which sandbox this is, got none")
        self.what = what
        self.level = level or Level(network=Network.ON)

    def report(self) -> SandboxReport:
        """Every strength is partial, since nothing was tried."""
        declared = Strength.PARTIAL
        network = Strength.NONE if self.level.network is Network.ON else declared
        gaps = (
            f"declared by the operator and not checked: {self.what}",
            "commands can reach everything inside it, including the environment and credentials of this process",
            "paths that rules deny are not hidden from commands, so a command asks if it is not known what it reads",
        )
        return SandboxReport(
            "external",
            fs_write=declared,
            fs_read=declared,
            network=network,
            processes=declared,
            protected_paths=Strength.NONE,
            known_gaps=gaps,
        )

    def at(self, level: Level) -> ExternalSandbox:
        return ExternalSandbox(self.what, level)

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        return _supervised(Launch(list(argv), dict(env), cwd))

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        return None


def _supervised(launch: Launch) -> Launch:
    """The launch under a supervisor, which ends the command when this process is killed; on Linux alone.

    A program that was made of an application has no interpreter that could run the supervisor.
    """
    if sys.platform != "linux" or not sys.executable or getattr(sys, "frozen", False):
        return launch
    supervisor = Instructions(launch.argv, supervised=True, spare_detached=True)
    try:
        launch.argv = supervisor.argv(launch)
    except OSError as problem:
        launch.close()
        if problem.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return launch  # a system without memory files: the command runs as it is
    launch.pass_fds = tuple(launch.inherited)
    return launch
