# ruff: noqa: PTH110, PTH112, PTH114, PTH116, PTH208 - paths are text and descriptors here
"""Bubblewrap: own namespaces, a file system that is read-only but for the workspace, and our seccomp filter.

Needs the `bwrap` program and unprivileged user namespaces. Everything a command starts lives in its process
namespace and ends with it; its network namespace has nobody in it but itself.
"""

from __future__ import annotations

import os
import resource
import shutil
import stat
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

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
from toolcrib.command.sandbox.landlock import CHANGING, LOOKING, confinement
from toolcrib.command.sandbox.masks import Masks
from toolcrib.command.sandbox.missing import made_where_missing
from toolcrib.command.sandbox.narrow import narrowed
from toolcrib.command.sandbox.places import View, opened, rooms, taken, view_of, within
from toolcrib.command.sandbox.plan import Confinement, Plan, handed
from toolcrib.command.sandbox.protect import Protection
from toolcrib.command.sandbox.repositories import Repositories
from toolcrib.command.sandbox.scratch import Scratch
from toolcrib.command.sandbox.temporary import TEMPORARY, around, between, mounted_on, rooms_in
from toolcrib.errors import listed

if TYPE_CHECKING:
    from toolcrib.command.sandbox.egress import Resolver

NAME = "bubblewrap"
FIX = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap) and allow unprivileged user namespaces"
WHILE_IT_RUNS = (
    "WHILE a command runs, git of yours (an editor's, a prompt's) runs what repositories say that the command makes "
    "in the workspace; it is taken out of them only when the command ended"
)
BASE = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session", "--cap-drop", "ALL",
)  # fmt: skip
# A new /proc can be written to by root, which is whom it belongs to outside as well.
KERNEL_KNOBS = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
)
RESOLVED = "/run/systemd/resolve"  # where /etc/resolv.conf often leads
SMALL = 1 << 20  # bytes of a hidden folder, which only holds the way to what is shown below it


class Bubblewrap:
    """Commands confined by `bwrap`.

    `readable` are folders outside the workspace, hidden otherwise, that commands may read; `protected`
    replaces the table of `places`; `unix_sockets` lets programs use them, also those of daemons that can be
    seen; `landlock` adds Landlock inside (defence in depth, at the price of starting Python once more);
    `resolve` is asked for the addresses of hosts of an allowlist; if it is left out, the network guard is.
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
        landlock: bool = False,
        resolve: Resolver | None = None,
        home: str | None = None,
        why_not_better: Sequence[str] = (),
    ) -> None:
        self.level = _kept(level or Level())
        self.workspace = os.path.realpath(workspace)
        if self.workspace == "/":
            raise SandboxError("the workspace is /, so there is nothing outside it to protect")
        self.home = home
        self.readable = tuple(os.fspath(path) for path in listed("readable", readable))
        self.protected = None if protected is None else listed("protected", protected)
        self.limits = limits or Limits()
        self.unix_sockets = unix_sockets
        self.landlock = landlock
        self.resolve = resolve
        self.why_not_better = tuple(why_not_better)
        self.scratch = Scratch()
        self.masks = Masks()
        self.repositories = Repositories()

    def at(self, level: Level) -> Bubblewrap:
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
        program = _program()
        view = self.view(level)
        outer, inner = outer_and_inner(env)
        launch = Launch([], {**outer, "TMPDIR": "/tmp"}, cwd)
        launch.closing.append(self.scratch.kept)
        launch.closing += self.repositories.watch(rooms(view, level))
        try:
            return self._filled(launch, program, list(argv), view, level, inner)
        except BaseException:
            launch.close()
            raise

    def _filled(
        self, launch: Launch, program: str, argv: list[str], view: View, level: Level, env: dict[str, str]
    ) -> Launch:
        wrapped = [program, *BASE]
        if env:
            # In a file, for anybody may read a command line.
            told = "".join(f"--setenv\0{name}\0{value}\0" for name, value in env.items())
            wrapped += ["--args", str(handed(launch, os.fsencode(told)))]
        if level.network is not Network.ON:
            wrapped.append("--unshare-net")
        if level.files is Files.WORKSPACE_WRITE:
            # A mount cannot lie on a link, and what is reached through one is not where it says.
            linked = [path for path in view.protected if _through_a_link(view.workspace, path)]
            view = replace(view, protected=tuple(path for path in view.protected if path not in linked))
            launch.closing.append(Protection(view.workspace, (*linked, *view.watched)).restore)
            launch.closing.append(self.masks.hold(view.protected))
        wrapped += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for knob in KERNEL_KNOBS:
            # Nobody else may write there; and each of these mounts costs more than all else here.
            if os.geteuid() == 0 and os.path.exists(knob):
                wrapped += ["--ro-bind", knob, knob]
        launch.closing += made_where_missing(level.writable)
        launch.closing += made_where_missing(mounted_on(self.scratch.path(), level))
        wrapped += self._mounts(view, level)
        wrapped += ["--chdir", launch.cwd]
        if seccomp.supported():
            filtered = seccomp.program(seccomp.Filter(internet=True, unix=self.unix_sockets, alone=True))
            wrapped += ["--seccomp", str(handed(launch, filtered))]
        inner = [*limiter(self.limits), *argv]
        plan = Plan(exec=inner)
        if level.network is Network.ALLOWLIST:
            from toolcrib.command.sandbox.egress import Egress, guarded

            resolve = self.resolve or guarded(level.hosts)
            egress = Egress(level.hosts, resolve, refused=launch.refused_hosts, led_astray=launch.led_astray)
            launch.closing.append(lambda launch: egress.close())
            theirs, proxy = egress.begin()
            plan.hand_over = theirs.detach()
            launch.handed.append(plan.hand_over)
            launch.env |= proxy
        if self.landlock:
            plan.landlock = self._landlock(view, level)
        if plan.needed:
            inner = plan.argv(launch)
        launch.argv = self._counted(launch, [*wrapped, "--", *inner])
        launch.pass_fds = tuple(launch.handed)
        return launch

    def _counted(self, launch: Launch, argv: list[str]) -> list[str]:
        """The same in a control group; what none of them holds, a supervisor looks at."""
        group, held = grouped(self.limits, launch)
        together = None if "memory" in held else self.limits.together
        # The kernel holds the number of processes in our user namespace, but for root.
        free = "pids" in held or (os.geteuid() != 0 and limiter(self.limits))
        processes = None if free else self.limits.processes
        if together is None and processes is None:
            return argv if group is None else group.joining(argv)
        files = [] if group is None else group.files
        plan = Plan(argv, supervised=True, together=together, processes=processes, groups=files)
        return plan.argv(launch)

    def _mounts(self, view: View, level: Level) -> list[str]:
        """All that is laid over the root, the outer before the inner."""
        laid: dict[str, list[str]] = {}
        for path in view.hidden:
            if _covered(path, view):
                continue
            if os.path.isdir(path):
                room = self.limits.scratch if path == view.home else SMALL
                sized = ["--size", str(room)] if room is not None and knows("--size") else []
                laid[path] = [*sized, "--tmpfs", path]
            elif os.access(path, os.R_OK):
                laid[path] = ["--ro-bind", "/dev/null", path]
        for path in view.shown:
            laid[path] = ["--ro-bind-try", path, path]
        if level.network is Network.ON and os.path.isdir(RESOLVED):
            laid[RESOLVED] = ["--ro-bind-try", RESOLVED, RESOLVED]
        temporary = self.scratch.path()
        for path in TEMPORARY:
            if os.path.isdir(path):
                laid[os.path.realpath(path)] = ["--bind", temporary, os.path.realpath(path)]
                laid |= rooms_in(os.path.realpath(path), level)
                laid |= {outer: ["--tmpfs", outer] for outer in around(os.path.realpath(path), view, level)}
        shared = ["--size", str(self.limits.scratch)] if self.limits.scratch and knows("--size") else []
        laid["/dev/shm"] = [*shared, "--tmpfs", "/dev/shm"]
        write = "--bind" if level.files is Files.WORKSPACE_WRITE else "--ro-bind"
        laid[view.workspace] = [write, view.workspace, view.workspace]
        for path in level.writable:
            if path in view.shown or within(path, view.workspace):
                laid[path] = ["--bind-try", path, path]
        fixed = [*view.withheld, *view.kept]
        if level.files is Files.WORKSPACE_WRITE:
            fixed += [*view.protected, *(path for path in view.hidden if within(path, view.workspace))]
            laid |= {path: _unwritable(path) for path in view.protected}
        for path in fixed:
            # A folder that is no mount point could be renamed, with what is protected or hidden in it.
            laid |= {
                outer: ["--bind-try", outer, outer]
                for outer in _above(path, view, level)
                if outer not in laid
            }
        outside = [path for path in view.kept if not within(path, view.workspace)]
        laid |= {path: _unwritable(path) for path in outside if os.path.lexists(path)}
        laid = {path: words for path, words in laid.items() if not _undone(path, words, view)}
        laid |= {path: _emptied(path) for path in view.withheld if os.path.exists(path)}
        words = [word for path in sorted(laid, key=lambda path: path.split("/")) for word in laid[path]]
        # What is written beside the workspace must not seem to be there; closed when all stands in it.
        closed = [path for place in TEMPORARY for path in around(os.path.realpath(place), view, level)]
        return words + [word for path in closed for word in ("--remount-ro", path)]

    def _landlock(self, view: View, level: Level) -> Confinement:
        """Once more the same, by other means: read all that can be seen, write where it is meant."""
        abi = kernel.landlock_abi()
        (files, _, scopes), _, of_a_file = confinement(view, level, abi, "/tmp")
        write = [view.home, "/tmp", "/var/tmp", "/dev", "/proc/self"]
        if level.files is Files.WORKSPACE_WRITE:
            write.append(view.workspace)
        write += level.writable
        return (files, 0, scopes), [("/", LOOKING), *((path, CHANGING) for path in write)], of_a_file

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        return explained(returncode, output, launch, self.view, self.level)

    def report(self) -> SandboxReport:
        gaps = [WHILE_IT_RUNS]
        limited = bool(limiter(self.limits))
        if not seccomp.supported():
            gaps.append("no system call filter for this processor: sockets of daemons can be reached")
        if self.unix_sockets:
            gaps.append("unix sockets are allowed: daemons whose sockets are visible can be reached")
        if self.level.network is Network.ON:
            gaps.append("the network is on: services of this machine can be reached too")
        if not limited:
            gaps.append(
                "prlimit is not installed, so the memory of a process and the size of a file are not limited"
            )
        gaps += unheld(root=os.geteuid() == 0 or not limited)
        strong = Strength.ENFORCED if seccomp.supported() else Strength.PARTIAL
        network = Strength.NONE if self.level.network is Network.ON else strong
        return SandboxReport(
            NAME, Strength.ENFORCED, Strength.ENFORCED, network, strong, Strength.ENFORCED,
            tuple(gaps), self.why_not_better, withholds=True,
        )  # fmt: skip


def _kept(level: Level) -> Level:
    if level.files is Files.OFF:
        raise SandboxError("bubblewrap confines; for no sandbox at all use NoSandbox")
    if level.hosts:
        from toolcrib.command.sandbox.egress import guarded

        try:
            guarded(level.hosts)
        except ValueError as problem:
            raise SandboxError(str(problem)) from None
    return level


def _unwritable(path: str) -> list[str]:
    """What keeps a protected path; for an empty folder one that is empty in memory, which is quicker laid."""
    if knows("--perms") and knows("--size") and os.path.isdir(path) and not os.listdir(path):
        return ["--perms", "0555", "--size", "4096", "--tmpfs", path]
    return ["--ro-bind-try", path, path]


def _emptied(path: str) -> list[str]:
    """What hides a path that rules deny: nothing is in it, and nothing can be put there."""
    return (
        ["--tmpfs", path, "--remount-ro", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    )


def _undone(path: str, words: list[str], view: View) -> bool:
    """Whether a mount lies in what rules deny, and would open it again."""
    kept = view.kept if words[0] in ("--bind", "--bind-try") else ()
    return any(path != place and within(path, place) for place in (*view.withheld, *kept))


def _above(path: str, view: View, level: Level) -> list[str]:
    """The folders above a path that a command may write to."""
    around = [room for room in rooms(view, level) if room != path and within(path, room)]
    return between(max(around, key=len), path) if around else []


def _covered(path: str, view: View) -> bool:
    """Whether a hidden path lies in what is hidden anyway."""
    places = (*view.hidden, *view.shown, view.workspace)
    around = [place for place in places if place != path and within(path, place)]
    return bool(around) and max(around, key=len) in view.hidden


def _through_a_link(root: str, path: str) -> bool:
    return any(os.path.islink(part) for part in (*between(root, path), path))


def limiter(limits: Limits) -> list[str]:
    """The words that limit what comes after them; none where the program for it is not installed."""
    program = shutil.which("prlimit", path="/usr/bin:/bin")
    if program is None:
        return []
    wanted = (
        ("nproc", limits.processes, resource.RLIMIT_NPROC),
        ("data", limits.memory, resource.RLIMIT_DATA),
        ("fsize", limits.file_size, resource.RLIMIT_FSIZE),
        ("core", 0, resource.RLIMIT_CORE),
    )
    return [
        program,
        *(f"--{name}={_within_hard(value, kind)}" for name, value, kind in wanted if value is not None),
        "--",
    ]


def _within_hard(value: int, kind: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def _program() -> str:
    found = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin")
    if found is None or not stat.S_ISREG(os.stat(found).st_mode):
        raise SandboxError("bwrap is not installed")
    return found


@cache
def knows(option: str) -> bool:
    """Whether the installed bwrap has an option."""
    import subprocess

    said = subprocess.run([_program(), "--help"], capture_output=True, text=True, timeout=10, check=False)
    return f" {option} " in said.stdout + said.stderr
