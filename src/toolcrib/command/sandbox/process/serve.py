"""A warm launcher: started once by an application, it forks for each command, so no interpreter has to start again.

It was executed, and not forked from the application, so it has nothing of the application's memory. It never reads a
request: its fork does, so nothing of one command (its environment may hold secrets) is in the memory of the next. It
holds no descriptor of a command but the one for its answers, and a fork keeps no descriptor but those of its command.
Loaded by `start`: it imports nothing of ours but `launcher` and what that needs.

A request is a message with descriptors: `REQUEST`, then those named in the request. The answer is two numbers, each
when it is known: the process id of the fork, or -1 if nothing was started; its exit code, negative for a signal.
The launcher ends with the application. When the application only closes the channel, it ends after its last command.
"""

from __future__ import annotations

import _socket
import marshal
import os
import select
import struct

from toolcrib.command.sandbox.process import kernel
from toolcrib.command.sandbox.process.launcher import FAILED, fail, main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MAX_DESCRIPTORS = 64  # of one request
MAX_DESCRIPTOR = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 1024
MAX_RUNNING = min(256, MAX_DESCRIPTOR // 4)  # commands; each needs two descriptors
NOT_STARTED = -1
REQUEST = ("request", "answer", "folder", "stdin", "stdout", "stderr")
NUMBER = "=i"


def serve(requests: int, application: int) -> NoReturn:
    """Answers requests until the process of the pidfd `application` ends."""
    import resource  # noqa: F401  # pyright: ignore[reportUnusedImport] - both for the forks, which then need not load them

    import toolcrib.command.sandbox.process.mounted  # pyright: ignore[reportUnusedImport]
    import toolcrib.command.sandbox.process.supervise  # noqa: F401  # pyright: ignore[reportUnusedImport]

    kernel.hide_own_process()
    channel = _socket.socket(fileno=requests)
    poll = select.poll()
    poll.register(application, select.POLLIN)
    poll.register(requests, select.POLLIN)
    running: dict[int, tuple[int, int]] = {}  # {pidfd: process id, descriptor for answers}
    accepts = True
    while accepts or running:
        ready = [fd for fd, _ in poll.poll()]
        if application in ready:
            break  # its commands end too: each has a supervisor, which is sent a signal when this process ends
        for fd in ready:
            if fd in running:
                poll.unregister(fd)
                _report_end(fd, *running.pop(fd))
            elif (given := _received(channel)) is None:
                poll.unregister(requests)
                accepts = False
            elif (started := _start(given, busy=len(running) >= MAX_RUNNING)) is not None:
                running[started[0]] = started[1:]
                poll.register(started[0], select.POLLIN)
    os._exit(0)


def _received(channel: _socket.socket) -> list[int] | None:
    """The descriptors of the next request; None when there will be no more."""
    room = _socket.CMSG_SPACE(MAX_DESCRIPTORS * struct.calcsize(NUMBER))
    message, ancillary, _, _ = channel.recvmsg(1, room, _socket.MSG_CMSG_CLOEXEC)
    if not message:
        return None
    data = b"".join(part for _, _, part in ancillary)
    return [fd for (fd,) in struct.iter_unpack(NUMBER, data[: len(data) - len(data) % 4])]


def _start(given: list[int], *, busy: bool) -> tuple[int, int, int] | None:
    """Forks for a request; returns the pidfd, the process id and the descriptor for answers of the fork."""
    answer = given[REQUEST.index("answer")]
    try:
        pid = NOT_STARTED if busy else os.fork()
    except OSError:
        pid = NOT_STARTED
    if pid == NOT_STARTED:
        _answer(answer, NOT_STARTED)
        _close(given)
        return None
    if pid == 0:
        try:
            _become_launcher(given)
        finally:
            os._exit(FAILED)
    _answer(answer, pid)
    _close([fd for fd in given if fd != answer])
    return os.pidfd_open(pid), pid, answer


def _report_end(pidfd: int, pid: int, answer: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    _answer(answer, code)
    _close([pidfd, answer])


def _become_launcher(given: list[int]) -> None:
    """Turns a fork into what a launcher of its own would be: its session, folder, environment and descriptors."""
    request, _, folder, *rest = given
    with open(request, "rb", closefd=False) as file:
        wanted = marshal.loads(file.read())
    os.setsid()
    problem: OSError | None = None
    try:
        os.fchdir(folder)
    except OSError as raised:
        problem = raised
    try:
        _place(rest, [0, 1, 2, *wanted["descriptors"]])
    except OSError as failed:
        os.write(rest[2], f"toolcrib: the command cannot be started: {failed.strerror}\n".encode())
        os._exit(FAILED)
    if problem is not None:
        fail(f"the folder of the command cannot be entered: {problem.strerror}")
    os.environ.clear()
    os.environ.update(wanted["env"])
    main(wanted["instructions"])


def _place(given: list[int], numbers: list[int]) -> None:
    """Gives descriptors these numbers, and closes all others."""
    wanted = {*numbers}
    out_of_the_way: list[int] = []
    for fd in given:
        # The lowest free number: one above all others can lie beyond the limit.
        while fd in wanted:
            fd = os.dup(fd)
        out_of_the_way.append(fd)
    for fd, number in zip(out_of_the_way, numbers, strict=True):
        os.dup2(fd, number)
    kept = sorted(numbers)
    for number, following in zip(kept, [*kept[1:], MAX_DESCRIPTOR], strict=True):
        if number + 1 < following:
            os.closerange(number + 1, following)


def _answer(fd: int, number: int) -> None:
    try:
        os.write(fd, struct.pack(NUMBER, number))
    except OSError:
        pass  # nobody waits for it any more


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
