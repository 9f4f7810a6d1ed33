"""Windows, as far as another system can show it: what POSIX alone has is hidden (`without_posix.py`). Nobody has run
toolcrib on Windows itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("without_posix.py")
SOURCE = Path(__file__).parent.parent / "src"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this is the real thing")

IMPORTS = f"""
import importlib, pathlib
source = pathlib.Path({str(SOURCE)!r})
for file in sorted(source.rglob("*.py")):
    name = ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
    if not name.endswith("__main__"):
        importlib.import_module(name)
"""

CALLS = """
import json, sys
from pathlib import Path
from toolcrib import Agent, Effect, Message, Toolbox, tool
from toolcrib.assembly import default_tools
from toolcrib.audit import AuditLog
from toolcrib.agent import TranscriptFile, read_transcript
from toolcrib.models import Scripted, resolve_model
from toolcrib.rules import ApprovalStore
from toolcrib.secrets import SecretFile

root = Path(sys.argv[1])

@tool(effect=Effect.READ, secrets=())
def add(a: int, b: int) -> int:
    "Add."
    return a + b

audit = AuditLog(root.parent / "audit.jsonl", key=b"k" * 32)
box = Toolbox([add], builtin=default_tools(root), autonomy="full", audit=audit, approvals=ApprovalStore(root.parent / "approvals.json"), overflow=root.parent / "long")
said = {}
for label, name, arguments in json.load(sys.stdin):
    result = box.call_sync(name, arguments)
    said[label] = [result.is_error, result.text]
script = [{"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}, {"text": "It is 3."}]
transcript = TranscriptFile(root.parent / "transcript.jsonl")
said["agent"] = Agent(Scripted(script), [add]).run_sync("?", transcript=transcript).text
transcript.close()
said["transcript"] = len(read_transcript(root.parent / "transcript.jsonl"))
secrets = SecretFile(root.parent / "secrets.json")
secrets.set("TOKEN", "value")
said["secrets"] = sorted(SecretFile(root.parent / "secrets.json").names())
said["audit"] = audit.path.read_text().count("\\n") > 10
said["models"] = [resolve_model(name).name for name in ("openai:gpt-5", "anthropic:claude-sonnet-4-5", "gemini:g", "http://localhost:1/v1#m")]
print(json.dumps(said))
"""

UNDO = """
import sys
from pathlib import Path
from toolcrib.checkpoints import Checkpoints

root = Path(sys.argv[1])
kept = Checkpoints(root, store=root.parent / "store")
kept.take("before")
(root / "src/a.py").unlink(), (root / "src").rmdir()
(root / "src").write_text("a file now")
(root / "new").mkdir()
kept.take("after", then="person")
(root / "mine.txt").write_text("mine")
undone = Checkpoints(root, store=root.parent / "store").undo()
assert (root / "src/a.py").read_text() == "x = 1\\n" and not (root / "new").exists(), undone
assert (root / "mine.txt").exists() and undone.kept.keys() == {"mine.txt"}, undone
kept.redo()
assert (root / "src").read_text() == "a file now" and kept.covers("src") is None
print(len(kept.list()))
"""

# label: tool, arguments, whether it is an error, and what is said
FILES: dict[str, tuple[str, dict[str, str], bool, str]] = {
    "add": ("add", {"a": "1", "b": "2"}, False, "3"),
    "read": ("read_file", {"path": "src/a.py"}, False, "x = 1"),
    "read with backslashes": ("read_file", {"path": "src\\a.py"}, False, "x = 1"),
    "read through a link that stays inside": ("read_file", {"path": "inside/a.py"}, False, "x = 1"),
    "read through a link that leads out": ("read_file", {"path": "outside/secret"}, True, "leads outside the workspace"),
    "write through a link that leads out": ("write_file", {"path": "outside/new", "content": "x"}, True, "leads outside"),
    "read above": ("read_file", {"path": "src\\..\\..\\x"}, True, "lies outside the workspace"),
    "read another drive": ("read_file", {"path": "C:\\x"}, True, "lies outside the workspace"),
    "read a device": ("read_file", {"path": "src/NUL.txt"}, True, "names a device"),
    "read a stream": ("read_file", {"path": "src/a.py:hidden"}, True, "no file name has on Windows"),
    "read a name that Windows shortens": ("read_file", {"path": "src/a.py."}, True, "dots and blanks at the end"),
    "read a short name": ("read_file", {"path": "SECRET~1"}, True, "short name"),
    "read nothing": ("read_file", {"path": "nothing.py"}, True, "There is no file"),
    "read a folder": ("read_file", {"path": "src"}, True, "is a folder"),
    "edit": ("edit_file", {"path": "src/a.py", "old_string": "1", "new_string": "2"}, False, "Edited"),
    "write": ("write_file", {"path": "new/deep/b.txt", "content": "z"}, False, "Created"),
    "list": ("list_dir", {"path": "."}, False, "src/"),
    "glob": ("glob", {"pattern": "**/*.py"}, False, "src/a.py"),
    "grep": ("grep", {"pattern": "x = [0-9]"}, False, "x = 2"),
    "a pattern that never ends": ("grep", {"pattern": "(z+)+$"}, False, "z"),
    "shell": ("shell", {"command": "echo hi"}, True, "commands are not run on Windows"),
}  # fmt: skip


def without_posix(*arguments: str, given: str = "", folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(folder), "USERNAME": "ann", "LOGNAME": "ann"}
    command = [sys.executable, str(DRIVER), *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, cwd=folder, env=environment, timeout=120
    )


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "imports.py").write_text(IMPORTS)
    done = without_posix("imports.py", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_tools_agents_and_files_of_ours_work(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("x = 1\n")
    (root / "inside").symlink_to("src")
    (root / "outside").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("s")
    (tmp_path / "calls.py").write_text(CALLS)
    given = json.dumps([(label, name, arguments) for label, (name, arguments, _, _) in FILES.items()])
    done = without_posix("calls.py", str(root), given=given, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for label, (_, _, is_error, words) in FILES.items():
        assert said[label][0] is is_error and words in said[label][1], (label, said[label])
    assert (said["agent"], said["transcript"], said["secrets"]) == ("It is 3.", 4, ["TOKEN"])
    assert said["audit"] and len(said["models"]) == 4
    assert (root / "src/a.py").read_text() == "x = 2\n" and (root / "new/deep/b.txt").read_text() == "z"
    assert not (tmp_path / "new").exists()


def test_the_command_line_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    read = without_posix("-m", "toolcrib", "tools", "call", "read_file", "--path", "a.txt", folder=tmp_path)
    assert (read.returncode, read.stdout) == (0, "hello\n"), read.stderr
    doctor = without_posix("-m", "toolcrib", "doctor", folder=tmp_path)
    assert (
        "there is no sandbox for Windows" in doctor.stdout
        and "Commands are not run on Windows." in doctor.stdout
    )
    assert "Nobody has run this on Windows yet." in doctor.stdout and not doctor.stderr
    (tmp_path / "script.yaml").write_text(
        "- calls: [{name: read_file, arguments: {path: a.txt}}]\n- text: done\n"
    )
    run = without_posix("-m", "toolcrib", "run", "go", "--model", "scripted:script.yaml", folder=tmp_path)
    assert run.returncode == 0 and "done" in run.stdout, run.stderr


def test_a_run_can_be_undone(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("x = 1\n")
    (tmp_path / "undo.py").write_text(UNDO)
    done = without_posix("undo.py", str(root), folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr
