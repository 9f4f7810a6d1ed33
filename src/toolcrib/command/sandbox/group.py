# ruff: noqa: PTH106, PTH110, PTH112, PTH120, PTH123 - paths are text and descriptors here
"""A control group for each command: its processes counted and their memory added up by the kernel, also for root.

Where groups can be made differs from machine to machine (which version, what was delegated to whom, what is mounted
read-only), so it is tried, once: a small process is put into a group, and has to be held by it. What no group
holds is left to a supervisor, or named as a gap.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from toolcrib.command.sandbox import claim
from toolcrib.command.sandbox.interface import Launch, Limits

PREFIX = "toolcrib-"
OVERHEAD = 4  # processes of the sandbox itself: bwrap and its first process, a supervisor, a launcher
STUCK = 5.0  # seconds for a group to become empty
PATIENCE = 20.0
TRIAL_MEMORY = 48 << 20


@dataclass(frozen=True, slots=True)
class Counter:
    """What a group can limit: the file for the limit, one that keeps swap out of it, and where it says it was met."""

    name: str
    version: int
    limit: str
    without_swap: str
    met: tuple[str, bytes]
    words: str


COUNTERS = (
    Counter("pids", 2, "pids.max", "", ("pids.events", b"max"), "the number of processes"),
    Counter("pids", 1, "pids.max", "", ("pids.events", b"max"), "the number of processes"),
    Counter(
        "memory", 2, "memory.max", "memory.swap.max", ("memory.events", b"oom_kill"),
        "the memory of all processes together",
    ),
    Counter(
        "memory", 1, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", ("memory.oom_control", b"oom_kill"),
        "the memory of all processes together",
    ),
)  # fmt: skip
JOIN = """while [ "$1" != -- ]; do
  echo 0 >"$1" || { echo 'toolcrib: the sandbox could not be set up: no control group' >&2; exit 125; }
  shift
done
shift
exec "$@\""""
# Joins the groups that are named, then tries to have two processes, and then more memory than it may.
TRIAL = """
import os, sys
for path in sys.argv[2:]:
    with open(path, "w") as file: file.write("0")
try:
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
    print("forked", flush=True)
except BlockingIOError:
    print("held", flush=True)
held = bytearray(b"x") * int(sys.argv[1])
print("more", flush=True)
"""


class Group:
    """The groups of one command, a folder for each hierarchy."""

    def __init__(self, wanted: dict[Counter, int]) -> None:
        self.folders: dict[str, int] = {}
        self.counters: list[tuple[Counter, str]] = []
        # Also for a launch that nobody closed.
        self._remove = weakref.finalize(self, _taken_away, self.folders)
        made: dict[str, str] = {}
        try:
            for counter, limit in wanted.items():
                place = places()[counter]
                if place not in made:
                    made[place], held = claim.made(place, PREFIX)
                    self.folders[made[place]] = held
                _limit(made[place], counter, limit)
                self.counters.append((counter, made[place]))
        except OSError:
            self._remove()
            raise

    @property
    def files(self) -> list[str]:
        """What a process writes "0" into to be of it."""
        return [f"{folder}/cgroup.procs" for folder in self.folders]

    def joining(self, argv: list[str]) -> list[str]:
        """A command that joins the groups, and then becomes another."""
        return ["/bin/sh", "-c", JOIN, "sh", *self.files, "--", *argv]

    def close(self, launch: Launch) -> None:
        """Note which limits were met, end whoever is left, and take the groups away."""
        for counter, folder in self.counters:
            if _number(f"{folder}/{counter.met[0]}", counter.met[1]):
                launch.exceeded.append(counter.words)
        self._remove()


def _taken_away(folders: dict[str, int]) -> None:
    while folders:
        folder, held = folders.popitem()
        removed(folder)
        os.close(held)


def grouped(limits: Limits, launch: Launch) -> tuple[Group | None, frozenset[str]]:
    """A group that keeps what it can of the limits, closed with the launch, and the names of the counters in it."""
    wanted: dict[Counter, int] = {}
    for counter in places():
        limit = limits.processes if counter.name == "pids" else limits.together
        if limit is not None:
            wanted[counter] = limit + OVERHEAD if counter.name == "pids" else limit
    if not wanted:
        return None, frozenset()
    try:
        group = Group(wanted)
    except OSError:
        return None, frozenset()
    launch.closing.append(group.close)
    return group, frozenset(counter.name for counter in wanted)


@cache
def counted() -> frozenset[str]:
    """Which of "pids" and "memory" groups hold here."""
    return frozenset(counter.name for counter in places())


def unheld(*, root: bool) -> list[str]:
    """Gaps, in words: what no group keeps here, and what nothing does. `root` if nothing else counts processes."""
    missing = [
        *(["the number of processes"] if root and "pids" not in counted() else []),
        *(["the memory of all processes together"] if "memory" not in counted() else []),
    ]
    gaps = [
        "the workspace can be filled up to the limit of each file; only a quota of its file system keeps that"
    ]
    if missing:
        words = f"no control group can be made here: {' and '.join(missing)} is only looked at a few times a second"
        gaps.append(words)
    return gaps


@cache
def places() -> dict[Counter, str]:
    """Where groups can be made that hold what they say, by counter; tried once in a process."""
    found: dict[Counter, str] = {}
    for counter, place in _candidates():
        if counter.name in {known.name for known in found}:
            continue
        claim.swept(place, PREFIX, removed)
        if _can_be_made(counter, place):
            found[counter] = place
    return {counter: place for counter, place in found.items() if _holds(counter, place)}


def _candidates() -> Iterator[tuple[Counter, str]]:
    """Our own group first, then those around it: in version 2 a group with processes has no limited ones in it."""
    mounts = list(_mounts())
    for counter in COUNTERS:
        own = _own(counter)
        for root, mounted, version, controllers in mounts:
            if (
                own is None
                or version != counter.version
                or (version == 1 and counter.name not in controllers)
            ):
                continue
            path = os.path.normpath(mounted + (own[len(root.rstrip("/")) :] if own.startswith(root) else own))
            while path.startswith(mounted):
                if os.path.isdir(path):
                    yield counter, path
                if path == mounted:
                    break
                path = os.path.dirname(path)


def _mounts() -> Iterator[tuple[str, str, int, list[str]]]:
    """Of each hierarchy: its root, where it is mounted, its version, its controllers."""
    for line in _lines("/proc/self/mountinfo"):
        fields, _, filesystem = line.partition(" - ")
        kind, _, options = filesystem.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, mounted = fields.split(" ")[3:5]
            yield root, mounted, 2 if kind == "cgroup2" else 1, options.split(" ")[-1].split(",")


def _own(counter: Counter) -> str | None:
    """The group that we are in."""
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if (counter.name in controllers.split(",")) if counter.version == 1 else not controllers:
            return path
    return None


def _can_be_made(counter: Counter, place: str) -> bool:
    try:
        folder, held = claim.made(place, PREFIX)
    except OSError:
        return False
    try:
        return os.path.exists(f"{folder}/{counter.limit}")
    finally:
        removed(folder)
        os.close(held)


def _holds(counter: Counter, place: str) -> bool:
    """Whether a process in such a group is kept from a second one, or from memory."""
    try:
        folder, held = claim.made(place, PREFIX)
    except OSError:
        return False
    try:
        _limit(folder, counter, 1 if counter.name == "pids" else TRIAL_MEMORY)
        more = 2 * TRIAL_MEMORY if counter.name == "memory" else 0
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", TRIAL, str(more), f"{folder}/cgroup.procs"],
            capture_output=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        if counter.name == "pids":
            return b"held" in done.stdout
        return b"forked" in done.stdout and b"more" not in done.stdout
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        removed(folder)
        os.close(held)


def _limit(folder: str, counter: Counter, value: int) -> None:
    _write(f"{folder}/{counter.limit}", str(value))
    if counter.without_swap and os.path.exists(f"{folder}/{counter.without_swap}"):
        # Version 1 counts memory and swap together, version 2 swap alone.
        _write(f"{folder}/{counter.without_swap}", str(value if counter.version == 1 else 0))


def removed(folder: str) -> None:
    """End all processes of a group, again and again, and remove it."""
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
                # One that is not of our process namespace is listed as 0, which would mean ourselves.
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
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []


def _number(path: str, name: bytes) -> int:
    """The number behind a name in a file of such lines; 0 where it is not there."""
    for line in _lines(path):
        key, _, value = line.partition(" ")
        if key.encode() == name and value.isdigit():
            return int(value)
    return 0
