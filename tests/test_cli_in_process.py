"""`main([...])` runs a command inside another program's process and leaves nothing behind."""

import gc
import io
import logging
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from toolcrib.cli import main
from toolcrib.command.sandbox.process.kernel import LIBC

TOOL = """
from toolcrib import Effect, tool

@tool(effect=Effect.READ, secrets=())
def answer() -> str:
    \"\"\"Say the number.\"\"\"
    print("chatter")
    return "{number}"
"""


def process_state() -> tuple[object, ...]:
    log = logging.getLogger("toolcrib")
    return (
        list(log.handlers), log.propagate, list(sys.meta_path), list(warnings.filters), sys.stdout, sys.stderr,
        LIBC.prctl(3) if sys.platform == "linux" else 1,
        gc.get_threshold(), gc.isenabled(),
    )  # fmt: skip


def test_a_command_changes_nothing_in_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.yaml").write_text("turns: [Done.]")
    before, frozen = process_state(), gc.get_freeze_count()
    assert main(["run", "say done", "--model", "scripted:script.yaml"]) == 0
    assert "Done." in capsys.readouterr().out
    assert process_state() == before
    assert gc.get_freeze_count() <= frozen, "the program's own objects are still collected"
    assert not [thread for thread in threading.enumerate() if thread.name == "toolcrib-answers"]


CYCLE = """
import sys
from toolcrib import Effect, tool

class Last:
    def __init__(self):
        self.itself = self

    def __del__(self):
        print("let go", file=sys.stderr)

@tool(effect=Effect.READ, secrets=())
def leave() -> str:
    \"\"\"Leave what only the collector lets go.\"\"\"
    Last()
    return "left"
"""


def test_what_a_tool_leaves_is_still_collected_when_the_command_ends(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(CYCLE)
    argv = [sys.executable, "-m", "toolcrib", "tools", "call", "--from", "leaving", "leave"]
    env = {"HOME": str(tmp_path), "PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.stdout == "left\n", done.stderr
    assert "let go" in done.stderr


def test_each_command_imports_the_modules_of_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in ("1", "2"):
        folder = tmp_path / number
        folder.mkdir()
        (folder / "numbered.py").write_text(TOOL.replace("{number}", number))
        monkeypatch.chdir(folder)
        assert main(["tools", "call", "--from", "numbered", "answer"]) == 0
        told = capsys.readouterr()
        assert told.out == f"{number}\n"
        assert "chatter" in told.err
    assert "numbered" not in sys.modules


def test_input_comes_from_the_programs_own_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO("s3cr3t-value-of-mine\n"))
    assert main(["secrets", "set", "TOKEN"]) == 0
    assert main(["secrets", "list"]) == 0
    assert capsys.readouterr().out == "TOKEN\n"


@pytest.mark.parametrize(
    ("arguments", "code"), [(["tools", "show", "nothing"], 2), (["no-such-command"], 2), (["--version"], 0)]
)
def test_every_end_is_an_exit_code(arguments: list[str], code: int) -> None:
    assert main(arguments) == code
