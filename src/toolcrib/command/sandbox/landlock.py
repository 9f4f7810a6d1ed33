# ruff: noqa: PTH116 - paths are text and descriptors here
"""Landlock with seccomp: no privileges, no namespaces, no program to install; nothing but the kernel, by ctypes.

Landlock grants and cannot take back: what lies in a granted folder is granted. So the tree is cut around what is
hidden, and protected files in the workspace are put back after a command instead of being kept from it.
"""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator, Mapping, Sequence
from copy import copy

from toolcrib.command.sandbox import kernel, seccomp
from toolcrib.command.sandbox.environment import outer_and_inner
from toolcrib.command.sandbox.explain import explained
from toolcrib.command.sandbox.group import grouped, unheld
from toolcrib.command.sandbox.interface import (
    Denial,
    Files,
    Launch,
    Level,
    Limits,
    Network,
    SandboxError,
    SandboxReport,
    Strength,
)
from toolcrib.command.sandbox.missing import made_where_missing
from toolcrib.command.sandbox.narrow import narrowed
from toolcrib.command.sandbox.own import runs_us
from toolcrib.command.sandbox.places import View, opened, rooms, taken, view_of, within
from toolcrib.command.sandbox.plan import Confinement, Plan
from toolcrib.command.sandbox.protect import Protection
from toolcrib.command.sandbox.repositories import Repositories
from toolcrib.command.sandbox.scratch import Scratch
from toolcrib.errors import listed

NAME = "landlock"
FIX = "a kernel from 5.13 on with Landlock enabled (its name in /sys/kernel/security/lsm)"
WHILE_IT_RUNS = (
    "WHILE a command runs, it can change protected files and make repositories, and git or an editor of yours in the "
    "workspace runs what they say; they are put back, and what git runs taken out, only when it ended"
)
EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE = 0x1FF0  # remove and make: folders, files, devices, sockets, pipes, links
REFER, TRUNCATE, DEVICE_IOCTL = 1 << 13, 1 << 14, 1 << 15
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1
LOOKING = EXECUTE | READ | LIST
CHANGING = LOOKING | WRITE | MAKE | REFER | TRUNCATE | DEVICE_IOCTL
OF_A_FILE = EXECUTE | WRITE | READ | TRUNCATE | DEVICE_IOCTL
# From which version on something can be handled at all.
SINCE = {REFER: 2, TRUNCATE: 3, DEVICE_IOCTL: 5}
TCP_SINCE, SCOPES_SINCE = 4, 6

MOST_RULES = 8_000  # files and folders beside what is hidden, each of which is opened for it

# Of /proc only what says nothing of other processes.
KERNEL_FACTS = tuple(
    f"/proc/{name}"
    for name in (
        "cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "sys/kernel/ngroups_max",
        "sys/kernel/osrelease", "sys/kernel/pid_max", "sys/vm/overcommit_memory", "sys/kernel/random",
        "sys/fs/pipe-max-size",
    )
)  # fmt: skip
DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
)
NOT_READ = (
    "/proc",
    "/dev",
    "/sys/kernel/security",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/sys/fs/bpf",
)


class Landlock:
    """Commands confined by the kernel's Landlock and our seccomp filter.

    The parameters are `Bubblewrap`'s. It knows no allowlist of hosts: there is no namespace to put a proxy into.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        level: Level | None = None,
        *,
        readable: Sequence[str | os.PathLike[str]] = (),
        protected: Sequence[str] | None = None,
        limits: Limits | None = None,
        unix_sockets: bool = False,
        home: str | None = None,
        why_not_better: Sequence[str] = (),
    ) -> None:
        self.level = _kept(level or Level())
        self.workspace = os.path.realpath(workspace)
        if self.workspace == "/":
            raise SandboxError("the workspace is /, so there is nothing outside it to protect")
        if ours := runs_us(self.workspace):
            raise SandboxError(
                f"the workspace holds {ours[0]}, which runs toolcrib and which landlock cannot keep from commands: "
                "install toolcrib elsewhere"
            )
        self.home = home
        self.readable = tuple(os.fspath(path) for path in listed("readable", readable))
        self.protected = None if protected is None else listed("protected", protected)
        self.limits = limits or Limits()
        self.unix_sockets = unix_sockets
        self.why_not_better = tuple(why_not_better)
        self.scratch = Scratch()
        self.repositories = Repositories()

    def at(self, level: Level) -> Landlock:
        other = copy(self)
        other.level = _kept(level)
        return other

    def view(self, level: Level | None = None) -> View:
        view = view_of(
            self.workspace,
            home=self.home,
            readable=self.readable,
            **({} if self.protected is None else {"protected": self.protected}),
        )
        level = level or self.level
        return taken(opened(view, level.writable, level.readable), level)

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        level = narrowed(self.level, level)
        try:
            abi = kernel.landlock_abi()
        except OSError as problem:
            raise SandboxError(f"this kernel has no Landlock: {problem}") from None
        if not seccomp.supported():
            raise SandboxError(f"there is no system call filter for {platform.machine()}")
        view = self.view(level)
        inside = next((place for place in view.hidden if within(place, view.workspace)), None)
        if inside is not None and level.files is Files.WORKSPACE_WRITE:
            raise SandboxError(
                f"the workspace holds {inside}, which landlock cannot hide in it; take a smaller workspace"
            )
        temporary = self.scratch.path()
        outer, inner = outer_and_inner({**env, "TMPDIR": temporary})
        launch = Launch([], outer, cwd)
        launch.closing.append(self.scratch.kept)
        launch.closing += self.repositories.watch(rooms(view, level))
        launch.closing += made_where_missing(level.writable)
        allowed = seccomp.Filter(internet=level.network is Network.ON, unix=self.unix_sockets)
        plan = Plan(
            exec=list(argv),
            landlock=confinement(view, level, abi, temporary),
            filter=seccomp.program(allowed),
            limits=self._limits(),
            capabilities=True,
            supervised=True,
            together=self.limits.together,
            processes=self.limits.processes,
            env=inner,
        )
        try:
            if level.files is Files.WORKSPACE_WRITE:
                launch.closing.append(Protection(view.workspace, (*view.protected, *view.watched)).restore)
            group, held = grouped(self.limits, launch)
            if group is not None:
                plan.groups = group.files
            plan.together = None if "memory" in held else plan.together
            plan.processes = None if "pids" in held else plan.processes
            launch.argv = plan.argv(launch)
        except BaseException:
            launch.close()
            raise
        launch.pass_fds = tuple(launch.handed)
        return launch

    def _limits(self) -> list[tuple[int, int]]:
        wanted = self.limits
        made = [(resource.RLIMIT_CORE, 0)]
        if wanted.processes is not None:
            # The kernel counts all that a user runs, so what runs already is added.
            made.append((resource.RLIMIT_NPROC, _running() + wanted.processes))
        if wanted.memory is not None:
            made.append((resource.RLIMIT_DATA, wanted.memory))
        if wanted.file_size is not None:
            made.append((resource.RLIMIT_FSIZE, wanted.file_size))
        return made

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        return explained(returncode, output, launch, self.view, self.level, conceals=False)

    def report(self) -> SandboxReport:
        abi = kernel.landlock_abi()
        gaps = [
            "modes, groups and times of own files outside the workspace can be changed, not their content",
            "that a file exists outside the workspace, its size and its times can be seen",
            WHILE_IT_RUNS,
            "programs that need /proc/self, /dev/shm or another folder than TMPDIR for temporary files do not work",
            "programs that open terminals, watch files (inotify), or share memory by a key or a name do not work",
            *unheld(root=os.geteuid() == 0),
        ]
        if self.level.files is not Files.READ_ONLY:
            gaps.append("what rules deny is hidden only from commands that change nothing; the others ask")
        for needed, missing in (
            (2, "files cannot be moved between folders (Landlock 2, Linux 5.19)"),
            (3, "files outside can be cut to length 0 (Landlock 3, Linux 6.2)"),
            (SCOPES_SINCE, "other processes of the same user can be signalled (Landlock 6, Linux 6.12)"),
        ):
            if abi < needed:
                gaps.append(missing)
        if os.geteuid() == 0:
            gaps.append("run as root: the modes of every file of the system are root's own")
        if self.level.network is Network.ON:
            gaps.append("the network is on: services of this machine can be reached too")
        return SandboxReport(
            NAME,
            Strength.PARTIAL,
            Strength.ENFORCED,
            Strength.NONE if self.level.network is Network.ON else Strength.ENFORCED,
            Strength.ENFORCED if abi >= SCOPES_SINCE else Strength.PARTIAL,
            Strength.PARTIAL,
            tuple(gaps),
            self.why_not_better,
            "install bubblewrap" if not self.why_not_better else "",
            withholds=self.level.files is Files.READ_ONLY and not self.level.writable,
        )


def confinement(view: View, level: Level, abi: int, temporary: str) -> Confinement:
    """What Landlock is to handle, and which rights it grants where."""
    handled = CHANGING
    for right, since in SINCE.items():
        if abi < since:
            handled &= ~right
    network = BIND_TCP | CONNECT_TCP if abi >= TCP_SINCE and level.network is Network.OFF else 0
    scopes = ABSTRACT_SOCKETS | SIGNALS if abi >= SCOPES_SINCE else 0
    rules = [(path, LOOKING) for path in readable(view)]
    rules += [(path, READ) for path in KERNEL_FACTS]
    rules += [(path, READ | WRITE | LIST | DEVICE_IOCTL) for path in DEVICES]
    if any(within(place, view.workspace) for place in view.hidden):
        rules.append((view.workspace, LIST))
        rules += [(part, LOOKING) for part in readable(view, [view.workspace])]
    else:
        rules.append((view.workspace, CHANGING if level.files is Files.WORKSPACE_WRITE else LOOKING))
    rules.append((temporary, CHANGING))
    rules += [
        (part, CHANGING) for part in readable(view, [path for path in level.writable if path in view.shown])
    ]
    if len(rules) > MOST_RULES:
        raise SandboxError("what is hidden leaves too many files and folders to name each of them")
    return (handled, network, scopes), rules, OF_A_FILE


def _kept(level: Level) -> Level:
    if level.files is Files.OFF:
        raise SandboxError("landlock confines; for no sandbox at all use NoSandbox")
    if level.network is Network.ALLOWLIST:
        raise SandboxError("landlock cannot keep to an allowlist of hosts; bubblewrap can")
    return level


def readable(view: View, places: Sequence[str] | None = None) -> Iterator[str]:
    """The largest parts of the tree, or of some places of it, that hold nothing hidden."""
    hidden = {*view.hidden, *NOT_READ}
    todo = ["/", *view.shown] if places is None else list(places)
    while todo:
        path = todo.pop()
        if path in hidden:
            continue
        if path != "/" and not any(within(place, path) for place in hidden):
            yield path
            continue
        try:
            with os.scandir(path) as entries:
                todo += [entry.path for entry in entries if not entry.is_symlink()]
        except OSError:
            continue


def _running() -> int:
    """How many threads the user of this process has."""
    total = 0
    mine = os.geteuid()
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                try:
                    if entry.stat().st_uid == mine:
                        total += os.stat(f"{entry.path}/task").st_nlink - 2
                except OSError:
                    continue
    return total
