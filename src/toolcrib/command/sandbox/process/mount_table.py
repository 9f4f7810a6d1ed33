"""The mounts of a process, as the kernel lists them.

Names are bytes: a file system may have any, and the kernel escapes only some characters.
Loaded by `launcher`: it imports nothing of ours.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Place = tuple[bytes, bytes]  # a file system, and a folder in it


class Mount:
    """What (`place`) is mounted where (`point`) in which other mount (`around`); its file system's kind and options."""

    __slots__ = ("around", "id", "kind", "options", "place", "point")

    def __init__(self, line: bytes) -> None:
        before, _, after = line.partition(b" - ")
        self.id, self.around, device, folder, point = before.split(b" ", 5)[:5]
        self.kind, _, self.options = after.split(b" ", 2)
        self.point = _plain(point)
        self.place: Place = (device, _plain(folder))


def mounts_of_process(process: int | str = "self", below: bytes = b"") -> list[Mount]:
    """The mounts of a process; of those outside of a folder `below` some may be left out.

    Raises OSError or ValueError if they cannot be read.
    """
    point = b" " + below
    with open(f"/proc/{process}/mountinfo", "rb") as file:
        return [Mount(line.rstrip(b"\n")) for line in file if point in line]


class PathsInMounts:
    """What lies at paths without links.

    Which of several mounts covers the others is known from the mount that each lies in, not from their order.
    """

    def __init__(self, mounts: Iterable[Mount]) -> None:
        self._mounted = {(mount.around, mount.point): mount for mount in mounts}
        known = {mount.id for mount in self._mounted.values()}
        self._at: dict[bytes, Mount] = {}  # the mount at each path that was looked up
        for mount in self._mounted.values():
            if mount.point == b"/" and mount.around not in known:
                self._at[b""] = self._topmost(mount, b"/")

    def at(self, path: bytes) -> Place | None:
        """What lies at an absolute path; None in a root folder that is no mount."""
        if not self._at:
            return None
        above = path.rstrip(b"/")
        todo: list[bytes] = []
        while above not in self._at:
            todo.append(above)
            above = above.rpartition(b"/")[0]
        mount = self._at[above]
        for point in reversed(todo):
            mount = self._at[point] = self._topmost(mount, point)
        filesystem, folder = mount.place
        below = path[len(mount.point.rstrip(b"/")) :]
        return filesystem, (folder.rstrip(b"/") + below) or b"/"

    def _topmost(self, mount: Mount, point: bytes) -> Mount:
        while (mount.id, point) in self._mounted:
            mount = self._mounted[mount.id, point]
        return mount


def _plain(path: bytes) -> bytes:
    if b"\\" not in path:
        return path
    for escaped, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        path = path.replace(escaped, char)
    return path
