"""`main([...])` runs a command inside another program's process and leaves nothing behind."""

import io
import logging
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
    )  # fmt: skip


def test_a_command_changes_nothing_in_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.yaml").write_text("turns: [Done.]")
    before = process_state()
    assert main(["run", "say done", "--model", "scripted:script.yaml"]) == 0
    assert "Done." in capsys.readouterr().out
    assert process_state() == before
    assert not [thread for thread in threading.enumerate() if thread.name == "toolcrib-answers"]


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
