"""Bubblewrap: own namespaces, a file system that is read-only except for the workspace, and our seccomp filter.

Needs the `bwrap` program and unprivileged user namespaces. Everything a command starts lives in its process namespace
and ends with it; its network namespace contains nothing but the command.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from toolcrib.command.sandbox.confining import BackendOptions, ConfiningSandbox
from toolcrib.command.sandbox.environment import outer_and_inner
from toolcrib.command.sandbox.files.file_view import FileView
from toolcrib.command.sandbox.files.mount_points import MountPoints
from toolcrib.command.sandbox.files.other_names import with_another_name
from toolcrib.command.sandbox.files.own_files import own_program_in
from toolcrib.command.sandbox.files.paths import innermost_around, within, within_any
from toolcrib.command.sandbox.files.placeholders import Placeholders, create_missing_files
from toolcrib.command.sandbox.files.protected_files import ProtectedFiles
from toolcrib.command.sandbox.files.secret_files import SEARCHED
from toolcrib.command.sandbox.interface import Launch, SandboxReport, Strength
from toolcrib.command.sandbox.landlock import CHANGING, LOOKING, landlock_rules
from toolcrib.command.sandbox.level import Files, Level, Network, SandboxError
from toolcrib.command.sandbox.mounts import (
    TEMPORARY,
    Mounts,
    bwrap,
    mount_arguments,
    mount_points_in,
    mounts_of,
    sources_of,
)
from toolcrib.command.sandbox.packages import cache_mounts
from toolcrib.command.sandbox.process import kernel, seccomp
from toolcrib.command.sandbox.process.control_groups import limit_gaps, new_control_group
from toolcrib.command.sandbox.process.instructions import Instructions, LandlockRules, inherited_data
from toolcrib.command.sandbox.process.mounted import PIPE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

WHILE_IT_RUNS = (
    "WHILE a command runs, your own git (in an editor, in a prompt) obeys settings and hooks that the command writes "
    "into repositories of the workspace; they are removed only when the command has ended"
)
NAMED_PIPES = (
    "a named pipe outside the workspace that your user may write to can be written to (Bubblewrap(landlock=True) "
    "stops that)"
)
ALWAYS = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session", "--cap-drop", "ALL",
)  # fmt: skip

WAITS_FOR_A_CHECK = "/dev/.mounted"  # the last file that bwrap makes

SYSTEM_PROGRAMS = ("/usr", "/bin", "/sbin")
ANY_PROGRAM = (
    'command -v "$1" > /dev/null || { printf "%s: command not found\\n" "$1" >&2; exit 127; }; exec "$@"'
)


class Bubblewrap(ConfiningSandbox):
    """Commands confined by `bwrap`.

    `landlock` adds Landlock inside, as a second line of defence, at the price of starting Python once more.
    """

    name = "bubblewrap"
    keeps_allowlist = True
    conceals = True

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        level: Level | None = None,
        *,
        landlock: bool = False,
        **options: Unpack[BackendOptions],
    ) -> None:
        super().__init__(workspace, level, **options)
        self.landlock = landlock
        self.placeholders = Placeholders()

    def check_level(self, level: Level) -> None:
        super().check_level(level)
        if level.hosts:
            from toolcrib.command.sandbox.egress import guarded_resolver

            try:
                guarded_resolver(level.hosts)
            except ValueError as problem:
                raise SandboxError(str(problem)) from None

    @property
    def own_temporary(self) -> tuple[str, ...]:
        opened = (self.workspace, *self.readable, *self.level.readable, *self.level.writable)
        seen = [os.path.realpath(path) for path in opened]
        return tuple(
            place
            for place, real in zip(TEMPORARY, map(os.path.realpath, TEMPORARY), strict=True)
            if not any(within(path, real) or within(real, path) for path in seen)
        )

    def check_available(self) -> None:
        bwrap()

    def confine(self, launch: Launch, view: FileView, level: Level) -> None:
        command = Instructions(exec=_runnable(launch.argv, launch.env, view))
        launch.env, for_the_command = outer_and_inner(launch.env)
        launch.env["TMPDIR"] = "/tmp"
        words = [bwrap(), *ALWAYS]
        if for_the_command:
            # Through a descriptor, because every process of the machine can read a command line.
            given = "".join(f"--setenv\0{name}\0{value}\0" for name, value in for_the_command.items())
            words += ["--args", str(inherited_data(launch, os.fsencode(given)))]
        if level.network is not Network.ON:
            words.append("--unshare-net")
        if level.files is Files.WORKSPACE_WRITE:
            self._protect(launch, view, level)
        launch.on_close += create_missing_files(level.writable)
        scratch = self.scratch.path()
        # An empty one is hidden instead: it may be a file that would stop its program.
        redacted = {
            path: inherited_data(launch, data)
            for path, data in view.redacted
            if data and path in view.hidden and path not in view.denied
        }
        caches = cache_mounts(view, self.caches.path())
        mounts, after = mounts_of(
            view, level, self.limits, scratch, redacted, caches, self.placeholders.held_paths
        )
        words += mount_arguments(mounts, after)
        supervisor = Instructions(exec=[], supervised=True)
        if _to_be_checked(mounts, view.writable(level), self.protected):
            supervisor.mounts = sources_of(mounts)
            words += ["--file", PIPE, WAITS_FOR_A_CHECK]
        launch.on_close += create_missing_files(mount_points_in(scratch, level))
        words += ["--chdir", launch.cwd]
        if seccomp.supported():
            allowed = seccomp.SyscallFilter(internet=True, unix=self.unix_sockets, alone=True)
            words += ["--seccomp", str(inherited_data(launch, seccomp.program(allowed)))]
        if level.network is Network.ALLOWLIST:
            self._start_proxy(launch, level, command)
        if self.landlock:
            command.landlock = _landlock_inside(view, level)
        self._limit(launch, command, supervisor, [*words, "--"])

    def _protect(self, launch: Launch, view: FileView, level: Level) -> None:
        """Holds placeholders for protected files, and restores afterwards those that no mount can protect."""
        renamed = with_another_name(view.protected, view.writable(level), self.repositories.walk)
        restored = ProtectedFiles(
            view.workspace, (*view.links, *renamed, *view.watched), self.repositories.running
        )
        launch.on_close.append(restored.restore)
        launch.on_close.append(self.placeholders.hold(view.protected))
        own = own_program_in(view.workspace)  # which must not be renamed while it runs
        mounted = [path for path in view.protected if path not in own]
        launch.on_close.append(MountPoints(view.workspace, mounted, self.repositories.running).compare)

    def _start_proxy(self, launch: Launch, level: Level, command: Instructions) -> None:
        """Starts the proxy of an allowlist; the launcher hands it the listener in the command's network namespace."""
        from toolcrib.command.sandbox.egress import Egress, guarded_resolver

        resolve = self.resolve or guarded_resolver(level.hosts)
        egress = Egress(
            level.hosts, resolve, refused=launch.refused_hosts, refused_addresses=launch.refused_addresses
        )
        launch.on_close.append(lambda launch: egress.close())
        theirs, variables = egress.begin()
        command.hand_over = theirs.detach()
        launch.inherited.append(command.hand_over)
        launch.env |= variables

    def _limit(
        self, launch: Launch, command: Instructions, supervisor: Instructions, confined: list[str]
    ) -> None:
        """Makes the launch one of the command in a control group, with limits, and under a supervisor.

        The supervisor enforces the limits that no group does, and ends everything with this process: bwrap cannot do
        that while it is being started.
        """
        group = new_control_group(self.limits, launch)
        together = None if "memory" in group.limited else self.limits.together
        processes = None if "pids" in group.limited else self.limits.processes
        if processes is not None and (counter := _counted_by_kernel(processes)):
            command.exec[:0], processes = counter, None
        inner = command.argv(launch) if command.needed else command.exec
        supervisor.exec = [*confined, *inner]
        supervisor.limits = self.limits.of_a_process()
        supervisor.together, supervisor.processes, supervisor.groups = together, processes, group.files
        launch.argv = supervisor.argv(launch)

    def report(self) -> SandboxReport:
        gaps = [WHILE_IT_RUNS, SEARCHED, *([] if self.landlock else [NAMED_PIPES])]
        if not seccomp.supported():
            gaps.append("no system call filter for this processor: sockets of daemons can be reached")
        if self.unix_sockets:
            gaps.append("unix sockets are allowed: daemons whose sockets are visible can be reached")
        if self.level.network is Network.ON:
            gaps.append("the network is on: services of this machine can be reached too")
        filtered = Strength.ENFORCED if seccomp.supported() else Strength.PARTIAL
        return SandboxReport(
            self.name,
            fs_write=Strength.ENFORCED,
            fs_read=Strength.ENFORCED,
            network=Strength.NONE if self.level.network is Network.ON else filtered,
            processes=filtered,
            protected_paths=Strength.ENFORCED,
            known_gaps=tuple(gaps),
            tried_gaps=partial(limit_gaps, root=not _counted_by_kernel(1)),
            why_not_better=self.why_not_better,
            hides_denied_paths=True,
        )


def _landlock_inside(view: FileView, level: Level) -> LandlockRules:
    """The same limits once more by Landlock: reads everything that can be seen, writes where it may."""
    (files, _, scopes), _, of_a_file = landlock_rules(view, level, kernel.landlock_abi(), "/tmp")
    write = [view.home, "/tmp", "/var/tmp", "/dev", "/proc/self"]
    if level.files is Files.WORKSPACE_WRITE:
        write.append(view.workspace)
    write += level.writable
    return (files, 0, scopes), [("/", LOOKING), *((path, CHANGING) for path in write)], of_a_file


def _to_be_checked(mounts: Mounts, writable: Sequence[str], protected: Sequence[str]) -> bool:
    """Whether a command that runs meanwhile could replace a mount point, or a folder above one, while bwrap mounts.

    The names that are always protected, and the folders above them, are mount points for every command, so none can
    rename them.
    """
    names = _with_folders_above(tuple(protected))
    for path in mounts:
        around = innermost_around(path, writable)
        if around and path[len(around) + 1 :] not in names:
            return True
    return False


@lru_cache(8)
def _with_folders_above(protected: tuple[str, ...]) -> frozenset[str]:
    """The names that are protected in any case, and those of the folders above them."""
    paths = [name.split("/") for name in (*protected, ".git")]
    return frozenset("/".join(parts[:count]) for parts in paths for count in range(1, len(parts) + 1))


def _counted_by_kernel(processes: int) -> list[str]:
    """The words that make the kernel limit the processes of a command in its user namespace.

    None for root, whom it does not limit, and where `prlimit` is not installed. Outside of the namespace the limit
    would count all processes of the user.
    """
    program = shutil.which("prlimit", path="/usr/bin:/bin")
    if program is None or os.geteuid() == 0:
        return []
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return [program, f"--nproc={processes if hard == resource.RLIM_INFINITY else min(processes, hard)}", "--"]


def _runnable(argv: list[str], env: Mapping[str, str], view: FileView) -> list[str]:
    """A command as bwrap is to run it: through a shell, unless it is a program of the system that is there.

    bwrap and prlimit answer for a program that is missing in words of their own, and bwrap with exit code 1.
    """
    program = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    real = os.path.realpath(program) if program is not None and os.path.isabs(program) else ""
    if within_any(real, SYSTEM_PROGRAMS) and not view.hides(real):
        return argv
    return ["/bin/sh", "-c", ANY_PROGRAM, "sh", *argv]
