"""What a sandbox is: a level that is asked for, a launch that keeps to it, and a report that says what it is worth.

A back end turns a command into what has to be executed (`Launch`). It runs nothing itself, so that whoever
starts processes keeps their own way to do it: the launch is plain argv, environment and descriptors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from toolcrib.errors import listed

LOUD_WORD = "danger_no_sandbox"


class SandboxError(Exception):
    """A sandbox cannot do what was asked of it; nothing was started."""


class Files(StrEnum):
    """What commands may change: nothing, the workspace, or all that the user can."""

    READ_ONLY = "read_only"
    WORKSPACE_WRITE = "workspace_write"
    OFF = LOUD_WORD


class Network(StrEnum):
    """Whom commands may speak to: nobody, the hosts of a list (through a proxy), or everybody."""

    OFF = "off"
    ALLOWLIST = "allowlist"
    ON = "on"


@dataclass(frozen=True, slots=True)
class Permission:
    """One thing more than a level allows. `kind` is "write" or "read" (of a path), "host" (`name[:port]`) or "network".

    A path is absolute; a folder means all below it, and a file that is not there may be made.
    """

    kind: str
    target: str = ""

    def __str__(self) -> str:
        return _PERMITS[self.kind].format(self.target)


_PERMITS = {
    "write": "write to {}",
    "read": "read {}",
    "host": "connect to {}",
    "network": "use the whole network",
}


class Strength(StrEnum):
    """How well something is kept: by the kernel in every way known to us, with gaps that are named, or not."""

    ENFORCED = "enforced"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Limits:
    """Against floods, for each command; None leaves one out.

    `processes` of the command at once; `memory` in bytes of data for each process, `together` in bytes for all
    of them (where a supervisor can look at them); `file_size` in bytes of each file; `scratch` in bytes of
    temporary files held in memory.
    """

    processes: int | None = 1_024
    memory: int | None = 8 << 30
    together: int | None = 16 << 30
    file_size: int | None = 8 << 30
    scratch: int | None = 1 << 30


@dataclass(frozen=True, slots=True)
class Level:
    """What commands may do. `hosts` are "name:port" or "name" (ports 80 and 443), for a network allowlist.

    `writable` and `readable` are further paths, absolute, beside the workspace and what is shown of the system.
    `hidden` and `kept` are what rules take of all that: may not be read, or not be changed. A back end whose report
    does not say that it `withholds` cannot keep to these.

    >>> Level.of("workspace_write") == Level(Files.WORKSPACE_WRITE, Network.OFF)
    True
    >>> Level.of("off")
    Traceback (most recent call last):
    ...
    ValueError: files: expected read_only, workspace_write or danger_no_sandbox, got off
    """

    files: Files = Files.WORKSPACE_WRITE
    network: Network = Network.OFF
    hosts: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("hosts", "writable", "readable", "hidden", "kept"):
            object.__setattr__(self, name, listed(name, getattr(self, name)))
        for path in (*self.writable, *self.readable, *self.hidden, *self.kept):
            if not os.path.isabs(path) or os.path.normpath(path) != path:  # noqa: PTH117 - paths stay text
                raise ValueError(
                    f"writable, readable, hidden and kept are absolute paths in their shortest form, got {path}"
                )
        if self.hosts and self.network is not Network.ALLOWLIST:
            raise ValueError(f"hosts are listed, and network is {self.network}, not allowlist")
        if self.network is Network.ALLOWLIST and not self.hosts:
            raise ValueError("network is allowlist, and no hosts are listed")

    @classmethod
    def of(cls, files: str, network: str = "off", hosts: Sequence[str] = ()) -> Level:
        """A level from words as people write them. Raises ValueError that names the field."""
        for name, words, given in (("files", Files, files), ("network", Network, network)):
            if given not in list(words):
                *others, last = words
                raise ValueError(f"{name}: expected {', '.join(others)} or {last}, got {given}")
        return cls(Files(files), Network(network), listed("hosts", hosts))

    def allows(self, more: Permission) -> bool:
        """Whether a permission is part of this level already."""
        return self.permitting(more) == self

    def permitting(self, more: Permission) -> Level:
        """This level and exactly one permission more.

        >>> Level().permitting(Permission("host", "pypi.org")).hosts
        ('pypi.org',)
        """
        if self.network is Network.ON and more.kind in ("host", "network"):
            return self
        if more.kind == "network":
            return replace(self, network=Network.ON, hosts=())
        if more.kind == "host":
            hosts = tuple(dict.fromkeys((*self.hosts, more.target)))
            return replace(self, network=Network.ALLOWLIST, hosts=hosts)
        if more.kind == "write":
            return replace(self, writable=tuple(dict.fromkeys((*self.writable, more.target))))
        return replace(self, readable=tuple(dict.fromkeys((*self.readable, more.target))))


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What a sandbox is worth here. `why_not_better` has what stronger ones said; `fix` what to do about it.

    `withholds`: whether it keeps commands from what a level names as `hidden` and `kept`.
    """

    backend: str
    fs_write: Strength
    fs_read: Strength
    network: Strength
    processes: Strength
    protected_paths: Strength = Strength.NONE
    gaps: tuple[str, ...] = ()
    why_not_better: tuple[str, ...] = ()
    fix: str = ""
    withholds: bool = False

    @property
    def confines(self) -> bool:
        """Whether commands are kept from anything at all; where not, each of them has to be asked about."""
        return self.fs_write is not Strength.NONE

    def kept(self) -> list[tuple[str, Strength]]:
        """How well each thing is kept, by its name for people."""
        return [
            ("writes", self.fs_write),
            ("reads of secrets", self.fs_read),
            ("network", self.network),
            ("other processes", self.processes),
            ("protected files", self.protected_paths),
        ]

    def lines(self) -> list[str]:
        """For people: what holds, what does not, why, and how to mend it."""
        said = [
            f"{self.backend}: " + ("commands are confined" if self.confines else "NOTHING limits commands")
        ]
        said.append(", ".join(f"{name}: {strength}" for name, strength in self.kept()))
        said += [f"gap: {gap}" for gap in self.gaps]
        said += [f"nothing better: {reason}" for reason in self.why_not_better]
        return said + ([f"fix: {self.fix}"] if self.fix else [])


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal by the sandbox. `kind` is "write", "read", "network", "system" or "limit"; `wider` what would allow it.

    `words` are for a model; `wider` is for a person, "" where nothing short of no sandbox would do.
    `permission` is what a person may be asked for; None where it would open what the sandbox is there for (secrets,
    what other programs obey) or where there is none. It is asked for only if something is `there`.
    """

    kind: str
    target: str
    words: str
    wider: str = ""
    permission: Permission | None = None
    there: bool = True


@dataclass(slots=True)
class Launch:
    """What has to be executed, and what is to be done around it; a context manager, or call `close`.

    The command's own processes are gone when the launched process is gone. `restored` holds, after `close`,
    what the sandbox put right afterwards (protected files that were changed, by their paths), `taken_out` what it took
    out of git repositories, a sentence each; `exceeded` the limits of all its processes together that it met, in words.
    """

    argv: list[str]
    env: dict[str, str]
    cwd: str
    pass_fds: tuple[int, ...] = ()
    restored: list[str] = field(default_factory=list)
    taken_out: list[str] = field(default_factory=list)
    refused_hosts: list[str] = field(default_factory=list)
    led_astray: list[str] = field(default_factory=list)
    exceeded: list[str] = field(default_factory=list)
    closing: list[Callable[[Launch], None]] = field(default_factory=list)
    handed: list[int] = field(default_factory=list)

    def put_right(self) -> list[str]:
        """What the sandbox did after the command, a sentence each."""
        names = ", ".join(self.restored)
        back = [f"Put back as it was, for commands may not change it: {names}."] if names else []
        return [*back, *self.taken_out]

    def started(self) -> None:
        """To be told once the process runs: what was handed to it is let go of here."""
        while self.handed:
            os.close(self.handed.pop())

    def close(self) -> None:
        """After the process ended (or could not be started); a second time it does nothing."""
        self.started()
        while self.closing:
            self.closing.pop()(self)

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Sandbox(Protocol):
    """One way to confine commands."""

    @property
    def level(self) -> Level:
        """What it was made for: what `launch` does when no level is given."""
        ...

    def report(self) -> SandboxReport:
        """What it is worth here."""
        ...

    def at(self, level: Level) -> Sandbox:
        """The same sandbox, with the same temporary folder, made for another level; SandboxError if it cannot keep it.

        Also for a wider one: this is for whoever asked a person, or is the operator.
        """
        ...

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        """What to execute so that `argv` runs confined, in `cwd`. Raises SandboxError if it cannot be confined so.

        `env` is passed on whole (`environment` makes one); `level` may narrow what the sandbox was made for.
        """
        ...

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        """Whether what a command said was a refusal by the sandbox; None for an ordinary failure."""
        ...
