"""What a launcher is told to do before it becomes the command."""

from __future__ import annotations

import marshal
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolcrib.command.sandbox.interface import Launch
from toolcrib.command.sandbox.own import python

LAUNCHER = str(Path(__file__).with_name("launcher.py"))
Confinement = tuple[tuple[int, int, int], list[tuple[str, int]], int]


@dataclass(slots=True)
class Plan:
    """Only what is set is done. `landlock` is what `kernel.landlock` takes; `groups` are files to join groups by.

    A supervisor bounds the number of `processes`, and the bytes of memory of all `together`; `env` is the command's
    beside the launcher's own.
    """

    exec: list[str]
    landlock: Confinement | None = None
    filter: bytes | None = None
    limits: list[tuple[int, int]] = field(default_factory=list)
    capabilities: bool = False
    supervised: bool = False
    together: int | None = None
    processes: int | None = None
    groups: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    hand_over: int | None = None

    @property
    def needed(self) -> bool:
        """Whether anything has to be done that needs a launcher."""
        return self.landlock is not None or self.supervised or self.hand_over is not None

    def argv(self, launch: Launch) -> list[str]:
        """The launcher's command line; the plan itself is handed over in a descriptor of the launch."""
        told: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return [python(), "-I", "-S", LAUNCHER, str(handed(launch, marshal.dumps(told)))]


def handed(launch: Launch, data: bytes) -> int:
    """A descriptor from which the launched process reads these bytes."""
    fd = os.memfd_create("toolcrib", os.MFD_CLOEXEC)
    launch.handed.append(fd)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
