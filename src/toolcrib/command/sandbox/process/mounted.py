"""Checks, before the command starts, that bwrap mounted what it was told to.

bwrap is given names, and follows links in them. Another command that runs in the same workspace may put a link into the
place of a folder between the moment in which we looked and the one in which bwrap mounts: any folder of the user would
be mounted for the command, to read and to write. So the last thing that bwrap makes is read from a full
pipe of ours, at which it waits. What is mounted by then is compared with what lies at these names in the mounts of this
process, where no link is followed.
Loaded by `launcher`: it imports nothing of ours but `mount_table`.
"""

from __future__ import annotations

import os
import select

from toolcrib.command.sandbox.process.mount_table import Mount, PathsInMounts, mounts_of_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PAGE = 4096  # bytes of a pipe, which it has room for again only when all of them were read
STUCK = 60  # seconds. Where thousands of folders are mounted, bwrap needs several
TRIES = 2  # mounts that are made or removed meanwhile come into the sandbox too
PIPE = "\x00"  # stands for the descriptor of the pipe among the words of a command line
NEW_ROOT = b"/newroot"  # where bwrap builds the file system of a command
KINDS = (b"tmpfs", b"proc", b"devpts", b"mqueue")  # of file systems that are made anew for a command
# Where bwrap mounts such file systems without being told to.
OF_BWRAP = (
    b"/", b"/dev", b"/dev/pts", b"/dev/shm", b"/dev/mqueue", b"/proc", b"/proc/sys", b"/proc/sysrq-trigger",
    b"/proc/irq", b"/proc/bus",
)  # fmt: skip
CONSOLE = b"/dev/console"  # where bwrap mounts the terminal that it writes to
CHANGED = "{!r} was replaced while the command was being started; run it again"
SLOW = f"bwrap mounted nothing within {STUCK} seconds; run it again when this machine has less to do"


def full_pipe() -> tuple[int, int]:
    """A pipe with one page of room, which is taken. Its reading end is for bwrap."""
    import fcntl  # Windows has none, and imports this module

    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PAGE)
    os.write(writer, b" " * PAGE)
    return reader, writer


def why_not_as_told(
    bwrap: int, pipe: tuple[int, int], mounts: Mapping[str, str], descendants: Callable[[int], list[int]]
) -> str:
    """Waits until bwrap has read from the pipe; returns why the command must not start, or "" if it may.

    bwrap goes on when the writing end of the pipe is closed, which is left to the caller.
    `mounts` are {mount point: what is to be mounted there, or "" for an empty file system or given bytes}.
    `descendants` gives the processes below one.
    """
    reader, writer = pipe
    os.close(reader)
    told = {os.fsencode(point): os.fsencode(source) for point, source in mounts.items()}
    try:
        expected = _Expected(told)  # while bwrap is at work
        poll = select.poll()
        poll.register(writer, select.POLLOUT)
        events = poll.poll(STUCK * 1000)
        if not events:
            return SLOW
        if events[0][1] & (select.POLLERR | select.POLLHUP):
            return ""  # bwrap has ended, and says why
        wrong = b"a process of bwrap"
        for inner in descendants(bwrap)[:1] * TRIES:
            wrong = next(expected.wrong(mounts_of_process(inner, NEW_ROOT)), b"")
            if not wrong:
                return ""
            expected = _Expected(told)
    except (OSError, ValueError) as problem:
        return f"the mounts of this machine cannot be read: {problem}"
    return CHANGED.format(os.fsdecode(wrong))


class _Expected:
    """What is to be mounted for a command: what it is told to, where that lies in the mounts of this process."""

    def __init__(self, told: Mapping[bytes, bytes]) -> None:
        own = mounts_of_process()
        self._copied = {(mount.point, mount.place) for mount in own}
        self._devices = {mount.place[0] for mount in own}
        self._paths = PathsInMounts(own)
        self._told = {point: source and self._paths.at(source) for point, source in told.items()}

    def wrong(self, inner: list[Mount]) -> Iterator[bytes]:
        """The mount points of a process of bwrap at which something else is mounted."""
        for mount in inner:
            root, point = mount.point[: len(NEW_ROOT)], mount.point[len(NEW_ROOT) :] or b"/"
            if root != NEW_ROOT or point[:1] != b"/" or (point, mount.place) in self._copied:
                continue
            is_new = mount.place[0] not in self._devices and mount.kind in KINDS
            told = self._told.get(point)
            if told:
                right = told == mount.place
            elif told is None and is_new:
                right = point in OF_BWRAP
            else:
                right = is_new or (
                    point.startswith(b"/dev/") and self._paths.at(_of_dev(point)) == mount.place
                )
            if not right:
                yield point


def _of_dev(point: bytes) -> bytes:
    """What bwrap mounts at a point below the /dev of a command."""
    return os.fsencode(os.ttyname(1)) if point == CONSOLE and os.isatty(1) else point
