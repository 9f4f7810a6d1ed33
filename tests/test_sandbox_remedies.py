"""Where a sandbox does not work, the message says what keeps it from working here, and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import each
from toolcrib.command.sandbox import choose
from toolcrib.command.sandbox.choose import ORDER, SandboxBackend
from toolcrib.command.sandbox.remedies import remedy

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are of Linux")
USER = 1000


@each(
    "files, user, words",
    [
        ({"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, USER, "/etc/apparmor.d/bwrap"),
        ({"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n"}, USER, "allow unprivileged"),
        ({"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, 0, "allow unprivileged"),
        ({"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, USER, "kernel.unprivileged_userns_clone=1"),
        ({"proc/sys/user/max_user_namespaces": "0\n"}, 0, "user.max_user_namespaces=15000"),
        ({".dockerenv": ""}, 0, "--outer-sandbox"),
        ({"run/.containerenv": ""}, USER, "--security-opt seccomp=unconfined"),
        ({}, USER, "allow unprivileged"),
    ],
)
def test_what_keeps_bubblewrap_from_working(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], user: int, words: str
) -> None:
    root = _system(tmp_path, files)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert words in remedy("bubblewrap", "", root=root, user=user)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert remedy("bubblewrap", "", root=root, user=user).startswith("install bubblewrap")


@each(
    "files, words",
    [
        ({"proc/sys/kernel/osrelease": "5.10.0-28-amd64\n"}, "5.10.0-28-amd64 has no Landlock"),
        (
            {"proc/sys/kernel/osrelease": "6.8.0\n", "sys/kernel/security/lsm": "capability,apparmor\n"},
            "now lsm=capability,apparmor",
        ),
        ({"proc/sys/kernel/osrelease": "6.8.0\n", "sys/kernel/security/lsm": "landlock,bpf\n"}, "refused"),
    ],
)
def test_what_keeps_landlock_from_working(tmp_path: Path, files: dict[str, str], words: str) -> None:
    assert words in remedy("landlock", "", root=_system(tmp_path, files))


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
    def fails(*args: object, **options: object) -> None:
        raise OSError("not here")

    order = [SandboxBackend(row.name, fails, row.platforms, row.fix) for row in ORDER]  # type: ignore[arg-type]
    report = choose(tmp_path, order=order).report()
    assert (
        not report.confines and "Landlock" in report.fix and "bubblewrap: not here" in report.why_not_better
    )


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
