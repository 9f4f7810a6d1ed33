"""Files that are reached only by running commands: in a container, in a virtual machine, on another host.

The other side needs a POSIX `sh`, `find`, `stat -c`, `readlink -f`, `head -c`, `sha256sum`: Linux with coreutils or
busybox. What runs there bounds what a script can reach; names are still resolved first, and decided on as resolved.
"""

from __future__ import annotations

import asyncio
import io
import posixpath
import stat
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from shlex import quote
from typing import TYPE_CHECKING, BinaryIO

from toolcrib.access import Access, Reach
from toolcrib.command.judge.paths import may_hold_secrets
from toolcrib.errors import ToolError
from toolcrib.tools.backends import refusals
from toolcrib.tools.backends.flat import FlatPath, walk_tree
from toolcrib.tools.backends.own_loop import OwnLoop
from toolcrib.tools.backends.protocol import (
    Change,
    CommandOutput,
    DirectoryEntry,
    FileStatus,
    Folder,
    Kind,
    Permits,
    permit_all,
)
from toolcrib.tools.backends.scripted_changes import REFUSED, FoundPath, ScriptedChanges
from toolcrib.tools.seen_versions import SeenVersions
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.question import Doubt

Run = Callable[[str, bytes], Awaitable[tuple[int, bytes, bytes]]]

TIMEOUT = 60.0  # seconds of one command for a file
CHUNK = 1_000_000  # bytes of a file that one command reads
MAX_LISTED = 50_000_000  # bytes of one listing
OUT, ROUND, PART_IS_FILE = 81, 82, 84  # exit codes of our scripts

# Resolves a path: folders to their real path, a link to its target. Names that do not exist stay as written.
RESOLVE = r"""
top=$(pwd -P && printf x) && top=${top%?x} || exit 1
lead() {
  d=$1; rest=
  while [ ! -e "$d" ] && [ ! -L "$d" ]; do
    case $d in */*) rest="/${d##*/}$rest"; d=${d%/*};; *) rest="/$d$rest"; d=.;; esac
  done
  [ -d "$d" ] || [ -z "$rest" ] || exit 84
  if [ -d "$d" ]; then p=$(cd -P -- "$d" && pwd -P && printf x) || exit 1; p=${p%?x}
  elif [ -L "$d" ]; then p=$(readlink -f -- "$d" && printf x) || exit 82; p=${p%?x}
  else
    case $d in */*) a=${d%/*};; *) a=.;; esac
    p=$(cd -P -- "$a" && pwd -P && printf x) || exit 1; p=${p%?x}; p=${p%/}/${d##*/}
  fi
  [ "$top" != / ] || top=
  case $p$rest in "$top") p=.; r=.;; "$top"/*) p=$p$rest; r=${p#"$top"/};; *) exit 81;; esac
}
"""
STATUS = "stat -c '%f %s %Y %d:%i' --"
LISTED = "-exec stat -c '%f %s %Y %n//' -- {} +"  # no path of `find` has two slashes


class CommandBackend:
    """Files below a folder that only commands reach.

    `run(command, stdin)` runs a command line for `sh` where the files are and gives its exit code, what it printed
    and its errors, as bytes; it is awaited on an event loop of this backend's own. `root` is the folder as commands
    name it, from where they start. Each operation takes one or two commands.

    A change set is one script: it compares versions, then renames. If it is killed in the middle, the next change
    set finishes it first, from the script that it left.
    """

    read_only: str | None = None

    def __init__(self, run: Run, root: str = ".") -> None:
        self._run = run
        self._root = root
        self._lock = threading.RLock()
        self.seen = SeenVersions()
        self._loop = OwnLoop()

    def __repr__(self) -> str:
        return f"CommandBackend(root={self._root!r})"

    async def run_command(self, command: str, stdin: bytes = b"") -> CommandOutput:
        """Runs a short script for `sh` to its end."""

        async def work() -> tuple[int, bytes, bytes]:
            return await self._run(command, stdin)

        return CommandOutput(*await self._loop.awaited(work()))

    def folder_of_commands(self, path: str) -> str:
        """A folder as scripts name it."""
        return posixpath.join(self._root, self.place(path).shown)

    def command_backend(self) -> CommandBackend:
        return self

    def script(self, script: str, stdin: bytes = b"") -> CommandOutput:
        """Runs a script in the root, from whatever thread this is."""
        command = f"LC_ALL=C; export LC_ALL\ncd -- {quote(self._root)} || exit 80\n{script}"

        async def work() -> tuple[int, bytes, bytes]:
            return await asyncio.wait_for(self._run(command, stdin), TIMEOUT)

        try:
            return CommandOutput(*self._loop.run(work()))
        except TimeoutError:
            raise ToolError(f"The files did not answer within {counted(round(TIMEOUT), 'second')}.") from None
        except OSError as problem:
            raise ToolError(f"The files cannot be reached now: {problem.strerror or problem}.") from problem

    def checked(self, shown: str, output: CommandOutput) -> CommandOutput:
        if output.code == 0:
            return output
        if output.code == OUT:
            raise ToolError(
                f"{shown} leads outside the workspace through a symlink. Only files inside it can be used."
            )
        if output.code == ROUND:
            raise ToolError(f"{shown}: its symlinks lead round in a circle or through too many links.")
        if output.code == PART_IS_FILE:
            raise refusals.part_is_file(shown)
        said = output.stderr.decode("utf-8", "replace").strip()
        if output.code == REFUSED:
            raise ToolError(said)
        raise ToolError(
            f"{shown} cannot be used: {said.splitlines()[-1] if said else f'exit code {output.code}'}."
        )

    # Paths.

    def place(self, path: str) -> FlatPath:
        refusals.check_text(path)
        normal = posixpath.normpath(path)
        if path.startswith("/"):
            top = posixpath.normpath(self._root)
            if not (top.startswith("/") and (normal == top or normal.startswith(top.rstrip("/") + "/"))):
                raise refusals.outside(path)
            normal = posixpath.relpath(normal, top)
        if normal == ".." or normal.startswith("../") or path == "~" or path.startswith("~/"):
            raise refusals.outside(path)
        return FlatPath(normal)

    def resource(self, path: str) -> str:
        try:
            return self.place(path).shown
        except ToolError:
            return path

    def accesses_to(
        self, reach: Reach, path: str, *, subtree: bool = False, pattern: str = "", contents: bool = False
    ) -> tuple[Access, ...]:
        """The name only: where links lead is asked of `permits` when the path is used."""
        target = self.resource(path)
        secret = contents and may_hold_secrets(target)
        return (Access(reach, target, subtree=subtree, pattern=pattern, filtered=subtree, secret=secret),)

    def leads_to(self, path: str) -> str | None:
        try:
            return self.find(path).real
        except ToolError:
            return None

    def doubt(self, accesses: Iterable[Access]) -> Doubt | None:
        return None  # no program of this machine obeys what stands there

    def find(self, path: str) -> FoundPath:
        shown = self.place(path).shown
        script = (
            f"{RESOLVE}lead {quote('./' + shown)}\n"
            'a=./$r; [ -d "${a%/*}" ] && b=y || b=n\n'
            'printf \'%s%s\\n//\' "$b" "$r"\n'
            f'if [ -e "./$r" ]; then {STATUS} "./$r"; fi'
        )
        text = self.checked(shown, self.script(script)).stdout.decode("utf-8", "surrogateescape")
        real, _, line = text.partition("\n//")
        has_folder, real = real[0] == "y", posixpath.normpath(real[1:])
        if not line.strip():
            return FoundPath(shown, real, None, has_folder)
        mode, size, modified, identity = line.split()
        return FoundPath(shown, real, FileStatus(_kind(mode), int(size), int(modified) * 10**9, identity))

    # Reading.

    def _file(self, path: str, permits: Permits) -> FoundPath:
        found = self.find(path)
        if not permits(Access(Reach.READ, found.real)):
            raise refusals.not_permitted(found.shown)
        if found.status is None:
            raise self.missing(found, permits)
        if found.status.kind == "folder":
            raise refusals.is_folder(found.shown)
        if found.status.kind != "file":
            raise ToolError(f"{found.shown} is not a regular file (a pipe, socket or device).")
        return found

    def missing(self, found: FoundPath, permits: Permits, wanted: str = "file") -> ToolError:
        parent = posixpath.dirname(found.real) or "."
        try:
            permitted = refusals.for_suggestions(permits)
            names = [entry.name for entry in self.entries(parent, permitted)] if found.has_folder else None
        except ToolError:
            names = []
        return refusals.not_there(found.shown, names, permits, wanted)

    def read(self, path: str, limit: int, permits: Permits = permit_all) -> bytes:
        found = self._file(path, permits)
        assert found.status is not None
        if found.status.size > limit:
            raise refusals.too_large(found.shown, limit)
        data = self._part(found, 0, limit + 1)
        if len(data) > limit:
            raise refusals.too_large(found.shown, limit)
        return data

    def _part(self, found: FoundPath, start: int, count: int) -> bytes:
        """Bytes of a file, if its name still leads where it led."""
        path = quote("./" + found.real)
        script = (
            f'{RESOLVE}lead {path}\n[ "$r" = {quote(found.real)} ] || exit 1\n'
            f"tail -c +{start + 1} -- {path} | head -c {count}"
        )
        if start == 0:
            script = script.replace(f"tail -c +1 -- {path} | head -c {count}", f"head -c {count} -- {path}")
        return self.checked(found.shown, self.script(script)).stdout

    def open_file(self, path: str, permits: Permits = permit_all) -> tuple[BinaryIO, FileStatus]:
        found = self._file(path, permits)
        assert found.status is not None
        file = _RemoteFile(lambda start, count: self._part(found, start, count), found.status.size)
        return io.BufferedReader(file, CHUNK), found.status

    def stat(self, path: str, permits: Permits = permit_all) -> FileStatus | None:
        try:
            found = self.find(path)
        except ToolError:
            return None
        folder = found.status is not None and found.status.kind == "folder"
        return found.status if permits(Access(Reach.READ, found.real, subtree=folder)) else None

    def _folder(self, path: str, permits: Permits) -> FoundPath:
        found = self.find(path)
        if not permits(Access(Reach.READ, found.real, subtree=True)):
            raise refusals.not_permitted(found.shown)
        if found.status is None:
            raise self.missing(found, permits, "folder")
        if found.status.kind != "folder":
            raise refusals.not_a_folder(found.shown)
        return found

    def entries(self, path: str, permits: Permits = permit_all) -> list[DirectoryEntry]:
        found = self._folder(path, permits)
        return self._listing(found, "-maxdepth 1", ()).get(found.shown, [])

    def walk(
        self,
        path: str,
        enter: Callable[[str], bool],
        *,
        skip: Collection[str] = (),
        permits: Permits = permit_all,
    ) -> Iterator[Folder]:
        found = self._folder(path, permits)
        return walk_tree(found.shown, self._listing(found, "", skip), enter, skip)

    def _listing(
        self, found: FoundPath, depth: str, skip: Collection[str]
    ) -> dict[str, list[DirectoryEntry]]:
        names = " -o ".join(f"-name {quote(name)}" for name in sorted(skip))
        prune = f"-type d \\( {names} \\) -prune" if names else ""
        script = (
            f"cd -P -- {quote('./' + found.real)} || exit 1\n"
            f"find . {depth} -mindepth 1 {LISTED} {prune} 2>/dev/null | head -c {MAX_LISTED}"
        )
        text = self.checked(found.shown, self.script(script)).stdout.decode("utf-8", "surrogateescape")
        folders: dict[str, list[DirectoryEntry]] = {found.shown: []}
        for record in text.split("//\n")[:-1]:
            mode, size, modified, path = record.split(" ", 3)
            parent, name = posixpath.split(path[2:])
            where = found.shown if not parent else parent if found.shown == "." else f"{found.shown}/{parent}"
            status = FileStatus(_kind(mode), int(size), int(modified) * 10**9)
            folders.setdefault(where, []).append(DirectoryEntry(name, status.kind, status))
        for entries in folders.values():
            entries.sort(key=lambda entry: entry.name)
        return folders

    # Changing.

    def locked(self) -> AbstractContextManager[object]:
        return self._lock

    def apply(self, changes: Sequence[Change], permits: Permits = permit_all) -> tuple[bool, ...]:
        if self.read_only:
            raise ToolError(f"{self.place(changes[0].path).shown} can only be read.")
        with self._lock:
            return ScriptedChanges(self, permits).make(changes)


def _kind(mode: str) -> Kind:
    bits = int(mode, 16)
    if stat.S_ISREG(bits):
        return "file"
    return "folder" if stat.S_ISDIR(bits) else "link" if stat.S_ISLNK(bits) else "other"


class _RemoteFile(io.RawIOBase):
    """A file that is fetched part by part."""

    def __init__(self, part: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._part = part
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        data = self._part(self._at, min(len(buffer), CHUNK)) if self._at < self._size else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
