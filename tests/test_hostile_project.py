"""A folder that somebody else filled, and a model that does what stands in it: what runs unasked is what was proved."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.sandbox_runs import backend
from toolcrib import Toolbox
from toolcrib.errors import ErrorCode
from toolcrib.sandbox import ExternalSandbox, NoSandbox, Sandbox
from toolcrib.tools import Shell, Workspace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no shell tool")

HARMLESS = ("ls", "git status", "cat notes | sort", "cd src && rg x")
PROJECTS_OWN = ("pytest -q", "make test", "npm test", "ls && make test")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose tests and programs leave a trace when they run."""
    made = tmp_path / "project"
    (made / "src").mkdir(parents=True)
    (made / "bin").mkdir()
    for name in ("ls", "git", "cat", "sort", "rg", "pytest", "npm", "make"):
        (made / "bin" / name).write_text("#!/bin/sh\necho a program of the project\n")
        (made / "bin" / name).chmod(0o755)
    return made


def box_in(project: Path, sandbox: Sandbox, autonomy: str = "supervised") -> Toolbox:
    return Toolbox([Shell(Workspace(project), sandbox=sandbox)], autonomy=autonomy)


@pytest.mark.parametrize("autonomy", ["read_only", "supervised", "full"])
@pytest.mark.parametrize("command", HARMLESS)
@pytest.mark.parametrize("kind", ["none", "bubblewrap", "landlock"])
def test_a_proved_command_is_no_program_of_the_projects(
    project: Path, monkeypatch: pytest.MonkeyPatch, kind: str, command: str, autonomy: str
) -> None:
    (project.parent / "link").symlink_to(project / "bin")
    first = f"{project / 'bin'}:{project.parent / 'link'}"
    monkeypatch.setenv("PATH", f"{first}:{os.environ['PATH']}")
    sandbox = NoSandbox() if kind == "none" else backend(kind)(project)
    result = box_in(project, sandbox, autonomy).call_sync("shell", {"command": command})
    assert result.code is None and "a program of the project" not in result.text


@pytest.mark.parametrize("command", PROJECTS_OWN)
def test_a_projects_own_checks_run_unasked_only_where_something_holds_them(
    project: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("PATH", f"{project / 'bin'}:{os.environ['PATH']}")
    ran = "a program of the project"
    bare = box_in(project, NoSandbox()).call_sync("shell", {"command": command})
    assert bare.code == ErrorCode.NOBODY_TO_ASK and ran not in bare.text
    for sandbox in (ExternalSandbox("a container"), backend("bubblewrap")(project)):
        assert ran in box_in(project, sandbox).call_sync("shell", {"command": command}).text
    assert ran in box_in(project, NoSandbox(), "full").call_sync("shell", {"command": command}).text
