"""Levels: what commands may change, whom they may speak to, and how much they may use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import as_tuple

LOUD_WORD = "danger_no_sandbox"


class SandboxError(Exception):
    """A sandbox cannot confine a command as it was asked to; nothing was started."""


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


# From narrow to wide.
_FILES = tuple(Files)
_NETWORK = tuple(Network)


@dataclass(frozen=True, slots=True)
class Permission:
    """An addition to a level: to write or read a path, to reach hosts (`name[:port]`, one or more with a comma and a
    space between them), or to use the whole network.

    A path is absolute. A folder means everything below it; a file that does not exist may be created.
    """

    kind: Literal["write", "read", "host", "network"]
    target: str = ""

    def __str__(self) -> str:
        return _PERMITS[self.kind].format(self.target)


_PERMITS = {
    "write": "write to {}",
    "read": "read {}",
    "host": "connect to {}",
    "network": "use the whole network",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for each command; None switches a limit off.

    `processes` is the number of processes at one time, `memory` the bytes of data of each process, `together` the
    bytes of all processes of the command (where a control group or a supervisor can add them up), `file_size` the
    bytes of each file, `scratch` the bytes of temporary files held in memory.
    """

    processes: int | None = 1_024
    memory: int | None = 8 << 30
    together: int | None = 16 << 30
    file_size: int | None = 8 << 30
    scratch: int | None = 1 << 30

    def of_a_process(self) -> list[tuple[int, int]]:
        """Those that `setrlimit` puts on each process by itself, as its arguments; no process leaves a core file."""
        import resource

        wanted = (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_DATA, self.memory),
            (resource.RLIMIT_FSIZE, self.file_size),
        )
        return [(kind, value) for kind, value in wanted if value is not None]


@dataclass(frozen=True, slots=True)
class Level:
    """What commands may do. `hosts` are "name:port" or "name" (ports 80 and 443), for a network allowlist.

    `writable` and `readable` are absolute paths that are opened in addition to the workspace and to what is shown of
    the system. `hidden` and `read_only` take paths away again, for deny rules: commands cannot read what is hidden and
    cannot change what is read-only. `blank` files are hidden too, and look empty where the back end can show that.
    Only a back end whose report says `hides_denied_paths` enforces these three.

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
    read_only: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("hosts", "writable", "readable", "hidden", "read_only", "blank"):
            object.__setattr__(self, name, as_tuple(name, getattr(self, name)))
        for path in (*self.writable, *self.readable, *self.hidden, *self.read_only, *self.blank):
            if not os.path.isabs(path) or os.path.normpath(path) != path:
                raise ValueError(
                    "writable, readable, hidden, read_only and blank are absolute paths in their shortest form, "
                    f"got {path}"
                )
        if self.hosts and self.network is not Network.ALLOWLIST:
            raise ValueError(f"hosts are listed, and network is {self.network}, not allowlist")
        if self.network is Network.ALLOWLIST and not self.hosts:
            raise ValueError("network is allowlist, and no hosts are listed")

    @classmethod
    def of(cls, files: str, network: str = "off", hosts: Sequence[str] = ()) -> Level:
        """A level from the words of the command line. Raises ValueError that names the field."""
        for name, words, given in (("files", Files, files), ("network", Network, network)):
            if given not in list(words):
                *others, last = words
                raise ValueError(f"{name}: expected {', '.join(others)} or {last}, got {given}")
        return cls(Files(files), Network(network), as_tuple("hosts", hosts))

    def allows(self, permission: Permission) -> bool:
        """Whether this level includes a permission already."""
        return self.with_permission(permission) == self

    def with_permission(self, permission: Permission) -> Level:
        """This level and exactly one permission more.

        >>> Level().with_permission(Permission("host", "pypi.org")).hosts
        ('pypi.org',)
        """
        kind, target = permission.kind, permission.target
        if self.network is Network.ON and kind in ("host", "network"):
            return self
        if kind == "network":
            return replace(self, network=Network.ON, hosts=())
        if kind == "host":
            hosts = dict.fromkeys((*self.hosts, *target.split(", ")))
            return replace(self, network=Network.ALLOWLIST, hosts=tuple(hosts))
        if kind == "write":
            return replace(self, writable=_added(self.writable, target))
        return replace(self, readable=_added(self.readable, target))

    def without_links(self) -> Level:
        """This level without further paths that are links now: a command may have put one in the place of a path."""
        writable, readable = (
            tuple(path for path in paths if os.path.realpath(path) == path)
            for paths in (self.writable, self.readable)
        )
        return replace(self, writable=writable, readable=readable)

    def only_reading(self) -> Level:
        """The level for a command that was proved to only read: it cannot write, and it reaches no network."""
        return replace(self, files=Files.READ_ONLY, network=Network.OFF, hosts=(), writable=())

    def covers(self, other: Level) -> bool:
        """Whether another level allows nothing that this one does not allow."""
        both_listed = self.network is other.network is Network.ALLOWLIST
        return (
            _FILES.index(other.files) <= _FILES.index(self.files)
            and _NETWORK.index(other.network) <= _NETWORK.index(self.network)
            and (not both_listed or set(other.hosts) <= set(self.hosts))
            and set(other.writable) <= set(self.writable)
            and set(other.readable) <= {*self.readable, *self.writable}
            and set(self.hidden) <= set(other.hidden)
            and set(self.blank) <= {*other.blank, *other.hidden}
            and set(self.read_only) <= {*other.read_only, *other.hidden}
        )


def _added(known: tuple[str, ...], new: str) -> tuple[str, ...]:
    return known if new in known else (*known, new)
