"""`toolcrib secrets` as a person runs it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests import command_line


def toolcrib(home: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return command_line.toolcrib(home, "secrets", *arguments, stdin=stdin, env=env)


def test_a_secret_is_kept_named_and_forgotten(tmp_path: Path) -> None:
    kept = toolcrib(tmp_path, "set", "API_KEY", stdin="hunter2-hunter3\n")
    assert (kept.returncode, kept.stdout) == (0, "")
    assert "<secret_ref:API_KEY>" in kept.stderr
    file = tmp_path / ".config" / "toolcrib" / "secrets.json"
    assert file.stat().st_mode & 0o777 == 0o600
    listed = toolcrib(tmp_path, "list")
    assert (listed.stdout, toolcrib(tmp_path, "list", "--json").stdout) == ("API_KEY\n", '["API_KEY"]\n')
    assert toolcrib(tmp_path, "remove", "API_KEY").returncode == 0
    assert toolcrib(tmp_path, "remove", "API_KEY").returncode == 1
    assert toolcrib(tmp_path, "list").stdout == ""
    assert "hunter" not in kept.stderr + listed.stderr + listed.stdout


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PIN", "1234", "it is 4 bytes long: below 6"),
        ("A B", "long-enough", "a secret's name is"),
    ],
)
def test_what_cannot_be_kept_is_said(tmp_path: Path, name: str, value: str, words: str) -> None:
    done = toolcrib(tmp_path, "set", name, stdin=value)
    assert done.returncode == 2 and words in done.stderr and value not in done.stderr
    assert not (tmp_path / ".config").exists()


def test_a_file_that_others_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    assert toolcrib(tmp_path, "set", "A", "--file", str(file), stdin="value-1").returncode == 0
    file.chmod(0o644)
    done = toolcrib(tmp_path, "list", "--file", str(file))
    assert done.returncode == 2 and "chmod 600" in done.stderr


def test_typed_values_are_not_shown(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    child = subprocess.Popen(
        [sys.executable, "-m", "toolcrib", "secrets", "set", "A"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        for typed in (b"hunter2-hunter3\n", b"hunter2-hunter3\n", b""):
            while b": " not in seen.split(b"\n")[-1]:
                if not (more := os.read(ours, 1000)):
                    break
                seen += more
            if typed:
                os.write(ours, typed)
                seen += b"\n"
            else:
                break
    except OSError:
        pass  # Linux says so when the other end has closed
    finally:
        code = child.wait(30)
        os.close(ours)
    assert code == 0
    assert b"hunter" not in seen
