"""`toolcrib run` under autonomy "sandboxed": the real command, a scripted model, the real sandbox and checkpoints."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.command_line import toolcrib

pytestmark = pytest.mark.skipif(not Path("/usr/bin/bwrap").exists(), reason="needs bubblewrap")


class Folder:
    """A workspace, and a home of its own."""

    def __init__(self, root: Path) -> None:
        self.ws, self.root = root / "ws", root
        (self.ws / "src").mkdir(parents=True)
        (root / "home").mkdir()
        (self.ws / "src" / "a.py").write_text("print(1)\n")
        (self.ws / ".env").write_text("KEY=1\n")
        (self.ws / ".gitignore").write_text("kept/\n")
        (self.ws / "kept").mkdir()
        (self.ws / "kept" / "data").write_text("1\n")
        self.env = {
            **os.environ,
            "HOME": str(root / "home"),
            "XDG_CONFIG_HOME": str(root / "home" / "c"),
            "XDG_STATE_HOME": str(root / "home" / "s"),
        }

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return toolcrib(self.ws, *arguments, env=self.env)

    def run(self, calls: list[tuple[str, dict[str, Any]]], *options: str) -> "Ran":
        turns = [{"calls": [{"name": name, "arguments": given}]} for name, given in calls]
        script = self.root / "script.json"
        script.write_text(json.dumps({"turns": [*turns, "Done."]}))
        done = self("run", "x", "-m", f"scripted:{script}", "--json", *options)
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return Ran(done.stderr.splitlines()[0], events)


class Ran:
    def __init__(self, first_line: str, events: list[dict[str, Any]]) -> None:
        self.first_line, self.events = first_line, events

    @property
    def asked(self) -> list[str]:
        """What was asked, by the actions of the questions."""
        return [event["question"]["action"] for event in self.events if event["kind"] == "question_asked"]

    @property
    def checkpoints(self) -> int:
        return sum(event["kind"] == "checkpoint_taken" for event in self.events)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


WRITE = ("write_file", {"path": "src/b.py", "content": "print(2)\n"})
CODE = ("shell", {"command": "perl -e 'open(F, \">made\") or die' && rm src/a.py"})


@pytest.mark.promise("security.md", "what runs unasked is confined and can be undone")
def test_what_is_confined_runs_unasked_and_can_be_undone(folder: Folder) -> None:
    ran = folder.run([WRITE, CODE, ("shell", {"command": "cat /etc/hostname | tee out.txt"})])
    assert ran.first_line.startswith("autonomy sandboxed (the default); ")
    assert ran.asked == []
    assert ran.checkpoints == 3
    assert (folder.ws / "made").exists() and not (folder.ws / "src" / "a.py").exists()
    assert folder("undo").returncode == 0
    there = {str(path.relative_to(folder.ws)) for path in folder.ws.rglob("*") if path.is_file()}
    assert there == {"src/a.py", ".env", ".gitignore", "kept/data"}
    assert (folder.ws / "src" / "a.py").read_text() == "print(1)\n"


LEAVES = [
    # a call, and what is asked about it
    (("shell", {"command": "curl -s http://shop.test/"}), "let commands connect to shop.test"),
    (
        ("shell", {"command": "perl -e 'open(F, \">/opt/x\") or die qq(/opt/x: $!)'"}),
        "let commands write to /opt/x",
    ),
    (("shell", {"command": "cp src/a.py /tmp/x"}), "run shell"),
    (("shell", {"command": "python3 show.py .env"}), "run shell"),
    (("shell", {"command": "rm -rf kept"}), "run shell"),
    (("shell", {"command": "git commit -am x"}), "run shell"),
    (("write_file", {"path": "kept/data", "content": "2\n"}), "run write_file"),
    (("write_file", {"path": ".envrc", "content": "x"}), "run write_file"),
    (("write_file", {"path": ".env", "content": "x"}), "run write_file"),
    (("read_file", {"path": ".env"}), "run read_file"),
]


@each(("call", "action"), LEAVES)
def test_what_leaves_asks(tmp_path_factory: Any, call: tuple[str, dict[str, Any]], action: str) -> None:
    folder = Folder(tmp_path_factory.mktemp("w"))
    ran = folder.run([call])
    assert ran.asked == [action]
    assert (folder.ws / ".env").read_text() == "KEY=1\n" and (
        folder.ws / "kept" / "data"
    ).read_text() == "1\n"


SUPERVISED = [
    (("--network", "on"), "commands may use the network"),
    (("--allow-host", "shop.test"), "commands may use the network"),
    (("--sandbox", "danger_no_sandbox"), "no sandbox confines commands"),
    (("--outer-sandbox", "a container"), "the sandbox around this program was declared and not checked"),
    (("--no-checkpoints",), "no checkpoint is taken"),
]


@pytest.mark.promise(
    "policy.md",
    "Where this promise cannot be kept, `sandboxed` behaves as `supervised`. The first line of a run and "
    "`toolcrib doctor` say so, with the reason",
)
@pytest.mark.promise("security.md", "`sandboxed` is `supervised`, and the first line of a run says so")
@each(("options", "why"), SUPERVISED)
def test_where_it_cannot_be_kept_it_is_supervised_and_says_so(
    tmp_path_factory: Any, options: tuple[str, ...], why: str
) -> None:
    folder = Folder(tmp_path_factory.mktemp("w"))
    ran = folder.run([WRITE], "--autonomy", "sandboxed", *options)
    assert ran.first_line.startswith(f"autonomy supervised (instead of sandboxed, since {why}")
    assert ran.asked == ["run write_file"]
    assert not (folder.ws / "src" / "b.py").exists()
    if "--no-checkpoints" not in options:
        call = 'write_file {"path": "a", "content": ""}'
        explained = folder("policy", "explain", call, "--autonomy", "sandboxed", *options).stdout
        assert explained.startswith("ask: it changes something") and why in explained


def test_the_reason_is_explained(folder: Folder) -> None:
    explained = folder("policy", "explain", 'shell {"command": "python3 x.py"}').stdout
    assert explained.startswith(
        "allow: confined by bubblewrap without network, and a checkpoint can bring it back\n"
        "  decided by  autonomy sandboxed\n"
    )
    kept = folder("policy", "explain", 'write_file {"path": "kept/data", "content": ""}').stdout
    assert kept.startswith("ask: it could not be undone: ")
    assert "autonomy sandboxed can be kept here" in folder("doctor").stdout


def test_a_checkpoint_that_fails_lets_nothing_run_unasked(folder: Folder) -> None:
    (folder.root / "home" / "s" / "toolcrib").mkdir(parents=True)
    (folder.root / "home" / "s" / "toolcrib" / "checkpoints").write_text("no folder")
    ran = folder.run([WRITE, CODE])
    assert ran.asked == ["run write_file", "run shell"]
    assert (folder.ws / "src" / "a.py").exists() and not (folder.ws / "made").exists()
