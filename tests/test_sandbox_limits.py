"""Floods: what a command may take of processes and memory, counted for all of them together."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sandbox_runs import BACKENDS, backend, run
from toolcrib.command.sandbox import Limits
from toolcrib.command.sandbox.process import control_groups

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the back ends that can be tried are Linux's")

MANY = (
    f"{sys.executable} -c 'import subprocess, time; "
    'held = [subprocess.Popen(["sleep", "2"]) for _ in range(40)]; time.sleep(2)\''
)
HOG = f"{sys.executable} -c 'import time; held = bytearray(b\"x\") * (60 << 20); time.sleep(1.5)'"
FLOODS = {
    "processes": (Limits(processes=12), MANY, "the number of processes"),
    "memory": (
        Limits(together=150 << 20),
        f"{HOG} & {HOG} & {HOG} & wait",
        "the memory of all processes together",
    ),
}
# Run where no control group can be made: the same, as a program of its own.
PROGRAM = """
import json, sys
from tests.sandbox_runs import backend, run
from tests.test_sandbox_limits import FLOODS
from toolcrib.command.sandbox.process import control_groups
limits, command, _ = FLOODS[sys.argv[2]]
done = run(backend(sys.argv[1])(sys.argv[3], limits=limits), command, sys.argv[3])
found = sorted(control_groups.working_controllers())
print(json.dumps([found, done.code, done.denial.target if done.denial else done.said]))
"""


@pytest.mark.promise("sandbox.md", "it counts the processes and the memory of a command together")
@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("name", BACKENDS)
def test_a_flood_is_held_and_told(name: str, flood: str, tmp_path: Path) -> None:
    limits, command, words = FLOODS[flood]
    done = run(backend(name)(tmp_path, limits=limits), command, tmp_path)
    assert done.denial is not None, done.said
    assert (done.denial.kind, done.denial.target) == ("limit", words)


@pytest.mark.promise(
    "sandbox.md",
    "Elsewhere a supervisor checks them four times a second, and ends the command at the limit.",
)
@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("name", BACKENDS)
def test_without_control_groups_a_supervisor_ends_it(name: str, flood: str, tmp_path: Path) -> None:
    backend(name)
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can hide the control groups from a process")
    hide = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hide, "sh", sys.executable, "-c", PROGRAM, name, flood, str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False, cwd=Path(__file__).parent.parent,
        env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    counted, code, told = json.loads(done.stdout)
    assert counted == [] and code != 0 and told == FLOODS[flood][2]


def test_groups_are_gone_after_the_command(tmp_path: Path) -> None:
    if not control_groups.working_controllers():
        pytest.skip("no control group can be made here")
    sandbox = backend("bubblewrap")(tmp_path)
    places = {Path(place) for place in control_groups.group_places().values()}

    def groups() -> set[Path]:
        return {path for place in places for path in place.glob(f"{control_groups.PREFIX}*")}

    before = groups()
    with sandbox.launch(["true"], cwd=str(tmp_path), env={}):
        made = groups() - before
        assert made
    deadline = (
        time.monotonic() + 20
    )  # commands of tests in other processes have groups too, for as long as they run
    while made & groups() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not made & groups()


def test_a_report_says_what_nothing_holds(tmp_path: Path) -> None:
    for name in BACKENDS:
        gaps = " ".join(backend(name)(tmp_path).report().gaps)
        assert "quota" in gaps
        assert ("control group" in gaps) == (control_groups.working_controllers() != {"pids", "memory"})


@pytest.mark.parametrize("name", BACKENDS)
def test_variables_of_the_loader_are_obeyed_inside_only(name: str, tmp_path: Path) -> None:
    ws, out = tmp_path / "ws", tmp_path / "out"
    ws.mkdir()
    out.mkdir()
    variables = {
        "LD_DEBUG": "libs",
        "LD_DEBUG_OUTPUT": f"{out}/trace",
        "BASH_ENV": f"{out}/none",
        "KEPT": "a b",
    }
    with backend(name)(ws).launch(
        ["sh", "-c", "echo $KEPT"], cwd=str(ws), env={"PATH": "/usr/bin:/bin", **variables}
    ) as launch:
        assert "a b" not in " ".join(launch.argv)
        process = subprocess.Popen(
            launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds, stdout=subprocess.PIPE, text=True
        )  # fmt: skip
        launch.started()
        assert process.communicate(timeout=30)[0].endswith("a b\n")
    assert list(out.iterdir()) == []
