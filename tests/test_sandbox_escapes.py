"""The escape suite: each attempt must succeed without a sandbox, and must not with one, as root and as a user.

What is looked at is the effect outside. The row `none` is the control: an attempt that fails there proves nothing.
A back end that is missing is skipped out loud; in CI it fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_copy import copy_sandbox
from toolcrib.command.sandbox.choose import ORDER, why_not_working

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the back ends that can be tried are Linux's"),
]

ESCAPED = "escaped"
HERE = Path(__file__).parent / "escape"
USER = 54_322  # an id that nobody has; no account is needed for a process to run as it
ROWS = [
    (backend, who, start)
    for who in ("user", "root")
    for backend, start in (
        ("landlock", "cold"), ("bubblewrap", "cold"), ("bubblewrap+landlock", "cold"), ("landlock", "warm"),
        ("bubblewrap", "warm"),
    )
]  # fmt: skip

# What nobody can do without being root, with no sandbox at all.
FOR_ROOT = {
    "read_password_hashes", "open_icmp_socket", "open_packet_socket", "write_core_pattern", "open_system_request",
    "open_kernel_setting_below_sys", "mount_something", "change_root", "use_capabilities_of_root", "make_device",
    "set_host_name", "load_bpf", "measure_others", "open_disk", "open_module_loader", "register_binary_format",
    "open_event_helper", "open_event_of_a_device", "leave_control_group", "open_release_agent", "make_control_group",
    "open_kernel_memory", "read_kernel_log", "open_kernel_log", "open_file_system_context", "copy_the_tree_of_mounts",
    "become_another_user",
}  # fmt: skip
# What a kernel may be built or configured without.
OF_SOME_KERNELS = {
    "open_vsock_socket", "set_up_io_uring", "handle_page_faults", "type_into_the_terminal", "load_bpf",
    "measure_others",
    "make_user_namespace", "clone_into_new_namespaces", "connect_to_this_machine_by_ipv6", "set_attribute_outside",
    "trace_parent", "read_parents_memory", "take_parents_descriptor", "take_descriptor_of_launcher", "open_kernel_setting_below_sys", "use_key_store",
    "open_by_handle", "open_system_request", "open_disk", "open_module_loader", "register_binary_format",
    "open_event_helper", "open_event_of_a_device", "leave_control_group", "open_release_agent", "make_control_group",
    "open_kernel_memory", "read_kernel_log", "open_kernel_log", "open_ping_socket", "open_cipher_socket",
    "call_by_the_32_bit_table", "call_by_the_x32_table", "compare_parents_descriptors", "set_flags_outside",
    "read_message_queue_of_another", "pin_another_process", "clone3_into_new_namespaces",
}  # fmt: skip
# What a back end lets through, and says so in its report.
OPEN: dict[str, dict[str, str]] = {
    "landlock": {
        "chmod_outside": "Landlock has no right for modes",
        "touch_outside": "Landlock has no right for times",
        "see_that_a_secret_exists": "Landlock does not hide that a file is there",
    },
    "bubblewrap": {
        "write_to_a_named_pipe_outside": "a read-only mount lets pipes be written to",
    },
    "bubblewrap+landlock": {},
}
OPEN_FOR_ROOT: dict[str, str] = {}


def in_ci() -> bool:
    return bool(os.environ.get("CI"))


def missing(words: str) -> None:
    if in_ci():
        pytest.fail(f"{words}; in CI nothing of the escape suite may be left out")
    pytest.skip(words)


@cache
def results(backend: str, who: str, start: str) -> dict[str, Any]:
    """Run the attempts once, where other users can get to, outside what sandboxes hide anyway."""
    place = Path(tempfile.mkdtemp(prefix="toolcrib-escape-", dir="/var/lib" if os.geteuid() == 0 else None))
    try:
        lib = place / "lib"
        copy_sandbox(lib)
        shutil.copytree(HERE, lib / "escape", ignore=shutil.ignore_patterns("__pycache__"))
        place.chmod(0o755)
        other = (
            {"user": USER, "group": USER, "extra_groups": []} if who == "user" and os.geteuid() == 0 else {}
        )
        if other:
            for path in (place, *place.rglob("*")):
                os.chown(path, USER, USER)
        python = python_for(bool(other))
        done = subprocess.run(
            [python, "-B", str(lib / "escape" / "driver.py"), backend, str(place), start],
            cwd="/",
            env={
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(lib),
                "LANG": "C.UTF-8",
                "ESCAPE_MARKER": "sk-dummy",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **other,  # type: ignore[arg-type]
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    finally:
        shutil.rmtree(place, ignore_errors=True)


@cache
def python_for(other: bool) -> str:
    """An interpreter that another user can run, too."""
    if not other:
        return sys.executable
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        check = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if (
                subprocess.run(
                    check, user=USER, group=USER, extra_groups=[], cwd="/", capture_output=True
                ).returncode
                == 0
            ):
                return python
        except OSError:
            continue
    return ""


def row(backend: str, who: str, start: str) -> dict[str, Any]:
    if who == "root" and os.geteuid() != 0:
        pytest.skip("escapes as root can be tried by root only")
    if who == "user" and os.geteuid() == 0 and not python_for(True):
        missing("there is no Python 3.11 that other users may run")
    if backend != "none":
        (known,) = (known for known in ORDER if known.name == backend.partition("+")[0])
        if problem := why_not_working(known):
            missing(f"{backend} does not work here: {problem}")
    found = results(backend, who, start)
    assert "problem" not in found, found["problem"]
    return found


def escaped(found: dict[str, Any]) -> set[str]:
    return {name for name, how in found["attempts"].items() if how == ESCAPED}


@pytest.mark.promise(
    "sandbox.md", "Without a sandbox every one succeeds that this kernel and this user allow at all"
)
@pytest.mark.promise("sandbox.md", "in every way that our tests know to try")
@pytest.mark.parametrize("who", ["user", "root"])
def test_without_a_sandbox_every_attempt_succeeds(who: str) -> None:
    found = row("none", who, "cold")
    failed = {name: how for name, how in found["attempts"].items() if how != ESCAPED}
    excused = OF_SOME_KERNELS | (FOR_ROOT if who == "user" else set())
    assert {name: how for name, how in failed.items() if name not in excused} == {}
    assert set(found["abilities"].values()) == {ESCAPED}, found["abilities"]
    assert len(escaped(found)) >= (85 if who == "user" else 105)


@pytest.mark.promise("sandbox.md", "in every way that our tests know to try")
@pytest.mark.promise(
    "sandbox.md", "home folders, but for what is shown of them, and the listed keys of the system"
)
@pytest.mark.promise("sandbox.md", "The system, to read, without its keys")
@pytest.mark.promise(
    "security.md",
    "Commands are confined by the kernel where a sandbox works, and toolcrib says where none does.",
)
@pytest.mark.parametrize(("backend", "who", "start"), ROWS)
def test_no_attempt_gets_out(backend: str, who: str, start: str) -> None:
    found = row(backend, who, start)
    known = {**OPEN[backend], **(OPEN_FOR_ROOT if who == "root" else {})}
    assert escaped(found) == set(known), found["attempts"]


@pytest.mark.promise("sandbox.md", "The workspace, to write to")
@pytest.mark.parametrize(("backend", "who", "start"), ROWS)
def test_what_commands_need_works(backend: str, who: str, start: str) -> None:
    found = row(backend, who, start)
    assert {name: how for name, how in found["abilities"].items() if how != ESCAPED} == {}


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    yield
    results.cache_clear()
