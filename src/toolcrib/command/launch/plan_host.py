"""What a plan needs of where it runs: something that starts its programs, and opens and lists its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from toolcrib.command.launch.plan_streams import Streams


class PlanProcess(Protocol):
    """A running program of a plan."""

    async def wait(self) -> int:
        """Waits for its end; returns the status, negative for a signal."""
        ...

    def kill(self) -> None:
        """Ends it with everything that it started; does nothing if it has ended."""
        ...


class PlanHost(Protocol):
    """Starts the programs of a plan and opens its files. Folders are paths that the host gave.

    Every method may raise OSError.
    """

    root: str

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        folder: str,
        env: Mapping[str, str],
        streams: Streams,
        inherited: Sequence[int],
    ) -> PlanProcess:
        """Starts a program with these descriptors as 0, 1 and 2; None stands for a closed one. It gets `inherited`
        ones under their numbers."""
        ...

    def open(self, path: str, *, folder: str, flags: int) -> int:
        """Opens the file of a redirection."""
        ...

    def enter(self, path: str, *, folder: str) -> str:
        """The folder to which `cd path` leads."""
        ...

    def names(self, path: str, *, folder: str) -> list[str]:
        """The names in a folder, for matching patterns."""
        ...
