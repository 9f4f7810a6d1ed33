"""The application's end of the warm launcher, by which a command line of the launcher starts in a millisecond.

A process has at most one, started with its first command and shared by all its threads and loops. `serve` says what
keeps it apart from the application and from the commands. What a process hands down to its children besides what a
request contains (user and groups, rights, limits, namespaces, mask of signals, …) comes to a command from the launcher.
So a launcher is given up when this process is not what it was at the launcher's start, for example because it gave up
rights. One change cannot be seen: a process that confines itself by Landlock without setting `no_new_privs` then.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolcrib.command.sandbox.environment import LOCALE
from toolcrib.command.sandbox.process.instructions import instructions_in, launcher_argv, own_pidfd

if TYPE_CHECKING:
    import asyncio
    import subprocess

MAX_DESCRIPTORS = 64 - 6  # of a request, beside the request itself
STUCK = 10.0  # seconds for an answer, after which the launcher is ended
NUMBER = 4  # bytes
# What a process hands down, as far as /proc tells it.
STATUS = (
    b"Umask", b"Uid", b"Gid", b"Groups", b"SigBlk", b"SigIgn", b"CapInh", b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb",
    b"NoNewPrivs", b"Seccomp", b"Seccomp_filters", b"Cpus_allowed", b"Mems_allowed",
)  # fmt: skip
FILES = ("limits", "cgroup", "oom_score_adj", "attr/current")
LINKS = (
    "root", "ns/mnt", "ns/net", "ns/user", "ns/pid_for_children", "ns/uts", "ns/ipc", "ns/cgroup",
    "ns/time_for_children",
)  # fmt: skip


class WarmProcess:
    """A process that the warm launcher started. Of `asyncio.subprocess.Process`, it has what commands need."""

    def __init__(self, answers: int) -> None:
        import asyncio

        self.pid = 0
        self.returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._answers = open(answers, "rb", buffering=0)  # noqa: SIM115 - until the process ends
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._started: asyncio.Future[bool] = self._loop.create_future()
        self._loop.add_reader(answers, self._read)

    async def started(self) -> bool:
        """Waits until the process is known; False if nothing was started."""
        return await self._started

    async def wait(self) -> int:
        import asyncio

        if self.returncode is None:
            await asyncio.shield(self._ended)
        assert self.returncode is not None
        return self.returncode

    def _read(self) -> None:
        answer = self._answers.read(NUMBER) or b""
        number = int.from_bytes(answer, sys.byteorder, signed=True)
        if not self._started.done() and number > 0:
            self.pid = number
            self._started.set_result(True)
            return
        self._loop.remove_reader(self._answers.fileno())
        self._answers.close()
        if not self._started.done():
            self._started.set_result(False)
        else:
            # Without an answer the launcher was killed, and its commands end with it.
            self.returncode = number if answer else -9
            self._ended.set_result(None)


class _Launcher:
    """A running launcher, and what this process was when the launcher was started."""

    def __init__(self, application: int, inherited: list[bytes | str]) -> None:
        import socket
        import subprocess

        self.inherited = inherited
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        numbers = (theirs.fileno(), application)
        env = {name: os.environ[name] for name in os.environ if name == "LANG" or LOCALE.fullmatch(name)}
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                launcher_argv("serve", *map(str, numbers)),
                pass_fds=numbers,
                env=env,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            self.channel.close()
            raise
        finally:
            theirs.close()

    def send(self, descriptors: list[int]) -> bool:
        """Sends a request; False if the launcher has ended. Raises BlockingIOError if it has too much to do."""
        import socket

        try:
            socket.send_fds(self.channel, [b"r"], descriptors, socket.MSG_DONTWAIT)
        except (BrokenPipeError, ConnectionError):
            return False
        return True

    def retire(self) -> None:
        """Closes the channel: the launcher ends after its last command."""
        self.channel.close()
        RETIRED.append(self.process)


_lock = threading.Lock()
RETIRED: list[subprocess.Popen[bytes]] = []
_current: list[_Launcher] = []  # one or none


async def start_warm(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    pass_fds: Sequence[int],
) -> WarmProcess | None:
    """Starts a command line of the launcher; None if it is another one, or if no warm launcher can start it.

    Raises OSError if the folder cannot be entered.
    """
    import asyncio

    if sys.platform != "linux" or (instructions := instructions_in(argv)) is None:
        return None
    if min(pass_fds) <= 2 or len(pass_fds) > MAX_DESCRIPTORS or not all(map(_is_file_or_null, streams)):
        return None
    wanted = {"env": dict(env), "instructions": instructions, "descriptors": list(pass_fds)}
    answers = _request(marshal.dumps(wanted), cwd, streams, pass_fds)
    if answers is None:
        return None
    process = WarmProcess(answers)
    try:
        async with asyncio.timeout(STUCK):
            started = await process.started()
    except TimeoutError:
        _end()
        raise OSError("the launcher of commands does not answer") from None
    return process if started else None


def _is_file_or_null(stream: int) -> bool:
    from subprocess import DEVNULL

    return stream >= 0 or stream == DEVNULL


def _request(wanted: bytes, cwd: str, streams: tuple[int, int, int], pass_fds: Sequence[int]) -> int | None:
    """Sends a request; returns the descriptor on which the answers come."""
    ours: list[int] = []
    answers, theirs = os.pipe()
    try:
        ours.append(theirs)
        ours.append(os.open(os.path.join(cwd, "."), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        ours.append(os.memfd_create("toolcrib", os.MFD_CLOEXEC))
        os.write(ours[-1], wanted)
        os.lseek(ours[-1], 0, os.SEEK_SET)
        ours.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
        given = [ours[-1] if stream < 0 else stream for stream in streams]
        if _sent([ours[2], ours[0], ours[1], *given, *pass_fds]):
            sent, answers = answers, -1
            return sent
        return None
    finally:
        for fd in (*ours, answers):
            if fd >= 0:
                os.close(fd)


def _sent(descriptors: list[int]) -> bool:
    """Sends a request to the launcher of this process, and starts one where there is none."""
    try:
        inherited = _inherited()
    except OSError:
        return False  # no /proc: what the launcher would hand down cannot be compared
    with _lock:
        RETIRED[:] = [process for process in RETIRED if process.poll() is None]
        for launcher in _current:
            try:
                if launcher.inherited == inherited and launcher.send(descriptors):
                    return True
            except OSError:
                return False  # it has too much to do
            launcher.retire()
        _current.clear()
        application = own_pidfd()
        if application is None:
            return False
        try:
            _current.append(_Launcher(application, inherited))
            return _current[0].send(descriptors)
        finally:
            os.close(application)


def _inherited() -> list[bytes | str]:
    """What a command gets from the process that starts it, other than what a request contains. Raises OSError."""
    of_thread = "/proc/thread-self"
    with open(f"{of_thread}/status", "rb", buffering=0) as file:
        lines = file.read().split(b"\n")
    found: list[bytes | str] = [line for line in lines if line.partition(b":")[0] in STATUS]
    for name in FILES:
        try:
            with open(f"{of_thread}/{name}", "rb", buffering=0) as file:
                found.append(file.read())
        except OSError:
            found.append("")
    for name in LINKS:
        try:
            found.append(os.readlink(f"{of_thread}/{name}"))
        except OSError:
            found.append("")
    return found


def _end() -> None:
    """Kills the launcher, and with it the commands that it started."""
    with _lock:
        for launcher in _current:
            launcher.process.kill()
            launcher.retire()
        _current.clear()


def _forget() -> None:
    """Closes this process's end; at exit, and in a fork, which is another application."""
    global _lock
    _lock = threading.Lock()
    for launcher in _current:
        launcher.channel.close()
        RETIRED.append(launcher.process)
    for process in RETIRED:
        process.returncode = 0  # nobody waits for it: it ends by itself, and is not a fork's child
    RETIRED.clear()
    _current.clear()


if sys.platform == "linux":
    os.register_at_fork(after_in_child=_forget)
    atexit.register(_forget)
