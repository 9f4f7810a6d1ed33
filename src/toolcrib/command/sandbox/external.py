"""A sandbox around all of us, which the operator declares: a container, a virtual machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolcrib.command.sandbox.interface import Denial, Launch, Level, Network, SandboxReport, Strength


class ExternalSandbox:
    """Commands run as they are, inside walls that somebody else built.

    `what` says which, for reports and audit: "a Docker container without network, thrown away after the run".
    `report` says so too, and that nothing of it was checked by us. Raises ValueError if `what` says nothing.
    """

    def __init__(self, what: str, level: Level | None = None) -> None:
        if not what.strip():
            raise ValueError("what: expected words that say which sandbox this is, got none")
        self.what = what
        self.level = level or Level(network=Network.ON)

    def report(self) -> SandboxReport:
        """Declared strengths: partial, since nothing was tried."""
        declared = Strength.PARTIAL
        network = Strength.NONE if self.level.network is Network.ON else declared
        gaps = (
            f"declared by the operator and not checked: {self.what}",
            "what lies inside it, the environment and credentials of this process too, commands can reach",
            "what rules deny by path is not hidden from commands, so those ask of which nobody knows what they read",
        )
        return SandboxReport("external", declared, declared, network, declared, Strength.NONE, gaps)

    def at(self, level: Level) -> ExternalSandbox:
        return ExternalSandbox(self.what, level)

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        return Launch(list(argv), dict(env), cwd)

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        return None
