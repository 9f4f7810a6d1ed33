"""The outcome of a sandbox's trial, kept for later processes: only that it held, for a day, on the machine as it was.

A trial costs a process its first tenth of a second. Where a sandbox that held refuses later, no command runs: what is
kept says that a trial is not needed, and confines nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from toolcrib import __version__
from toolcrib.command.sandbox.level import SandboxError
from toolcrib.command.sandbox.mounts import bwrap
from toolcrib.private_files import OPEN_FLAGS, belongs_to_another_user, others_may, replace_private_file

__all__ = ["unless_held"]

SECONDS: Final = 24 * 3600
MAX_SIZE: Final = 100_000
# What the kernel, a container or a security module lets this process do.
SAYS: Final = (
    "/proc/sys/kernel/random/boot_id", "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/sys/kernel/security/lsm", "/proc/self/attr/current", "/proc/self/uid_map", "/proc/self/gid_map",
)  # fmt: skip
STATUS: Final = (
    "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
    "Seccomp", "Seccomp_filters",
)  # fmt: skip
NAMESPACES: Final = ("user", "mnt", "pid", "net", "ipc", "cgroup")


def unless_held(file: Path, backend: str, trial: Callable[[], str]) -> str:
    """The problem that a trial of a back end finds, "" if it holds. It is not tried if the file says that it held.

    That it held is noted, unless the file cannot be written.
    """
    if sys.platform != "linux":
        return trial()
    machine, noted = _machine(), _read(file)
    if _held(noted.get(backend), machine):
        return ""
    problem = trial()
    if not problem:
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            noted[backend] = {"machine": machine, "at": time.time()}
            replace_private_file(file, json.dumps(noted).encode())
        except OSError:
            pass
    return problem


def _held(kept: Any, machine: str) -> bool:
    """Whether it held here within a day, and nothing has changed since that could matter."""
    if not isinstance(kept, dict) or not isinstance(kept.get("at"), int | float):
        return False
    return 0 <= time.time() - kept["at"] < SECONDS and kept.get("machine") == machine


def _read(file: Path) -> dict[str, Any]:
    """What is noted; nothing where the file is missing, broken, or may be changed by somebody else."""
    try:
        descriptor = os.open(file, os.O_RDONLY | OPEN_FLAGS)
        with os.fdopen(descriptor, "rb") as opened:
            status = os.fstat(descriptor)
            if belongs_to_another_user(status) or others_may(status, 0o022):
                return {}
            noted = json.loads(opened.read(MAX_SIZE))
    except (OSError, ValueError, RecursionError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _machine() -> str:
    """A digest of what the outcome of a trial depends on."""
    facts: list[Any] = [__version__, sys.version, sys.executable, os.uname()]
    facts += [_text(name) for name in SAYS]
    facts += [line for line in _text("/proc/self/status").splitlines() if line.partition(":")[0] in STATUS]
    for name in NAMESPACES:
        try:
            facts.append(os.readlink(f"/proc/self/ns/{name}"))
        except OSError:
            facts.append("")
    try:
        programs = [bwrap(), sys.executable]
    except SandboxError:
        programs = [sys.executable]
    for path in [*programs, *map(str, sorted(Path(__file__).parents[1].rglob("*.py")))]:
        try:
            status = os.stat(path)
        except OSError:
            continue
        facts.append(
            (str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode, status.st_uid)
        )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
