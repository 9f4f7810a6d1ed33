"""How to make a sandbox work on this machine: what the kernel and the surroundings say of why it does not."""

from __future__ import annotations

import os
import re
from pathlib import Path

from toolcrib.command.sandbox.landlock import NO_LANDLOCK
from toolcrib.command.sandbox.mounts import NOT_INSTALLED

__all__ = ["remedy"]

INSTALL = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap)"
# Ubuntu from 23.10 on lets only programs with an AppArmor profile make user namespaces.
APPARMOR = (
    "AppArmor keeps bwrap from making user namespaces, as Ubuntu does from 23.10 on. Give it a profile: write "
    "'abi <abi/4.0>, include <tunables/global> profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }' to "
    "/etc/apparmor.d/bwrap and run sudo systemctl reload apparmor; or allow them to all programs: "
    "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
)
CLONE = "the kernel allows user namespaces to root alone: sudo sysctl -w kernel.unprivileged_userns_clone=1"
NONE_ALLOWED = "the kernel allows no user namespaces: sudo sysctl -w user.max_user_namespaces=15000"
TOO_MANY = (
    "too many user namespaces exist or lie in each other: sudo sysctl -w user.max_user_namespaces=15000"
)
SECCOMP = "a filter of system calls (seccomp) forbids user namespaces"
BY_CONTAINER = (
    ", as Docker's does by default: start the container with --security-opt seccomp=unconfined --security-opt "
    "systempaths=unconfined"
)
BY_SERVICE = ": allow them to this program (RestrictNamespaces= and SystemCallFilter= of a systemd service)"
REFUSED = "allow unprivileged user namespaces; nothing that can be seen from here says what refuses them"
MASKED = (
    "parts of /proc are masked, as in a container, so no new one may be mounted: start the container with "
    "--security-opt systempaths=unconfined (Kubernetes: procMount: Unmasked)"
)
MOUNTS = (
    "user namespaces can be made here, but nothing can be mounted in them: an AppArmor profile forbids it, as "
    "Docker's does by default: start the container with --security-opt apparmor=unconfined"
)
OUTER = "; or, if the container is the sandbox that you want, say so with --outer-sandbox"
# What bwrap says where it fails: at the namespace, because there are too many, at a new /proc, at its first mounts.
NO_NAMESPACE = re.compile(r"new namespace|setting up [ug]id map|RTM_NEWADDR")
NO_SPACE = re.compile(r"max_\*_namespaces exceeded|No space left")
NO_PROC = re.compile(r"Can't mount proc\b")
NO_MOUNT = re.compile(
    r"make / (?:slave|private)|Failed to mount tmpfs|pivot_root|Can't (?:bind )?(?:re)?mount"
)
OLD_KERNEL = "Linux {} has no Landlock: it needs a kernel from 5.13 on"
NOT_ENABLED = (
    "Landlock is not enabled in this kernel: add landlock to its boot parameter lsm=, which is now lsm={}, "
    "and restart"
)
FILTERED = (
    "a filter of system calls refuses Landlock, as an old one of a container does: allow landlock_create_ruleset, "
    "landlock_add_rule and landlock_restrict_self in it"
)
NOT_BUILT = "this kernel was built without Landlock, or it is not among its boot parameter lsm="
CONTAINERS = (".dockerenv", "run/.containerenv")


def remedy(
    backend: str, problem: str, otherwise: str, *, root: Path = Path("/"), user: int | None = None
) -> str:
    """What a person can do so that a back end works; "" where nothing is known to help.

    `problem` is what the back end said when it was tried, and `otherwise` the answer for back ends that this module
    does not know. `root` is where the files of the system are, and `user` the number of the user who runs commands.
    """
    if backend == "bubblewrap":
        return _bubblewrap(problem, root, os.geteuid() if user is None else user)
    return _landlock(problem, root) if backend == "landlock" else otherwise


def _bubblewrap(problem: str, root: Path, user: int) -> str:
    if NOT_INSTALLED in problem:
        kernel = _setting_of_the_kernel(root, user)
        return f"{INSTALL}; {kernel}" if kernel else INSTALL
    outer = OUTER if _in_container(root) else ""
    if NO_NAMESPACE.search(problem):
        if kernel := _setting_of_the_kernel(root, user):
            return kernel
        if NO_SPACE.search(problem):
            return TOO_MANY
        if _is_filtered(root):
            return SECCOMP + (BY_CONTAINER + OUTER if outer else BY_SERVICE)
        return REFUSED + outer
    if NO_PROC.search(problem):
        return MASKED + outer
    return MOUNTS + outer if NO_MOUNT.search(problem) else ""


def _setting_of_the_kernel(root: Path, user: int) -> str:
    """The setting of the kernel that forbids user namespaces, with what to do; "" where none does."""
    if _says(root, "proc/sys/user/max_user_namespaces") == "0":
        return NONE_ALLOWED
    if user and _says(root, "proc/sys/kernel/unprivileged_userns_clone") == "0":
        return CLONE
    if user and _says(root, "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return APPARMOR
    return ""


def _landlock(problem: str, root: Path) -> str:
    if NO_LANDLOCK not in problem:
        return ""
    release = _says(root, "proc/sys/kernel/osrelease")
    version = re.match(r"(\d+)\.(\d+)", release)
    if version is not None and (int(version[1]), int(version[2])) < (5, 13):
        return OLD_KERNEL.format(release)
    modules = _says(root, "sys/kernel/security/lsm")
    if modules and "landlock" not in modules.split(","):
        return NOT_ENABLED.format(modules)
    return FILTERED if _is_filtered(root) else NOT_BUILT


def _is_filtered(root: Path) -> bool:
    """Whether a filter of system calls was put on this process."""
    return "Seccomp:\t2" in _says(root, "proc/self/status").splitlines()


def _in_container(root: Path) -> bool:
    return any((root / name).exists() for name in CONTAINERS)


def _says(root: Path, name: str) -> str:
    """The content of a small file of the system; "" if there is none."""
    try:
        return (root / name).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
