"""How to make a sandbox work on this machine: what the kernel and the surroundings say of why it does not."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

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
CONTAINER = (
    "this container forbids user namespaces: start it with --security-opt seccomp=unconfined --security-opt "
    "systempaths=unconfined; or, if the container is the sandbox that you want, say so with --outer-sandbox"
)
NAMESPACES = "allow unprivileged user namespaces"
OLD_KERNEL = "Linux {} has no Landlock: it needs a kernel from 5.13 on"
NOT_ENABLED = (
    "Landlock is not enabled in this kernel: add landlock to its boot parameter lsm=, which is now lsm={}, "
    "and restart"
)
FILTERED = "Landlock is enabled but refused, as a container does that filters system calls: allow them to it"
CONTAINERS = (".dockerenv", "run/.containerenv")


def remedy(backend: str, otherwise: str, *, root: Path = Path("/"), user: int | None = None) -> str:
    """What a person can do so that a back end works; `otherwise` where nothing is known of it.

    `root` is where the files of the system are, and `user` the number of the user who runs commands.
    """
    if backend == "bubblewrap":
        return _bubblewrap(root, os.geteuid() if user is None else user)
    return _landlock(root) if backend == "landlock" else otherwise


def _bubblewrap(root: Path, user: int) -> str:
    if shutil.which("bwrap") is None:
        reason = _namespaces(root, user)
        return f"{INSTALL}; {reason}" if reason else INSTALL
    return _namespaces(root, user) or NAMESPACES


def _namespaces(root: Path, user: int) -> str:
    """Why user namespaces cannot be made, with what to do; "" where nothing is seen."""
    if _says(root, "proc/sys/user/max_user_namespaces") == "0":
        return NONE_ALLOWED
    if user and _says(root, "proc/sys/kernel/unprivileged_userns_clone") == "0":
        return CLONE
    if user and _says(root, "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return APPARMOR
    return CONTAINER if _in_container(root) else ""


def _landlock(root: Path) -> str:
    release = _says(root, "proc/sys/kernel/osrelease")
    version = re.match(r"(\d+)\.(\d+)", release)
    if version is not None and (int(version[1]), int(version[2])) < (5, 13):
        return OLD_KERNEL.format(release)
    modules = _says(root, "sys/kernel/security/lsm")
    if modules and "landlock" not in modules.split(","):
        return NOT_ENABLED.format(modules)
    return FILTERED


def _in_container(root: Path) -> bool:
    return any((root / name).exists() for name in CONTAINERS)


def _says(root: Path, name: str) -> str:
    """The content of a small file of the system; "" if there is none."""
    try:
        return (root / name).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
