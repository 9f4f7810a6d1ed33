"""No sandbox, by an explicit word or for want of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolcrib.command.sandbox.interface import Denial, Files, Launch, Level, Network, SandboxReport, Strength

WORDS = "commands run with all rights of the user: files, network, other processes"


class NoSandbox:
    """Commands run unconfined.

    Made by a caller it says that this is wanted; `choose` makes it with `wanted=False` where nothing better works,
    and then every command has to be asked about.
    """

    level = Level(Files.OFF, Network.ON)

    def __init__(self, *, wanted: bool = True, why_not_better: Sequence[str] = (), fix: str = "") -> None:
        self.wanted = wanted
        self.why_not_better = tuple(why_not_better)
        self.fix = fix

    def report(self) -> SandboxReport:
        none = Strength.NONE
        return SandboxReport("none", none, none, none, none, none, (WORDS,), self.why_not_better, self.fix)

    def at(self, level: Level) -> NoSandbox:
        return self

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        return Launch(list(argv), dict(env), cwd)

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        return None
