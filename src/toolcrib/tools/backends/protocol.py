"""The contract between tools and the place where their files are. Tools know this, and never which backend it is.

All methods take paths as a model writes them and raise ToolError with words for a model. A path is relative to the
backend's root, or absolute below it; links never lead out of it. `permits` is a call's `ctx.permits`: a backend asks it
about the path that a name really leads to, just before it uses it.

Methods are synchronous: tools that use them run in worker threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol, TypeAlias, runtime_checkable

from toolcrib.access import Access, Permits, Reach
from toolcrib.dataclass import dataclass, field
from toolcrib.tools.seen_versions import SeenVersions

if TYPE_CHECKING:
    from toolcrib.question import Doubt

__all__ = [
    "ABSENT",
    "Backend",
    "BackendPath",
    "Change",
    "CommandOutput",
    "CommandRunner",
    "Delete",
    "DirectoryEntry",
    "FileStatus",
    "Folder",
    "Kind",
    "Move",
    "Permits",
    "Write",
    "permit_all",
    "version_of",
]

Kind: TypeAlias = Literal["file", "folder", "link", "other"]

ABSENT = "absent"  # the version of a path where nothing is


def permit_all(access: Access) -> bool:
    """Permits everything, for a call without rules."""
    return True


def version_of(data: bytes) -> str:
    """The version of a file with this content. The same content has the same version on every backend."""
    return hashlib.sha256(data).hexdigest()


class BackendPath(Protocol):
    """A path that a backend understood."""

    @property
    def shown(self) -> str:
        """The path as a model and a person are shown it, without `..`, relative to the root where it lies below it."""
        ...


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What a path leads to. `identity` tells one file or folder from another that takes its name."""

    kind: Kind
    size: int = 0
    modified: int = 0
    identity: str = ""


@dataclass(slots=True)
class DirectoryEntry:
    """One name in a folder. `kind` "other" is a pipe, device or socket."""

    name: str
    kind: Kind
    looked_up: Callable[[], FileStatus | None] | FileStatus | None = field(default=None, compare=False)

    def status(self) -> FileStatus | None:
        """The status of a file; None if it is not known, or the file is gone. To be asked during a walk."""
        return self.looked_up() if callable(self.looked_up) else self.looked_up


@dataclass(slots=True)
class Folder:
    """One folder of a walk: its path as shown, and what is in it, sorted by name.

    `real` is where links in the path lead, as shown; "" where the path has none. `read(name, limit)` gives the content
    of a file in the folder, opened without following a link, until the next folder is taken; None where it cannot be
    read. Raises FileTooLargeError. A backend without such a way leaves it None.
    """

    path: str
    entries: list[DirectoryEntry]
    real: str = ""
    read: Callable[[str, int], bytes | None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Write:
    """Creates or replaces a file. `expect` is the version that it must have (`version_of`, ABSENT), None for any."""

    path: str
    data: bytes
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes a file."""

    path: str
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """Gives a file another path, where nothing may be, and with `data` also another content. Its mode stays."""

    path: str
    to: str
    data: bytes | None = None
    expect: str | None = None


Change: TypeAlias = Write | Delete | Move
"""One change of a set that `apply` makes."""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """How a command ended, and what it printed."""

    code: int
    stdout: bytes
    stderr: bytes


@runtime_checkable
class CommandRunner(Protocol):
    """A backend that is no folder of this machine, and runs commands where its files are."""

    async def run_command(self, command: str, stdin: bytes = b"") -> CommandOutput:
        """Runs a short script for `sh` to its end. The caller's cancellation ends it. Raises OSError."""
        ...

    def script(self, script: str, stdin: bytes = b"") -> CommandOutput:
        """Runs a script in the root, from whatever thread this is. Raises ToolError."""
        ...

    def folder_of_commands(self, path: str) -> str:
        """A folder as scripts name it. Raises ToolError for a path outside."""
        ...

    def resource(self, path: str) -> str: ...


class Backend(Protocol):
    """Where files are: a folder of this machine (`Workspace`), a dictionary, a database, a container."""

    seen: SeenVersions  # the versions of files that each run last read

    @property
    def read_only(self) -> str | None:
        """The reason why nothing may be changed now; None if changes are allowed."""
        ...

    # Paths: pure, except `accesses_to` and `leads_to`, which look where links lead.

    def place(self, path: str) -> BackendPath:
        """The path as it will be used. Raises ToolError if it can be no path, or lies outside."""
        ...

    def resource(self, path: str) -> str:
        """The name by which calls that touch the same path are ordered. Raises nothing."""
        ...

    def accesses_to(
        self, reach: Reach, path: str, *, subtree: bool = False, pattern: str = "", contents: bool = False
    ) -> tuple[Access, ...]:
        """The accesses of a tool that uses a path: to the path as named, and to where links in it lead."""
        ...

    def leads_to(self, path: str) -> str | None:
        """The path, as shown, to which links in a path lead; None for a path that leads out or in a circle."""
        ...

    def doubt(self, accesses: Iterable[Access]) -> Doubt | None:
        """Why a person should look at changes of these paths, whatever the rules say; None if they need not."""
        ...

    # Reading.

    def read(self, path: str, limit: int, permits: Permits = permit_all) -> bytes:
        """The content of a file of at most `limit` bytes."""
        ...

    def open_file(self, path: str, permits: Permits = permit_all) -> tuple[BinaryIO, FileStatus]:
        """A regular file, open for reading from its start. The caller closes it."""
        ...

    def stat(self, path: str, permits: Permits = permit_all) -> FileStatus | None:
        """What a path leads to; None where nothing is, where it leads out, or where it is not permitted."""
        ...

    def entries(self, path: str, permits: Permits = permit_all) -> list[DirectoryEntry]:
        """What is in a folder, sorted by name."""
        ...

    def walk(
        self,
        path: str,
        enter: Callable[[str], bool],
        *,
        skip: Collection[str] = (),
        permits: Permits = permit_all,
    ) -> Iterator[Folder]:
        """A folder and those below it, each before what is in it, by name; links are not entered.

        Folders whose name is in `skip` are listed and not entered, as are those for which `enter`, given the path as
        shown after the folder above was taken, says no. Folders that cannot be read are left out.
        """
        ...

    # Changing.

    def locked(self) -> AbstractContextManager[object]:
        """Held while a tool reads, changes and writes, so that no other call of this process comes in between."""
        ...

    def apply(self, changes: Sequence[Change], permits: Permits = permit_all) -> tuple[bool, ...]:
        """Makes all of the changes or none; for each, whether there is a file now where none was.

        Versions and permits are looked at before anything is changed. A path may be named once. Folders on the way
        are made, the mode and owner of a file stay. ToolError says why nothing was changed.
        """
        ...

    # Commands.

    def command_backend(self) -> Backend | None:
        """The backend where commands run: this one, or the default one of several. None where no command runs."""
        ...
