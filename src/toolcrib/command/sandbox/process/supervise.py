"""Supervises one command so that none of its processes outlives it or the application, without a process namespace.

The supervisor adopts processes whose parent has ended (PR_SET_CHILD_SUBREAPER), so no daemon can escape, and ends all
of them with the command. It is a process of its own, so it waits for no children but the command's. Loaded by
`launcher`: it imports nothing of ours but `kernel`.

The application may be killed at any moment, also while the command is being started. So the supervisor first asks for a
signal at the end of its parent, and then looks whether the application still runs: if it ended before, no signal comes.
What the supervisor starts may be in any state by then (bwrap asks for its own signal late), and is looked up as
descendants.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # pyright: ignore[reportMissingImports] # see kernel
import os
import select
import time

from toolcrib.command.sandbox.process import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TICK = 0.25  # seconds between looks at the memory
GRACE = 0.2  # seconds between asking to end and ending
LEAVING = 0.01  # seconds in which what is left of a command that has ended may end by itself
LOOK_AGAIN = 0.001
STUCK = 5.0
ASKED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
OVER_A_LIMIT = 137
NOT_STARTED = 125


def supervise(
    become: Callable[[], None],
    *,
    application: int | None = None,
    memory: int | None = None,
    processes: int | None = None,
    spare_detached: bool = False,
    mounted: tuple[int, int] | None = None,
    mounts: Mapping[str, str] | None = None,
) -> int:
    """Forks, lets the child `become` the command, waits for it, and ends all processes that are left.

    Returns the exit code, negative for a signal. `application` is the pidfd of the process with which everything ends.
    `memory` limits all processes together, in bytes, and `processes` limits their number; both are checked a few times
    a second. With `spare_detached`, what the command leaves running is left to whoever started the supervisor. What is
    mounted for the command has to be `mounts`, if bwrap waits at a pipe, `mounted`.
    """
    supervisor = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *ASKED})
    kernel.prctl(kernel.SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.SET_PDEATHSIG, signal.SIGTERM)
    if has_ended(application):
        return -int(signal.SIGTERM)
    child = os.fork()
    if child == 0:
        if not spare_detached:
            # Its own session, so that killing "my process group" does not meet the supervisor.
            os.setsid()
        kernel.prctl(kernel.SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(OVER_A_LIMIT)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        become()
    if mounted is not None and (problem := _checked(child, mounted, mounts or {})):
        os.write(2, f"toolcrib: the sandbox could not be set up: {problem}\n".encode())
        return NOT_STARTED
    code: int | None = None
    by_itself = False
    deadline = 0.0
    while code is None:
        got = signal.sigtimedwait({signal.SIGCHLD, *ASKED}, TICK)
        code = _reap(child)
        by_itself = code is not None
        if has_ended(application):
            spare_detached = False
            break
        if got is not None and got.si_signo in ASKED and code is None:
            if spare_detached:  # whoever started the supervisor ends the rest, after a time of their own
                _signal([child], got.si_signo)
            else:
                deadline = deadline or time.monotonic() + GRACE
                _signal(descendants(supervisor), signal.SIGTERM)
        if code is None and deadline and time.monotonic() >= deadline:
            break
        if code is None and (memory is not None or processes is not None):
            found = descendants(supervisor)
            if processes is not None and len(found) > processes:
                os.write(2, b"toolcrib: the command was ended because it ran too many processes\n")
                code = OVER_A_LIMIT
            elif memory is not None and memory_used(found) > memory:
                os.write(
                    2,
                    b"toolcrib: the command was ended because its processes used too much memory together\n",
                )
                code = OVER_A_LIMIT
    if not spare_detached:
        sweep(LEAVING if by_itself else 0.0)
    return -signal.SIGTERM if code is None else code


def _checked(bwrap: int, pipe: tuple[int, int], mounts: Mapping[str, str]) -> str:
    """Lets bwrap start the command if it mounted what it was told to; else ends it, and returns why."""
    from toolcrib.command.sandbox.process.mounted import why_not_as_told

    problem: str | None = None
    try:
        problem = why_not_as_told(bwrap, pipe, mounts, children_of)
        return problem
    finally:
        if problem != "":
            sweep()  # while bwrap still waits at the pipe
        os.close(pipe[1])


def has_ended(application: int | None) -> bool:
    """Whether the process of a pidfd has ended; False without one."""
    if application is None:
        return False
    poll = select.poll()
    poll.register(application, select.POLLIN)
    return bool(poll.poll(0))


def sweep(grace: float = 0.0) -> None:
    """Ends every descendant, again and again, because a process may start another one while it is being ended.

    Within `grace` seconds a process may end by itself, as bwrap's own does with its command: to look for descendants
    reads a file of each process of the machine.
    """
    deadline = time.monotonic() + STUCK
    if grace and _any_left():
        signal.sigtimedwait({signal.SIGCHLD}, grace)
    while _any_left() and time.monotonic() < deadline:
        _signal(descendants(os.getpid()), signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_AGAIN)


def _any_left() -> bool:
    """Reaps the children that have ended; returns whether any child has not."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
        except ChildProcessError:
            return False


def descendants(root: int) -> list[int]:
    """All processes below a process, without zombies."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := _state(int(name))) is not None:
            below.setdefault(found[1], []).append(int(name))
    todo, found_all = [root], []
    while todo:
        for pid in below.get(todo.pop(), ()):
            found_all.append(pid)
            todo.append(pid)
    return found_all


def children_of(pid: int) -> list[int]:
    """The children of a process with one thread."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(child) for child in file.read().split()]
    except OSError:  # a kernel without that file
        return descendants(pid)


def memory_used(pids: list[int]) -> int:
    """Bytes of memory that processes hold; shared memory is left out."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                size = file.read().split()
            total += (int(size[1]) - int(size[2])) * PAGE
        except (OSError, IndexError):
            continue
    return total


PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _state(pid: int) -> tuple[bytes, int] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else (state, int(parent))


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _reap(child: int) -> int | None:
    """The child's exit code, if it has ended; also reaps whatever else has ended."""
    code: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
