"""A folder that somebody else filled, and a model that does what stands in it: what runs unasked is what was proved."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.sandbox_runs import backend
from toolcrib import Answer, Question, Toolbox, Verdict
from toolcrib.command.sandbox import ExternalSandbox, NoSandbox, Sandbox
from toolcrib.errors import ErrorCode
from toolcrib.rules import read_rules
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


@pytest.mark.promise("shell-commands.md", "`ls` is never the project's own")
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


@pytest.mark.promise(
    "policy.md", "A project's own checks (`pytest`, `npm test`) run unasked where a sandbox confines them."
)
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


@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        "cat: {}: No such file or directory",
        "sh: 1: cannot create {}: Permission denied",
        "{}: Read-only file system",
    ],
)
def test_no_refusal_tells_what_lies_in_the_home_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch, secret: bool, said: str
) -> None:
    """A command prints the name of something as if it had been refused; what it is told is the same for any name."""
    home = project.parent / "home"
    folder = home / (".aws" if secret else "letters")
    folder.mkdir(parents=True)
    (folder / "there").write_text("dear diary")
    (folder / "link").symlink_to(folder / "there")
    (folder / "dir").mkdir()
    os.mkfifo(folder / "pipe")
    monkeypatch.setenv("HOME", str(home))
    box = box_in(project, backend("bubblewrap")(project), "full")
    told = set()
    for name in ("there", "link", "dir", "pipe", "nothing", "not/even/a/folder"):
        command = f"awk 'BEGIN {{ print \"{said.format(folder / name)}\"; exit 1 }}'"
        result = box.call_sync("shell", {"command": command})
        told.add(re.sub(r"[0-9.]+ s", "", result.text).replace(str(folder / name), "NAME"))
    (words,) = told
    assert (
        "The sandbox hides NAME from commands." in words and ("nobody could be asked" in words) is not secret
    )


def test_what_is_not_there_is_asked_of_nobody(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project.parent / "home"
    home.mkdir()
    (home / "there").write_text("x")
    monkeypatch.setenv("HOME", str(home))
    asked: list[str] = []

    async def approver(question: Question) -> Answer:
        asked.append(question.action)
        return Answer(Verdict.NO)

    shell = Shell(Workspace(project), sandbox=backend("bubblewrap")(project))
    box = Toolbox([shell], autonomy="full", approver=approver)
    for name in ("nothing", "there"):
        box.call_sync("shell", {"command": f"cat {home}/{name}"})
    assert asked == [f"let commands read {home}/there"]


def test_a_denied_link_denies_what_would_be_opened_by_it(project: Path) -> None:
    """The sandbox refuses a name, a person would be asked about the place it leads to, and a rule means the name."""
    (project.parent / "place").mkdir()
    (project.parent / "place" / "notes").write_text("x")
    (project.parent / "name").symlink_to("place")
    asked: list[str] = []

    async def approver(question: Question) -> Answer:
        asked.append(question.action)
        return Answer(Verdict.YES)

    name = project.parent / "name"
    rules = read_rules(f'[[rule]]\ndeny = true\npath = "{name}"').policy("full")
    sandbox = backend("bubblewrap")(project, readable=[project.parent / "place"])
    box = Toolbox([Shell(Workspace(project), sandbox=sandbox)], policy=rules, approver=approver)
    script = project / "write.sh"
    script.write_text(f"echo '{name}/notes: Read-only file system'; false")
    box.call_sync("shell", {"command": "sh write.sh"})
    assert not asked
