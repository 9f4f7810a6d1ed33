"""Where a sandbox does not work, the message says what keeps it from working here, and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import each
from toolcrib.command.sandbox import Sandbox, SandboxError, choose
from toolcrib.command.sandbox.choose import SandboxBackend
from toolcrib.command.sandbox.remedies import remedy

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are of Linux")
USER = 1000


NO_NAMESPACE = "bwrap: No permissions to create new namespace, likely because the kernel does not allow ..."
APPARMOR = {"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}
DOCKER = {".dockerenv": ""}
FILTERED = {"proc/self/status": "Name:\tpython\nSeccomp:\t2\nSeccomp_filters:\t1\n"}
OUTER = "--outer-sandbox"


@each(
    "said, files, user, words, absent",
    [
        ("bwrap: setting up uid map: Permission denied", APPARMOR, USER, "/etc/apparmor.d/bwrap", OUTER),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", APPARMOR, USER, "AppArmor", "seccomp"),
        (NO_NAMESPACE, {"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n"}, USER, "nothing that", "AppArmor"),
        (NO_NAMESPACE, APPARMOR, 0, "nothing that can be seen", "AppArmor"),
        (NO_NAMESPACE, {"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, USER, "unprivileged_userns_clone=1", OUTER),
        (NO_NAMESPACE, {"proc/sys/user/max_user_namespaces": "0\n"}, 0, "max_user_namespaces=15000", "too many"),
        (
            "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
            {"proc/sys/user/max_user_namespaces": "9\n"}, USER, "too many user namespaces", OUTER,
        ),
        (NO_NAMESPACE, DOCKER | FILTERED, 0, "--security-opt seccomp=unconfined", "AppArmor"),
        (NO_NAMESPACE, {"run/.containerenv": ""} | FILTERED, USER, OUTER, "RestrictNamespaces"),
        (NO_NAMESPACE, FILTERED, USER, "RestrictNamespaces=", "container"),
        (NO_NAMESPACE, DOCKER, USER, OUTER, "seccomp=unconfined"),
        (NO_NAMESPACE, {}, USER, "nothing that can be seen", OUTER),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", DOCKER, 0, "systempaths=unconfined", "seccomp"),
        ("bwrap: Failed to make / slave: Permission denied", DOCKER, 0, "apparmor=unconfined", "seccomp"),
        ("bwrap is not installed", DOCKER | FILTERED, USER, "install bubblewrap", "container"),
        ("bwrap is not installed", {"proc/sys/user/max_user_namespaces": "0\n"}, USER, "max_user_namespaces", OUTER),
    ],
)  # fmt: skip
def test_what_keeps_bubblewrap_from_working(
    tmp_path: Path, said: str, files: dict[str, str], user: int, words: str, absent: str
) -> None:
    told = remedy("bubblewrap", said, "", root=_system(tmp_path, files), user=user)
    assert words in told and absent not in told, told
    assert told.startswith("install bubblewrap") == ("not installed" in said)


def test_nothing_is_blamed_for_what_is_not_known_to_come_from_it(tmp_path: Path) -> None:
    root = _system(tmp_path, DOCKER | FILTERED | APPARMOR)
    for problem in (
        "it did not end in time",
        "a command read a secret",
        "bwrap: Can't chdir to /x: No such file",
    ):
        assert remedy("bubblewrap", problem, "", root=root, user=USER) == ""
    assert remedy("landlock", "there is no system call filter for riscv64", "", root=root) == ""
    assert remedy("another", "it did not end in time", "install it", root=root) == "install it"


@each(
    "files, words",
    [
        ({"proc/sys/kernel/osrelease": "5.10.0-28-amd64\n"}, "5.10.0-28-amd64 has no Landlock"),
        (
            {"proc/sys/kernel/osrelease": "6.8.0\n", "sys/kernel/security/lsm": "capability,apparmor\n"},
            "now lsm=capability,apparmor",
        ),
        (
            {"proc/sys/kernel/osrelease": "6.8.0\n", "sys/kernel/security/lsm": "landlock,bpf\n", **FILTERED},
            "a filter of system calls refuses",
        ),
        ({"proc/sys/kernel/osrelease": "6.8.0\n"}, "built without Landlock"),
    ],
)
def test_what_keeps_landlock_from_working(tmp_path: Path, files: dict[str, str], words: str) -> None:
    problem = "this kernel has no Landlock: [Errno 38] Function not implemented"
    assert words in remedy("landlock", problem, "", root=_system(tmp_path, files))


def _system(base: Path, files: dict[str, str]) -> Path:
    """A folder with files as a system has them; each case has its own."""
    root = base / str(len(list(base.iterdir())))
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    root.mkdir(exist_ok=True)
    return root


@linux
def test_without_a_sandbox_the_person_is_told_how_to_have_one(tmp_path: Path) -> None:
    def failing(problem: str) -> Callable[..., Sandbox]:
        def fails(*args: object, **options: object) -> Sandbox:
            raise SandboxError(problem)

        return fails

    said = {"bubblewrap": "bwrap is not installed", "landlock": "it did not end in time"}
    order = [SandboxBackend(name, failing(problem), ("linux",), "") for name, problem in said.items()]
    report = choose(tmp_path, order=order).report()
    assert not report.confines and report.fix.startswith("install bubblewrap") and "; or" not in report.fix
    assert report.why_not_better[1] == "landlock: it did not end in time"


@linux
@pytest.mark.slow
def test_a_kernel_that_allows_no_user_namespaces_is_recognised(tmp_path: Path) -> None:
    """A user namespace of the test's own, in which no further one may be made: bubblewrap really fails there."""
    if shutil.which("bwrap") is None or shutil.which("unshare") is None:
        pytest.skip("bwrap or unshare is not installed")
    script = (
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "
        f'"{sys.executable}" -m toolcrib doctor'
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if "unshare failed" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip(f"no user namespace can be made here: {done.stderr.strip()[:100]}")
    assert "bubblewrap: commands are confined" not in done.stdout, done.stdout
    assert "user.max_user_namespaces=15000" in done.stdout, done.stdout + done.stderr
