"""Landlock with seccomp: no privileges, no namespaces, no program to install; only the kernel, through ctypes.

Landlock grants rights and cannot take them back: what lies in a granted folder is granted. So the rules name the parts
of the tree around what is hidden, and protected files of the workspace are put back after a command.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.command.sandbox.confining import BackendOptions, ConfiningSandbox
from toolcrib.command.sandbox.environment import outer_and_inner
from toolcrib.command.sandbox.files.file_view import FileView
from toolcrib.command.sandbox.files.own_files import own_program_in
from toolcrib.command.sandbox.files.paths import within
from toolcrib.command.sandbox.files.placeholders import create_missing_files
from toolcrib.command.sandbox.files.protected_files import ProtectedFiles
from toolcrib.command.sandbox.files.secret_files import SEARCHED
from toolcrib.command.sandbox.files.shown_settings import (
    readable_settings,
    settings_of_git,
)
from toolcrib.command.sandbox.interface import Denial, Launch, SandboxReport, Strength
from toolcrib.command.sandbox.level import Files, Level, Network, SandboxError
from toolcrib.command.sandbox.packages import cache_variables
from toolcrib.command.sandbox.process import kernel, seccomp
from toolcrib.command.sandbox.process.control_groups import limit_gaps, new_control_group
from toolcrib.command.sandbox.process.instructions import Instructions, LandlockRules

if TYPE_CHECKING:
    from typing import Unpack

NO_LANDLOCK = "this kernel has no Landlock"
WHILE_IT_RUNS = (
    "WHILE a command runs, it can change protected files and create repositories, which your own git or editor obeys; "
    "they are put back, and what git would run is removed, only when the command has ended"
)
EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE = 0x1FF0  # remove and make: folders, files, devices, sockets, pipes, links
REFER, TRUNCATE, DEVICE_IOCTL = 1 << 13, 1 << 14, 1 << 15
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1
LOOKING = EXECUTE | READ | LIST
CHANGING = LOOKING | WRITE | MAKE | REFER | TRUNCATE | DEVICE_IOCTL
FILE_RIGHTS = EXECUTE | WRITE | READ | TRUNCATE | DEVICE_IOCTL
# The version of Landlock from which on a right can be handled.
SINCE = {REFER: 2, TRUNCATE: 3, DEVICE_IOCTL: 5}
TCP_SINCE, SCOPES_SINCE = 4, 6

# What Node is to load first; it lies with the launcher, so that it can be read wherever the launcher can.
NODE_MEMORY = os.path.join(os.path.realpath(os.path.dirname(kernel.__file__)), "node_memory.cjs")
MAX_RULES = 8_000  # each names a file or folder beside something hidden, and is opened by the launcher

# Of /proc only what says nothing of other processes.
KERNEL_FACTS = tuple(
    f"/proc/{name}"
    for name in (
        "cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "sys/kernel/ngroups_max",
        "sys/kernel/osrelease", "sys/kernel/pid_max", "sys/vm/overcommit_memory", "sys/kernel/random",
        "sys/fs/pipe-max-size",
    )
)  # fmt: skip
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
NOT_READ = (
    "/proc",
    "/dev",
    "/sys/kernel/security",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/sys/fs/bpf",
)


# What needs namespaces, with what programs say that did not get it. Each looks at so much of a line, however long.
# From Python 3.13 on, the lines of a traceback that are source and marks below it are indented by four.
DENIED = (
    r"[^\n]{0,300}(?:\n {4}[^\n]{0,300}){0,12}?(?:\n[^\n]{0,300}){0,2}?(?:permission denied|eacces|errno 13)"
)
LACKING = {
    "shared memory or semaphores (/dev/shm)": re.compile(
        rf"(?:SemLock|sem_open|shm_open|/psm_\w|/dev/shm|posix_ipc){DENIED}", re.IGNORECASE
    ),
    "new terminals (/dev/ptmx)": re.compile(
        rf"out of pty devices|(?:/dev/ptmx|openpty|forkpty){DENIED}", re.IGNORECASE
    ),
    "connections between its own processes (loopback)": re.compile(
        r"usable local IP|listen EPERM|(?:socketserver\.py|TCPServer|HTTPServer|start_server|create_server|\.bind)\b"
        r"[^\n]{0,300}(?:\n[^\n]{0,300}){0,12}?PermissionError: \[Errno 1\]"
    ),
}
# A folder right below /tmp that a program could not make, in the middle of a message.
IN_TMP = re.compile(r"['\"`‘“ ](/tmp/[\w.-]+)[^\n]{0,200}(?:\n[^\n]{0,200})?permission denied", re.IGNORECASE)
NOT_IN_TMP = "files in /tmp itself, but a folder of its own (TMPDIR)"
TAKE_IT = "`toolcrib doctor` says what keeps it from working here"
ENDING = 60_000  # characters of an output in which they are looked for


class Landlock(ConfiningSandbox):
    """Commands confined by the kernel's Landlock and our seccomp filter.

    It keeps no allowlist of hosts, because there is no network namespace to put a proxy into.
    """

    name = "landlock"

    def __init__(
        self, workspace: str | os.PathLike[str], level: Level | None = None, **options: Unpack[BackendOptions]
    ) -> None:
        super().__init__(workspace, level, **options)
        if ours := own_program_in(self.workspace):
            raise SandboxError(
                f"the workspace holds {ours[0]}, which runs toolcrib and which landlock cannot keep from commands: "
                "install toolcrib elsewhere"
            )

    def check_available(self) -> None:
        try:
            kernel.landlock_abi()
        except OSError as problem:
            raise SandboxError(f"{NO_LANDLOCK}: {problem}") from None
        if not seccomp.supported():
            raise SandboxError(f"there is no system call filter for {platform.machine()}")

    def view(self, level: Level | None = None) -> FileView:
        """The files that a command sees. Of settings with credentials only git's are hidden: git is given others, and
        cargo, conda and npm stop at settings that they cannot read.
        """
        view = super().view(level)
        git = {os.path.realpath(path) for path in settings_of_git(view.home)} if view.redacted else set()
        return view.showing(path for path, _ in view.redacted if path not in git)

    def confine(self, launch: Launch, view: FileView, level: Level) -> None:
        inside = next((place for place in view.hidden if within(place, view.workspace)), None)
        if inside is not None and level.files is Files.WORKSPACE_WRITE:
            raise SandboxError(
                f"the workspace holds {inside}, which landlock cannot hide in it; take a smaller workspace"
            )
        temporary = self.scratch.path()
        launch.env |= self._settings_of_git(launch, view, temporary)
        if view.home in view.hidden:
            launch.env |= cache_variables(temporary, launch.env)
        launch.env |= _settings_of_node(launch, view)
        launch.env, for_the_command = outer_and_inner({**launch.env, "TMPDIR": temporary})
        launch.on_close += create_missing_files(level.writable)
        allowed = seccomp.SyscallFilter(internet=level.network is Network.ON, unix=self.unix_sockets)
        instructions = Instructions(
            exec=launch.argv,
            landlock=landlock_rules(view, level, kernel.landlock_abi(), temporary),
            filter=seccomp.program(allowed),
            limits=self.limits.of_a_process(),
            capabilities=True,
            supervised=True,
            env=for_the_command,
        )
        if level.files is Files.WORKSPACE_WRITE:
            protected = ProtectedFiles(
                view.workspace, (*view.links, *view.protected, *view.watched), self.repositories.running
            )
            launch.on_close.append(protected.restore)
        group = new_control_group(self.limits, launch)
        instructions.groups = group.files
        instructions.together = None if "memory" in group.limited else self.limits.together
        if "pids" not in group.limited and self.limits.processes is not None:
            import resource

            instructions.processes = self.limits.processes
            # The kernel counts all threads of a user, so those that run already are added.
            instructions.limits.append((resource.RLIMIT_NPROC, _own_threads() + self.limits.processes))
        launch.argv = instructions.argv(launch)

    def _settings_of_git(self, launch: Launch, view: FileView, temporary: str) -> dict[str, str]:
        """Variables that lead git to its settings without their credentials, where the real ones are hidden."""
        hidden = [path for path, _ in view.redacted if path in view.hidden]
        made: dict[str, str] = {}
        system, *own = settings_of_git(view.home) if hidden else [""]
        for variable, paths in (("GIT_CONFIG_SYSTEM", [system]), ("GIT_CONFIG_GLOBAL", own)):
            if variable in launch.env or not any(os.path.realpath(path) in hidden for path in paths):
                continue
            made[variable] = f"{temporary}/{variable.lower()}-{secrets.token_hex(4)}"
            fd = os.open(made[variable], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(b"\n".join(readable_settings(path) for path in paths))
            launch.on_close.append(partial(_remove, made[variable]))
        return made

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        """The refusal that made a command fail. What Landlock cannot give is nothing that a person could allow."""
        ending = output[-ENDING:].replace(self.scratch.path(), "") if returncode else ""
        off = self.level.network is not Network.ON
        lacking = [
            what
            for what, words in LACKING.items()
            if (off or "loopback" not in what) and words.search(ending)
        ]
        if any(not os.path.lexists(match[1]) for match in IN_TMP.finditer(ending)):
            lacking.append(NOT_IN_TMP)
        if not lacking:
            return super().explain(returncode, output, launch)
        how = next(iter(self.why_not_better), TAKE_IT)
        what = ", and no ".join(lacking)
        words = f"The sandbox (landlock) gives commands no {what}. Bubblewrap would: tell the user. {how}."
        return Denial("system", lacking[0], words)

    def report(self) -> SandboxReport:
        abi = kernel.landlock_abi()
        gaps = [
            "modes, groups and times of own files outside the workspace can be changed, not their content",
            "that a file exists outside the workspace, its size and its times can be seen",
            WHILE_IT_RUNS,
            SEARCHED,
            "settings of cargo, conda, pip and npm are shown with the credentials in them",
            "programs that need /proc/self, /dev/shm or another folder than TMPDIR for temporary files do not work",
            "programs that open terminals, watch files (inotify), or share memory by a key or a name do not work",
        ]
        if self.level.files is not Files.READ_ONLY:
            gaps.append(
                "what rules deny is hidden only from commands that change nothing; other commands are asked about"
            )
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
            self.name,
            fs_write=Strength.PARTIAL,
            fs_read=Strength.ENFORCED,
            network=Strength.NONE if self.level.network is Network.ON else Strength.ENFORCED,
            processes=Strength.ENFORCED if abi >= SCOPES_SINCE else Strength.PARTIAL,
            protected_paths=Strength.PARTIAL,
            known_gaps=tuple(gaps),
            tried_gaps=partial(limit_gaps, root=os.geteuid() == 0),
            why_not_better=self.why_not_better,
            fix="install bubblewrap" if not self.why_not_better else "",
            hides_denied_paths=self.level.files is Files.READ_ONLY and not self.level.writable,
        )


def _remove(path: str, launch: Launch) -> None:
    with suppress(OSError):
        os.unlink(path)


def _settings_of_node(launch: Launch, view: FileView) -> dict[str, str]:
    """NODE_OPTIONS with what lets Node tell its memory without /proc.

    Under its own permission model Node may not read that file, and would not start: a command that asks for the model
    gets no such options.
    """
    given = launch.env.get("NODE_OPTIONS", "")
    asked = any("-permission" in words for words in (given, *launch.argv))
    if asked or NODE_MEMORY in given or view.hides(NODE_MEMORY):
        return {}
    path = re.sub(r'(["\\\\])', r"\\\1", NODE_MEMORY)
    return {"NODE_OPTIONS": f'{given} --require "{path}"'.strip()}


def landlock_rules(view: FileView, level: Level, abi: int, temporary: str) -> LandlockRules:
    """The rights that Landlock handles, and which of them it grants where."""
    handled = CHANGING
    for right, since in SINCE.items():
        if abi < since:
            handled &= ~right
    network = BIND_TCP | CONNECT_TCP if abi >= TCP_SINCE and level.network is Network.OFF else 0
    scopes = ABSTRACT_SOCKETS | SIGNALS if abi >= SCOPES_SINCE else 0
    rules = [(path, LOOKING) for path in visible_parts(view)]
    rules += [(path, READ) for path in KERNEL_FACTS]
    rules += [(path, READ | WRITE | LIST | DEVICE_IOCTL) for path in DEVICES]
    if any(within(place, view.workspace) for place in view.hidden):
        rules.append((view.workspace, LIST))
        rules += [(part, LOOKING) for part in visible_parts(view, [view.workspace])]
    else:
        rules.append((view.workspace, CHANGING if level.files is Files.WORKSPACE_WRITE else LOOKING))
    rules.append((temporary, CHANGING))
    rules += [
        (part, CHANGING)
        for part in visible_parts(view, [path for path in level.writable if path in view.shown])
    ]
    if len(rules) > MAX_RULES:
        raise SandboxError("what is hidden leaves too many files and folders to name each of them")
    return (handled, network, scopes), rules, FILE_RIGHTS


def visible_parts(view: FileView, places: Sequence[str] | None = None) -> Iterator[str]:
    """The largest parts of the tree, or of the given places, that contain nothing hidden."""
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


def _own_threads() -> int:
    """The number of threads of all processes of this user."""
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
