"""Python as it is on Windows, as far as another system can show it: run a program without what only POSIX has.

`python tests/without_posix.py PROGRAM [ARGUMENTS...]` loads the standard library first, hides the modules that Windows
does not have, removes what `os`, `signal`, `socket` and asyncio's loop do not have there, says that the platform is
win32, and then runs the program in this process. What it cannot show are drive letters, Windows' own file locks and
its processes: `os.name` stays, because the standard library would stop working.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import importlib
import os
import runpy
import select
import signal
import stat
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

MODULES = (
    "fcntl",
    "pwd",
    "grp",
    "resource",
    "termios",
    "pty",
    "tty",
    "syslog",
    "readline",
    "curses",
    "posix",
    "_posixsubprocess",
)

# Modules of pywin32, which the MCP SDK brings along on Windows, and imports there.
PYWIN32 = ("pywintypes", "win32api", "win32con", "win32job")

# What Python's documentation says is "Availability: Unix" (or a part of it), of what toolcrib could use.
NOT_IN_OS = [
    "fork",
    "forkpty",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getgroups",
    "setuid",
    "setgid",
    "setsid",
    "getsid",
    "getpgid",
    "setpgid",
    "getpgrp",
    "killpg",
    "tcgetpgrp",
    "tcsetpgrp",
    "openpty",
    "O_NOFOLLOW",
    "O_DIRECTORY",
    "O_PATH",
    "O_CLOEXEC",
    "O_NONBLOCK",
    "O_NOCTTY",
    "O_SYNC",
    "O_DSYNC",
    "O_TMPFILE",
    "fchmod",
    "fchown",
    "chown",
    "lchown",
    "chroot",
    "fchdir",
    "mkfifo",
    "mknod",
    "statvfs",
    "fstatvfs",
    "uname",
    "wait",
    "waitid",
    "wait3",
    "wait4",
    "WNOHANG",
    "WEXITED",
    "P_PID",
    "P_PIDFD",
    "pidfd_open",
    "memfd_create",
    "eventfd",
    "pipe2",
    "register_at_fork",
    "sched_getaffinity",
    "nice",
    "getloadavg",
    "ttyname",
    "ctermid",
    "getpriority",
    "setpriority",
    "sync",
    "fdatasync",
    "posix_fallocate",
    "preadv",
    "pwritev",
    "sendfile",
    "copy_file_range",
    "splice",
    "getxattr",
    "setxattr",
    "listxattr",
    "removexattr",
    "unshare",
    "setns",
    "confstr",
    "sysconf",
    "pathconf",
    "fpathconf",
    "lockf",
    "F_LOCK",
    "major",
    "minor",
    "makedev",
    "RTLD_LAZY",
    "sched_yield",
    "initgroups",
    "WIFEXITED",
    "WIFSIGNALED",
    "WTERMSIG",
    "WCOREDUMP",
    "WSTOPSIG",
]
NOT_IN_SIGNAL = ["SIGKILL", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGCHLD", "SIGPIPE", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT", "SIGSTOP", "SIGWINCH", "SIGUSR1", "SIGUSR2", "SIGXCPU", "setitimer", "getitimer", "alarm", "pthread_sigmask", "pthread_kill", "sigwait", "pause", "set_wakeup_fd_", "siginterrupt"]  # fmt: skip


STANDARD = [
    "asyncio",
    "ssl",
    "subprocess",
    "tempfile",
    "shutil",
    "selectors",
    "multiprocessing",
    "zipfile",
    "tarfile",
    "getpass",
    "webbrowser",
    "platform",
    "uuid",
    "mimetypes",
    "importlib.metadata",
    "unittest.mock",
    "sqlite3",
    "email.message",
    "http.client",
    "urllib.request",
    "logging.handlers",
    "ctypes",
    "pathlib",
    "glob",
    "pydoc",
    "sysconfig",
]
PACKAGES = [
    "typer",
    "rich.console",
    "rich.live",
    "rich.progress",
    "pydantic",
    "docstring_parser",
    "jsonschema_rs",
    "yaml",
    "opentelemetry.trace",
    "tree_sitter",
    "uvicorn",
]


def hide_posix() -> None:
    """Make this process look like one on Windows, for what is imported and called from now on."""
    for module in (*STANDARD, *PACKAGES):
        importlib.import_module(module)
    sys.modules["sysconfig"].get_config_vars()
    asyncio.new_event_loop().close()  # later asyncio would look for Windows' own loops
    winapi: Any = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda command: True)
    sys.modules["shutil"]._winapi = winapi  # type: ignore[attr-defined] # `which` asks it from Python 3.12 on
    sys.modules["msvcrt"] = _msvcrt()
    for name in PYWIN32:
        sys.modules[name] = types.ModuleType(name)
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for name in NOT_IN_OS:
        if hasattr(os, name):
            delattr(os, name)
    shutil: Any = sys.modules["shutil"]
    shutil._use_fd_functions, shutil._rmtree_impl = (
        False,
        shutil._rmtree_unsafe,
    )  # the first up to Python 3.13
    if hasattr(os, "process_cpu_count"):  # what it calls was just removed; on Windows it is this
        os.process_cpu_count = os.cpu_count
    for name in NOT_IN_SIGNAL:
        if hasattr(signal, name):
            delattr(signal, name)
    for function in TAKING_DIR_FD:
        _without_dir_fd(function)
    _without_descriptors("scandir", "listdir", "chdir")
    os.supports_dir_fd = set()
    os.supports_fd = set()
    os.supports_follow_symlinks = set()
    for kind in (asyncio.SelectorEventLoop, asyncio.BaseEventLoop):
        for method in ("add_signal_handler", "add_reader", "add_writer"):
            setattr(kind, method, _not_implemented)
    subprocess.Popen.kill = lambda child: os.kill(child.pid, 9)  # type: ignore[method-assign] # TerminateProcess
    select.select = _sockets_only(select.select)  # type: ignore[assignment]
    sys.platform = "win32"


def _msvcrt() -> types.ModuleType:
    """Windows' locks of bytes, as far as two programs can tell."""
    import fcntl

    def locking(fd: int, mode: int, count: int) -> None:
        at = os.lseek(fd, 0, os.SEEK_CUR)
        fcntl.lockf(fd, fcntl.LOCK_EX if mode == 1 else fcntl.LOCK_UN, count, at)

    module = types.ModuleType("msvcrt")
    module.LK_LOCK, module.LK_UNLCK, module.locking = 1, 0, locking  # type: ignore[attr-defined]
    return module


def _not_implemented(*args: Any, **named: Any) -> Any:
    raise NotImplementedError


def _sockets_only(real: Any) -> Any:
    def function(*lists: Any) -> Any:
        for descriptor in (item for given in lists[:3] for item in given):
            number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                raise OSError(10038, "An operation was attempted on something that is not a socket")
        return real(*lists)

    return function


TAKING_DIR_FD = [
    "open",
    "stat",
    "lstat",
    "mkdir",
    "rename",
    "replace",
    "unlink",
    "rmdir",
    "symlink",
    "link",
    "readlink",
    "utime",
    "chmod",
    "access",
    "remove",
]


def _without_dir_fd(name: str) -> None:
    real = getattr(os, name)

    def function(*args: Any, **named: Any) -> Any:
        for key in ("dir_fd", "src_dir_fd", "dst_dir_fd"):
            if named.get(key) is not None:
                raise NotImplementedError(f"{key} unavailable on this platform")
            named.pop(key, None)
        if name == "open" and Path(args[0]).is_dir():
            raise PermissionError(13, "Permission denied", args[0])  # as Windows answers for a folder
        return real(*args, **named)

    setattr(os, name, function)


def _without_descriptors(*names: str) -> None:
    for name in names:
        real = getattr(os, name)

        def function(path: Any = ".", *args: Any, real: Any = real, name: str = name) -> Any:
            if isinstance(path, int):
                raise TypeError(f"{name}: path should be string, bytes, os.PathLike or None, not int")
            return real(path, *args)

        setattr(os, name, function)


def main() -> None:
    hide_posix()
    program, sys.argv = sys.argv[1], sys.argv[1:]
    if program == "-m":
        sys.argv = sys.argv[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
