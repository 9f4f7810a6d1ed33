"""What a back end implements (`Sandbox`), and what it hands out: a `Launch`, a `Denial`, a `SandboxReport`.

A back end turns a command into what has to be executed. It starts no process itself, so every caller keeps its own
way of doing that: a launch is plain argv, environment and file descriptors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from typing import Literal, Protocol

from toolcrib.command.sandbox.level import Level, Permission
from toolcrib.dataclass import dataclass, field

MAX_NAMES = 50  # of files that were put back, in one sentence


class Strength(StrEnum):
    """How well a protection holds: by the kernel in every way we know to test, with gaps that are named, or not."""

    ENFORCED = "enforced"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What a sandbox is worth on this machine.

    `gaps` says in words what it does not keep: the `known_gaps`, and those that `tried_gaps` finds when they are asked
    for. `why_not_better` says why stronger back ends were not taken, `fix` what a person can do about it.
    `hides_denied_paths` says whether the back end enforces a level's `hidden` and `read_only` paths.
    """

    backend: str
    fs_write: Strength
    fs_read: Strength
    network: Strength
    processes: Strength
    protected_paths: Strength = Strength.NONE
    known_gaps: tuple[str, ...] = ()
    why_not_better: tuple[str, ...] = ()
    fix: str = ""
    hides_denied_paths: bool = False
    tried_gaps: Callable[[], Sequence[str]] = field(default=tuple, compare=False)

    @property
    def gaps(self) -> tuple[str, ...]:
        return (*self.known_gaps, *self.tried_gaps())

    @property
    def confines(self) -> bool:
        """Whether commands are confined at all. If not, each command has to be asked about."""
        return self.fs_write is not Strength.NONE

    def strengths(self) -> list[tuple[str, Strength]]:
        """Each protection by its name for people, and how well it holds."""
        return [
            ("writes", self.fs_write),
            ("reads of home folders and known secrets", self.fs_read),
            ("network", self.network),
            ("other processes", self.processes),
            ("protected files", self.protected_paths),
        ]

    def lines(self) -> list[str]:
        """The report for people: what holds, what does not, why, and how to fix it."""
        confined = "commands are confined" if self.confines else "NOTHING limits commands"
        lines = [
            f"{self.backend}: {confined}",
            ", ".join(f"{name}: {strength}" for name, strength in self.strengths()),
        ]
        lines += [f"gap: {gap}" for gap in self.gaps]
        lines += [f"nothing better: {reason}" for reason in self.why_not_better]
        return lines + ([f"fix: {self.fix}"] if self.fix else [])


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal by the sandbox: of a path, of a connection, of a system call, or because a limit was met.

    `message` is for the model; `remedy` tells a person what would allow it, and is "" where only switching the
    sandbox off would. `permission` is what a person may be asked for; it is None where it would open secrets or files
    that other programs obey. A person is only asked if the target `exists`.
    """

    kind: Literal["write", "read", "network", "system", "limit"]
    target: str
    message: str
    remedy: str = ""
    permission: Permission | None = None
    exists: bool = True


@dataclass(slots=True)
class Launch:
    """What has to be executed, and what has to be cleaned up after it. A context manager; or call `close`.

    The processes of the command are gone when the launched process is gone. A back end adds clean-up steps to
    `on_close` (the last one runs first) and descriptors for the launched process to `inherited`.

    After `close`: `restored` are the protected files that were put back, `not_restored` are sentences about those that
    could not be, `git_changes` are sentences about settings and hooks that were taken out of git repositories,
    `executed_files` are sentences about files that the command changed and other programs run unasked, and `limits_met`
    names the limits of all processes together that the command met. `kept_by_mounts` are the paths that the command
    could not change, as their mounts stayed. While it runs, the proxy of an allowlist adds to `refused_hosts` and to
    `refused_addresses`.
    """

    argv: list[str]
    env: dict[str, str]
    cwd: str
    pass_fds: tuple[int, ...] = ()
    restored: list[str] = field(default_factory=list)
    not_restored: list[str] = field(default_factory=list)
    git_changes: list[str] = field(default_factory=list)
    executed_files: list[str] = field(default_factory=list)
    refused_hosts: list[str] = field(default_factory=list)
    refused_addresses: list[str] = field(default_factory=list)
    limits_met: list[str] = field(default_factory=list)
    kept_by_mounts: list[str] = field(default_factory=list)
    on_close: list[Callable[[Launch], None]] = field(default_factory=list)
    inherited: list[int] = field(default_factory=list)

    def reverted(self) -> list[str]:
        """What the sandbox reverted after the command, and what the command changed that runs unasked: sentences."""
        names = ", ".join(self.restored[:MAX_NAMES])
        if len(self.restored) > MAX_NAMES:
            names += f" and {len(self.restored) - MAX_NAMES:,} more"
        back = [f"Put back as it was, because commands may not change it: {names}."] if names else []
        return [*back, *self.not_restored, *self.git_changes, *self.executed_files]

    def started(self) -> None:
        """Closes our copies of the inherited descriptors; call this once the process runs."""
        while self.inherited:
            os.close(self.inherited.pop())

    def close(self) -> None:
        """Cleans up after the process ended or could not be started; a second call does nothing.

        A step that fails keeps no other from being made.
        """
        self.started()
        with ExitStack() as steps:
            for step in self.on_close:
                steps.callback(step, self)
            self.on_close = []

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Sandbox(Protocol):
    """One way to confine commands."""

    @property
    def level(self) -> Level:
        """The level at which `launch` confines commands unless it is given a narrower one."""
        ...

    def report(self) -> SandboxReport:
        """What this sandbox is worth on this machine."""
        ...

    def at(self, level: Level) -> Sandbox:
        """The same sandbox, with the same temporary folder, at another level. Raises SandboxError if it cannot keep it.

        The level may be wider: the caller asked a person, or is the operator.
        """
        ...

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        """What to execute so that `argv` runs confined, in `cwd`. Raises SandboxError if it cannot be confined.

        `env` is passed on whole (`environment` makes one). `level` may be narrower than the sandbox's own.
        """
        ...

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        """The refusal by the sandbox that made a command fail, or None for an ordinary failure."""
        ...
