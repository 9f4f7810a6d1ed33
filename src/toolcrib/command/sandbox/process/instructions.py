"""The instructions for the launcher: what it puts its own process under before it becomes the command."""

from __future__ import annotations

import errno
import marshal
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolcrib.command.sandbox.files.own_files import python
from toolcrib.command.sandbox.interface import Launch
from toolcrib.dataclass import dataclass, field

START = str(Path(__file__).with_name("start.py"))
LandlockRules = tuple[tuple[int, int, int], list[tuple[str, int]], int]


@dataclass(slots=True)
class Instructions:
    """What the launcher does before it executes `exec`; it skips what is not set.

    `landlock` are the arguments of `kernel.landlock`, `filter` is a program of `seccomp`, `limits` are pairs for
    `setrlimit`, `capabilities` says whether to drop them. `groups` are the files of control groups to join.
    A supervisor (`supervised`) ends all processes with the command, and also when there are more than `processes` of
    them, when they use more than `together` bytes of memory, or when this process has ended; `spare_detached` leaves
    alone what still runs when the command has ended by itself. Before the command starts, it compares what bwrap
    mounted with `mounts`, if there are any (see `mounted.py`). `hand_over` is the descriptor over which the
    proxy's listener is sent out. `env` is added to the launcher's own environment for the command.
    """

    exec: list[str]
    landlock: LandlockRules | None = None
    filter: bytes | None = None
    limits: list[tuple[int, int]] = field(default_factory=list)
    capabilities: bool = False
    supervised: bool = False
    spare_detached: bool = False
    application: int | None = None
    together: int | None = None
    processes: int | None = None
    groups: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    hand_over: int | None = None
    mounts: dict[str, str] = field(default_factory=dict)

    @property
    def needed(self) -> bool:
        """Whether anything is set for which a launcher is needed."""
        return self.landlock is not None or self.supervised or self.hand_over is not None

    def argv(self, launch: Launch) -> list[str]:
        """The launcher's command line; it reads the instructions from a descriptor of the launch."""
        if self.supervised:
            self.application = _own_pidfd(launch)
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return launcher_argv(str(inherited_data(launch, marshal.dumps(fields))))


def launcher_argv(*arguments: str) -> list[str]:
    return [python(), "-I", "-S", START, *arguments]


def instructions_in(argv: Sequence[str]) -> int | None:
    """The descriptor of the instructions, if a command line is the launcher's; else None."""
    return int(argv[-1]) if list(argv[:-1]) == launcher_argv() else None


def _own_pidfd(launch: Launch) -> int | None:
    """A descriptor that tells the launched process when this one has ended; None where the system has no such thing."""
    fd = own_pidfd()
    if fd is not None:
        launch.inherited.append(fd)
    return fd


def own_pidfd() -> int | None:
    try:
        return os.pidfd_open(os.getpid())
    except OSError as problem:
        # an old kernel, or a container's filter
        if problem.errno in (errno.ENOSYS, errno.EPERM, errno.EINVAL):
            return None
        raise


def inherited_data(launch: Launch, data: bytes) -> int:
    """A descriptor from which the launched process reads these bytes."""
    fd = os.memfd_create("toolcrib", os.MFD_CLOEXEC)
    launch.inherited.append(fd)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
