"""Control groups: the kernel counts the processes of a command and adds up their memory, also for root.

Where groups can be created differs from machine to machine (which version, what was delegated to whom, what is mounted
read-only). So it is tried once in a process: a small program is put into a group and has to be limited by it. What no
group limits is left to a supervisor, or named as a gap.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from functools import cache

from toolcrib.command.sandbox.interface import Launch
from toolcrib.command.sandbox.lease import lease_new_folder, remove_abandoned
from toolcrib.command.sandbox.level import Limits
from toolcrib.command.sandbox.process.mount_table import mounts_of_process
from toolcrib.dataclass import dataclass

PREFIX = "toolcrib-"
OVERHEAD = 4  # processes of the sandbox itself: bwrap and its first process, a supervisor, a launcher
STUCK = 5.0  # seconds for a group to become empty
TRIAL_SECONDS = 20.0
TRIAL_MEMORY = 16 << 20  # more than an interpreter needs that has just started


@dataclass(frozen=True, slots=True)
class Controller:
    """What a group can limit, in one version of control groups.

    `limit` is the file of the limit and `swap_limit` the file that keeps swap from adding to it. `met` is the file, and
    the name in it, of the count that says whether the limit was met. `words` name the limit for people. A process with
    a single thread joins a group by the file `join`. In version 1 that is the file of threads: to move a process, the
    kernel would wait 5 to 10 ms until no process of the machine forks.
    """

    name: str
    version: int
    limit: str
    swap_limit: str
    met: tuple[str, bytes]
    words: str

    @property
    def join(self) -> str:
        return "tasks" if self.version == 1 else "cgroup.procs"


CONTROLLERS = (
    Controller("pids", 2, "pids.max", "", ("pids.events", b"max"), "the number of processes"),
    Controller("pids", 1, "pids.max", "", ("pids.events", b"max"), "the number of processes"),
    Controller(
        "memory", 2, "memory.max", "memory.swap.max", ("memory.events", b"oom_kill"),
        "the memory of all processes together",
    ),
    Controller(
        "memory", 1, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", ("memory.oom_control", b"oom_kill"),
        "the memory of all processes together",
    ),
)  # fmt: skip
# Joins each group in turn and tries what it limits: to start a second process, to use more memory than it may.
TRIAL = """
import os, sys
for controller, path in zip(sys.argv[2::2], sys.argv[3::2]):
    try:
        with open(path, "w") as file: file.write("0")
    except OSError:
        continue
    print("joined", controller, flush=True)
    if controller == "memory":
        held = bytearray(b"x") * int(sys.argv[1])
        print("more", flush=True)
        continue
    try:
        pid = os.fork()
        if pid == 0: os._exit(0)
        os.waitpid(pid, 0)
    except BlockingIOError:
        print("held", flush=True)
"""


class ControlGroup:
    """The control groups of one command, one in each hierarchy; none where no limit works or is wanted.

    `limited` are the names of the controllers that limit the command: "pids", "memory".
    """

    def __init__(self, wanted: dict[Controller, int]) -> None:
        self.limited = frozenset(controller.name for controller in wanted)
        self.files: list[str] = []
        """The files that a process with a single thread writes "0" into to join the groups."""
        self.folders: dict[str, int] = {}
        self.controllers: list[tuple[Controller, str]] = []
        # Runs also for a launch that nobody closed.
        self._remove = weakref.finalize(self, _end_leases, self.folders)
        made: dict[str, str] = {}
        try:
            for controller, limit in wanted.items():
                place = group_places()[controller]
                if place not in made:
                    made[place], held = lease_new_folder(place, PREFIX)
                    self.folders[made[place]] = held
                    self.files.append(f"{made[place]}/{controller.join}")
                _limit(made[place], controller, limit)
                self.controllers.append((controller, made[place]))
        except OSError:
            self._remove()
            raise

    def close(self, launch: Launch) -> None:
        """Notes which limits were met, ends the processes that are left, and removes the groups."""
        for controller, folder in self.controllers:
            if _number(f"{folder}/{controller.met[0]}", controller.met[1]):
                launch.limits_met.append(controller.words)
        self._remove()


def _end_leases(folders: dict[str, int]) -> None:
    while folders:
        folder, held = folders.popitem()
        end_group(folder)
        os.close(held)


def new_control_group(limits: Limits, launch: Launch) -> ControlGroup:
    """A group with as many of the limits as work on this machine. The launch closes it."""
    wanted: dict[Controller, int] = {}
    for controller in group_places():
        limit = limits.processes if controller.name == "pids" else limits.together
        if limit is not None:
            wanted[controller] = limit + OVERHEAD if controller.name == "pids" else limit
    try:
        group = ControlGroup(wanted)
    except OSError:
        group = ControlGroup({})
    launch.on_close.append(group.close)
    return group


@cache
def working_controllers() -> frozenset[str]:
    """The controllers, of "pids" and "memory", that work on this machine."""
    return frozenset(controller.name for controller in group_places())


def limit_gaps(*, root: bool) -> list[str]:
    """What is not limited on this machine, in words. `root` says that nothing but a group counts processes."""
    missing = [
        *(["the number of processes"] if root and "pids" not in working_controllers() else []),
        *(["the memory of all processes together"] if "memory" not in working_controllers() else []),
    ]
    gaps = ["the workspace can be filled, file by file; only a quota of its file system limits that"]
    if missing:
        words = (
            f"no control group can be made here: {' and '.join(missing)} is only checked a few times a second"
        )
        if "memory" not in working_controllers():
            words += ", and memory that processes share (memfd, /dev/shm) is not counted"
        gaps.append(words)
    return gaps


@cache
def group_places() -> dict[Controller, str]:
    """The folder of each controller in which working groups can be created; tried once in a process."""
    found: dict[Controller, str] = {}
    for controller, place in _candidates():
        if controller.name in {known.name for known in found}:
            continue
        remove_abandoned(place, PREFIX, end_group)
        if _can_be_made(controller, place):
            found[controller] = place
    return _that_limit(found)


def _candidates() -> Iterator[tuple[Controller, str]]:
    """Our own group first, then the outer ones: in version 2 a group with processes contains no limited groups."""
    mounts = list(_mounts())
    for controller in CONTROLLERS:
        own = _own_group(controller)
        for root, mounted, version, controllers in mounts:
            if (
                own is None
                or version != controller.version
                or (version == 1 and controller.name not in controllers)
            ):
                continue
            path = os.path.normpath(mounted + (own[len(root.rstrip("/")) :] if own.startswith(root) else own))
            while path.startswith(mounted):
                if os.path.isdir(path):
                    yield controller, path
                if path == mounted:
                    break
                path = os.path.dirname(path)


def _mounts() -> Iterator[tuple[str, str, int, list[str]]]:
    """The root, mount point, version and controllers of each hierarchy."""
    try:
        mounts = mounts_of_process()
    except (OSError, ValueError):
        return
    for mount in mounts:
        if mount.kind in (b"cgroup", b"cgroup2"):
            root, mounted = map(os.fsdecode, (mount.place[1], mount.point))
            controllers = os.fsdecode(mount.options.rpartition(b" ")[2]).split(",")
            yield root, mounted, 2 if mount.kind == b"cgroup2" else 1, controllers


def _own_group(controller: Controller) -> str | None:
    """The path of the group that this process is in."""
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if (controller.name in controllers.split(",")) if controller.version == 1 else not controllers:
            return path
    return None


def _can_be_made(controller: Controller, place: str) -> bool:
    try:
        folder, held = lease_new_folder(place, PREFIX)
    except OSError:
        return False
    try:
        return os.path.exists(f"{folder}/{controller.limit}")
    finally:
        end_group(folder)
        os.close(held)


def _that_limit(found: dict[Controller, str]) -> dict[Controller, str]:
    """Those whose groups keep a process from starting a second one, and from using more memory."""
    folders: dict[str, int] = {}
    trial: list[str] = []
    try:
        for controller in sorted(
            found, key=lambda one: one.name, reverse=True
        ):  # memory last: it ends the process
            try:
                folder, lease = lease_new_folder(found[controller], PREFIX)
                folders[folder] = lease
                _limit(folder, controller, 1 if controller.name == "pids" else TRIAL_MEMORY)
            except OSError:
                continue
            trial += [controller.name, f"{folder}/{controller.join}"]
        if not trial:
            return {}
        said = subprocess.run(
            [sys.executable, "-I", "-S", "-c", TRIAL, str(2 * TRIAL_MEMORY), *trial],
            capture_output=True, timeout=TRIAL_SECONDS, check=False, text=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    finally:
        _end_leases(folders)
    limits = {"pids": "held" in said, "memory": "joined memory" in said and "more" not in said}
    return {controller: place for controller, place in found.items() if limits[controller.name]}


def _limit(folder: str, controller: Controller, value: int) -> None:
    _write(f"{folder}/{controller.limit}", str(value))
    if controller.swap_limit and os.path.exists(f"{folder}/{controller.swap_limit}"):
        # Version 1 counts memory and swap together, version 2 swap alone.
        _write(f"{folder}/{controller.swap_limit}", str(value if controller.version == 1 else 0))


def end_group(folder: str) -> None:
    """Ends all processes of a group, again and again, and removes the group."""
    deadline = time.monotonic() + STUCK
    while True:
        try:
            os.rmdir(folder)
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return
        try:
            _write(f"{folder}/cgroup.kill", "1")
        except OSError:
            for line in _lines(f"{folder}/cgroup.procs"):
                # A process of another namespace is listed as 0, and kill(0) would mean our own group.
                try:
                    if int(line) > 1:
                        os.kill(int(line), signal.SIGKILL)
                except OSError:
                    continue
        time.sleep(0.001)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            return [line.rstrip("\n") for line in file]
    except OSError:
        return []


def _number(path: str, name: bytes) -> int:
    """The number after a name in a file of "name number" lines; 0 if the name is missing."""
    for line in _lines(path):
        key, _, value = line.partition(" ")
        if key.encode() == name and value.isdigit():
            return int(value)
    return 0
