"""For tests: a sandbox of each kind that works here, and a command run in one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from toolcrib.command.sandbox import Bubblewrap, Denial, Landlock, Launch, Sandbox, environment
from toolcrib.command.sandbox.choose import ORDER, why_not_working

BACKENDS = {"bubblewrap": Bubblewrap, "landlock": Landlock}


def backend(name: str) -> type[Any]:
    """The class, if it works here; in CI one that does not is a failure."""
    if sys.platform != "linux":
        pytest.skip("the back ends that can be tried are Linux's")
    (row,) = (row for row in ORDER if row.name == name)
    if problem := why_not_working(row):
        if os.environ.get("CI"):
            pytest.fail(f"{name} does not work here, and in CI it has to: {problem}")
        pytest.skip(f"{name} does not work here: {problem}")
    return BACKENDS[name]


@dataclass
class Done:
    code: int
    said: str
    restored: list[str]
    denial: Denial | None
    git_changes: list[str]
    told: list[str]


def run(
    sandbox: Sandbox,
    command: str | Sequence[str],
    cwd: object,
    *,
    added: Mapping[str, str] | None = None,
    **named: Any,
) -> Done:
    """A bash command, or a whole argv, to its end."""
    argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
    env = {**environment(os.environ, added=added), "LC_ALL": "C"}
    with (
        sandbox.launch(argv, cwd=str(cwd), env=env, **named) as launch,
        subprocess.Popen(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            pass_fds=launch.pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        launch.started()
        said = process.communicate(timeout=30)[0]
    denial = sandbox.explain(process.returncode, said, launch)
    return Done(process.returncode, said, launch.restored, denial, launch.git_changes, launch.executed_files)


def ended(sandbox: Sandbox, command: str, cwd: object) -> Launch:
    """A bash command that has ended, and whose launch is still open: nothing is put back yet."""
    launch = sandbox.launch(["bash", "-c", command], cwd=str(cwd), env=environment(os.environ))
    try:
        subprocess.run(
            launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds, stdin=subprocess.DEVNULL, check=True,
            capture_output=True, timeout=30, start_new_session=True,
        )  # fmt: skip
    except BaseException:
        launch.close()
        raise
    return launch
