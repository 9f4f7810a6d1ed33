"""Checks, before the command starts, that bwrap mounted what it was told to.

bwrap is given names, and follows links in them. Another command that runs in the same workspace may put a link into the
place of a folder between the moment in which we looked and the one in which bwrap mounts: any folder of the user would
be mounted for the command, to read and to write. So the last thing that bwrap makes is read from a full
pipe of ours, at which it waits. What is mounted by then is compared with what lies at these names in the mounts of this
process, where no link is followed.
Loaded by `launcher`: it imports nothing of ours.
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PAGE = 4096  # bytes of a pipe, which it has room for again only when all of them were read
STUCK = 10.0
PIPE = "\x00"  # stands for the descriptor of the pipe among the words of a command line
NEW_ROOT = "/newroot"  # where bwrap builds the file system of a command
KINDS = ("tmpfs", "proc", "devpts", "mqueue")  # of file systems that are made anew for a command
# Where it makes some that it is not told of.
OF_BWRAP = (
    "/", "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/proc", "/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
    "/proc/bus",
)  # fmt: skip
CHANGED = "a folder was replaced while the command was being started; run it again"

Mount = tuple[str, str]  # a file system, and the folder in it that is mounted


def full_pipe() -> tuple[int, int]:
    """A pipe with one page of room, which is taken. Its reading end is for bwrap."""
    import fcntl  # Windows has none, and imports this module

    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PAGE)
    os.write(writer, b" " * PAGE)
    return reader, writer


def is_mounted_as_told(
    bwrap: int, pipe: tuple[int, int], mounts: Mapping[str, str], descendants: Callable[[int], list[int]]
) -> bool:
    """Waits until bwrap has read from the pipe, and says whether it may go on; closes the pipe.

    `mounts` are {mount point: what is to be mounted there, or "" for an empty file system or given bytes}.
    `descendants` gives the processes below one.
    """
    reader, writer = pipe
    os.close(reader)
    try:
        poll = select.poll()
        poll.register(writer, select.POLLOUT)
        events = poll.poll(STUCK * 1000)
        if events and events[0][1] & (select.POLLERR | select.POLLHUP):
            return True  # bwrap has ended, and says why
        inner = next(iter(descendants(bwrap)), None) if events else None
        return inner is not None and not any(_wrong(inner, mounts))
    finally:
        os.close(writer)


def _wrong(inner: int, mounts: Mapping[str, str]) -> Iterator[str]:
    """The mount points of a process of bwrap at which something else is mounted."""
    own = [(point, mount) for point, mount, _ in _mounts("self")]
    copied, topmost, devices = {*own}, dict(own), {device for _, (device, _) in own}
    for outer_point, mount, kind in _mounts(str(inner)):
        if outer_point != NEW_ROOT and not outer_point.startswith(NEW_ROOT + "/"):
            continue
        point = outer_point[len(NEW_ROOT) :] or "/"
        if (point, mount) in copied:
            continue
        source = mounts.get(point)
        is_new = mount[0] not in devices and kind in KINDS
        if source:
            right = _there(source, topmost) == mount
        elif source is None and is_new:
            right = point in OF_BWRAP
        else:
            right = is_new or (point.startswith("/dev/") and _there(point, topmost) == mount)
        if not right:
            yield point


def _there(path: str, mounts: Mapping[str, Mount]) -> Mount:
    """What lies at a path without links."""
    point = path
    while point not in mounts:
        point = point.rpartition("/")[0] or "/"
    filesystem, folder = mounts[point]
    below = path[len(point.rstrip("/")) :]
    return filesystem, (folder.rstrip("/") + below) or "/"


def _mounts(process: str) -> Iterator[tuple[str, Mount, str]]:
    """The mounts of a process: where, what, and of which kind. Later ones cover earlier ones."""
    with open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields, _, filesystem = line.partition(" - ")
            _, _, device, folder, point, _ = fields.split(" ", 5)
            yield _plain(point), (device, _plain(folder)), filesystem.partition(" ")[0]


def _plain(path: str) -> str:
    if "\\" not in path:
        return path
    for escaped, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(escaped, char)
    return path
