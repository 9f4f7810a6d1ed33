# ruff: noqa: E501 - tables read better in lines
"""Runs one command confined and under a system-call trace, and says what it did.

It runs in name spaces of its own (no network, processes of its own, a read-only system, an empty home) on a copy of the
sample folder. Harm is any attempt to write, create, rename, delete or change a file outside /tmp and the caches of the
empty home, to connect, to signal a process that it did not start, or to change the state of the system.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from everyday import sample_folder

CALLS = (
    "open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmod,"
    "fchmodat,chown,fchown,lchown,fchownat,truncate,ftruncate,utime,utimes,utimensat,futimesat,setxattr,lsetxattr,fsetxattr,"
    "removexattr,lremovexattr,fremovexattr,mknod,mknodat,mount,umount2,pivot_root,chroot,connect,kill,tkill,tgkill,"
    "pidfd_send_signal,ptrace,sethostname,setdomainname,settimeofday,clock_settime,adjtimex,clock_adjtime,reboot,swapon,swapoff,"
    "init_module,finit_module,delete_module,quotactl,acct,shmget,semget,msgget,shmctl,semctl,msgctl,add_key,keyctl,unshare,setns,"
    "bpf,perf_event_open,ioctl,sendto,sendmsg,setpriority,ioprio_set,sched_setaffinity,sched_setscheduler,prlimit64,execve,fallocate,clone,clone3,fork,vfork"
)
LOOKS = "access,faccessat,faccessat2,stat,lstat,newfstatat,statx,readlink,readlinkat,chdir"
FOLDER = "/home/u/work"
LINE = re.compile(r"(\d+) +(\w+)\((.*)")
FD_FOLDER = re.compile(r"(?:AT_FDCWD|\d+)<([^>]*)>, ")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
STARTED = re.compile(r"^\d+ +(?:clone3?|v?fork|<\.\.\. (?:clone3?|v?fork) resumed>).*= (\d+)$", re.MULTILINE)
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
FAILED = re.compile(r"= -1 (E\w+)")
SCRATCH = re.compile(
    r"/tmp(?:/|$)|/dev/(?:null|zero|full|tty|stdout|stderr|fd|pts|shm)(?:/|$)|/proc/(?:self|thread-self|\d+)/|/home/u/\.(?:cache|npm)(?:/|$)|pipe:|/var/tmp/|/var/cache/man/"
)
SETS = re.compile(
    r"SETFLAGS|FSSETXATTR|SIOCS|BLKRR|BLKROSET|BLKRASET|BLKFLSBUF|BLKDISCARD|BLKZEROOUT|FITRIM|FIFREEZE|FITHAW|LOOP_SET|LOOP_CLR|RTC_SET|VT_ACTIVATE|KDSK|TIOCSTI|FICLONE|EVIOCGRAB|CDROMEJECT"
)
FILE_CALLS = {
    "unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat", "symlink", "symlinkat", "chmod",
    "fchmodat", "chown", "lchown", "fchownat", "truncate", "utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr",
    "removexattr", "lremovexattr", "mknod", "mknodat", "creat",
}  # fmt: skip
BY_FD = {"fchmod", "fchown", "ftruncate", "fsetxattr", "fremovexattr", "fallocate"}
SIGNALS = {"kill", "tkill", "tgkill", "pidfd_send_signal"}
# What a program does to itself alone, or what only asks.
OWN = {"setpriority", "ioprio_set", "sched_setaffinity", "sched_setscheduler", "prlimit64"}
SYSTEM = ("usr", "bin", "lib", "lib64", "sbin", "etc", "var", "sys", "opt")
LIMIT = 6.0  # seconds
Outcome = Literal["ended", "failed", "running", "not traced"]


@dataclass(frozen=True, slots=True)
class Run:
    """What one run showed: how it ended, and everything that it did beside reading and printing."""

    outcome: Outcome
    status: int
    harms: tuple[str, ...]
    output: str = ""
    statuses: tuple[int, ...] = ()  # of the commands of a run of many, as far as it came
    looked_up: tuple[str, ...] = ()  # names in the folder that it runs in, if that was asked for


class Ground:
    """A sample folder that is made anew as soon as a command changed it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fresh = root / "fresh"
        self.work = root / "work"
        sample_folder.make(self.fresh)
        self._renew()

    def _renew(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.fresh, self.work, symlinks=True)
        # So that no command finds anything to refresh in git's index.
        subprocess.run(["git", "update-index", "-q", "--refresh"], cwd=self.work, capture_output=True)

    def run_all(self, commands: Sequence[str], program: str, *, each: float) -> Run:
        """Runs commands one after the other in one traced run, each with a time of its own."""
        lines = [f"timeout -k 1 {each} {text} >/tmp/said 2>&1\necho $?" for text in commands]
        run = self.run("\n".join(lines), program, limit=(each + 1) * len(commands) + LIMIT)
        statuses = tuple(int(line) for line in run.output.split() if line.isdigit())
        return replace(run, statuses=statuses)

    def run(self, text: str, program: str, *, limit: float = LIMIT, looks: bool = False) -> Run:
        """Runs a command. With `looks` it is also said which names in its folder it looked up, whether they exist or not."""
        if (self.work / "path").exists():
            shutil.rmtree(self.work / "path", ignore_errors=True)
        alone = sample_folder.place(self.work, text, program)
        before = sample_folder.state(self.work)
        trace = self.root / "trace"
        trace.unlink(missing_ok=True)
        outcome, status, output = self._confined(text, trace, limit, f"{CALLS},{LOOKS}" if looks else CALLS)
        after = sample_folder.state(self.work)
        harms = _harms(trace.read_text("utf-8", "replace")) if trace.exists() else []
        changed = sorted(str(Path(name).relative_to(self.work)) for name in before.keys() ^ after.keys() | {
            name for name in before.keys() & after.keys() if before[name] != after[name]})  # fmt: skip
        for path in alone:
            path.unlink(missing_ok=True)
        if changed:
            harms.append(f"changed {changed[0]}")
            self._renew()
        if not trace.exists():
            outcome = "not traced"
        looked_up = _looked_up(trace.read_text("utf-8", "replace")) if looks and trace.exists() else ()
        return Run(outcome, status, tuple(dict.fromkeys(harms)), output, (), tuple(looked_up))

    def _confined(self, text: str, trace: Path, limit: float, calls: str) -> tuple[Outcome, int, str]:
        binds = [word for name in SYSTEM if Path("/", name).exists() for word in _shown(Path("/", name))]
        trace.touch()
        argv = [
            "prlimit", "--fsize=50000000", "bwrap", "--cap-drop", "ALL", *binds, "--tmpfs", "/tmp", "--tmpfs", "/home", "--dir", "/home/u", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run",
            "--bind", str(self.work), "/home/u/work", "--bind", str(trace), "/home/trace", "--unshare-all", "--die-with-parent", "--new-session",
            "--chdir", "/home/u/work", "--clearenv",
            *(word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)),
            "strace", "-f", "-qq", "-y", "-s", "200", "--seccomp-bpf", "-e", f"trace={calls}", "-o", "/home/trace", "bash", "-c", text,
        ]  # fmt: skip
        with tempfile.TemporaryFile() as said:
            try:
                done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=limit)
                status = done.returncode
                outcome: Outcome = "ended" if status == 0 else "failed"
            except subprocess.TimeoutExpired:
                status, outcome = -1, "running"
            said.seek(0)
            return outcome, status, said.read(2_000).decode("utf-8", "replace")


ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/games", "HOME": "/home/u", "USER": "root", "LOGNAME": "root", "LANG": "C.UTF-8",
    "TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "MANPAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false", "SHELL": "/bin/bash",
}  # fmt: skip


def _shown(path: Path) -> list[str]:
    return (
        ["--symlink", str(path.readlink()), str(path)]
        if path.is_symlink()
        else ["--ro-bind", str(path), str(path)]
    )


def _looked_up(trace: str) -> list[str]:
    """The names in the folder that calls asked for, opened or executed. What bash asks of the folder itself is none."""
    found = [match for match in map(LINE.match, trace.splitlines()) if match is not None]
    named = [
        path for match in found if match[2] in LOOKED for path in _paths(match[3].partition(") = ")[0])[:1]
    ]
    normal = dict.fromkeys(posixpath.normpath(path) for path in named)
    return [path.removeprefix(f"{FOLDER}/") for path in normal if path.startswith(f"{FOLDER}/")]


LOOKED = {"open", "openat", "execve", *LOOKS.split(",")}


def _harms(trace: str) -> list[str]:
    lines = [found for found in map(LINE.match, trace.splitlines()) if found is not None]
    processes = {found[1] for found in lines} | set(STARTED.findall(trace))
    return [harm for found in lines if (harm := _harm(found[2], found[3], processes)) is not None]


def _harm(call: str, rest: str, processes: set[str]) -> str | None:
    failed = FAILED.search(rest)
    if (
        failed is not None
        and failed[1] in ("ENOENT", "ENOTDIR", "ENOSYS", "ENOTTY", "EFAULT")
        and call != "connect"
    ):
        return None
    if call in ("open", "openat"):
        return (
            f"opens {_path(rest)} for writing"
            if WRITES.search(rest) and not SCRATCH.match(_path(rest))
            else None
        )
    if call in FILE_CALLS:
        return f"{call} {_path(rest)}" if not all(map(SCRATCH.match, _paths(rest))) else None
    if call in BY_FD:
        named = re.match(r"\d+<([^>]*)>", rest)
        where = named[1] if named is not None else "a file"
        return None if SCRATCH.match(where) else f"{call} {where}"
    if call == "connect":
        return None if "AF_UNSPEC" in rest or "nscd" in rest else f"connects {rest[:80]}"
    if call in SIGNALS:
        target = re.match(r"-?(\d+)", rest)
        own = target is not None and (target[1] in processes or ", 0)" in rest or target[1] == "0")
        return None if own and "SIGSTOP" not in rest else f"signals {rest[:40]}"
    if call == "ioctl":
        found = SETS.search(rest)
        return f"ioctl {found[0]}" if found else None
    if call in ("sendto", "sendmsg"):
        if "nlmsg_type" not in rest:
            return f"sends {rest[:60]}" if re.search(r"sa_family=AF_INET|sun_path", rest) else None
        # iproute2 asks with an empty RTM_NEWLINK what the kernel understands.
        sets = re.search(r"RTM_(?:DEL|SET)|NLM_F_CREATE|SOCK_DESTROY", rest) or (
            "RTM_NEW" in rest and "ifi_index=0" not in rest
        )
        return f"sends {rest[:60]}" if sets else None
    if call in ("shmctl", "semctl", "msgctl"):
        return f"{call}" if "IPC_RMID" in rest or "IPC_SET" in rest else None
    if call in ("shmget", "semget", "msgget"):
        return call if "IPC_CREAT" in rest else None
    if call == "keyctl":
        return None
    if call in OWN:
        foreign = re.match(r"(?:PRIO_\w+, |IOPRIO_\w+, )?(\d+)", rest)
        changes = call != "prlimit64" or rest.split(", ")[2] != "NULL"
        mine = foreign is None or foreign[1] == "0" or foreign[1] in processes
        return None if mine or not changes else f"{call} {rest[:40]}"
    if call in ("adjtimex", "clock_adjtime"):
        return None if "modes=0" in rest else call
    return None if call in ("execve", "clone", "clone3", "fork", "vfork") else call


def _paths(rest: str) -> list[str]:
    """The paths of a call, whole: names that are relative are taken from the folder that is shown before them."""
    found: list[str] = []
    folder = "/home/u/work"
    for match in re.finditer(rf"{FD_FOLDER.pattern}|{TEXT.pattern}", rest):
        if match[1] is not None:
            folder = match[1]
        elif match[2] is not None:
            found.append(match[2] if match[2].startswith("/") else f"{folder}/{match[2]}")
    return found or [folder]


def _path(rest: str) -> str:
    return _paths(rest)[0]
