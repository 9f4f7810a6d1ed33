"""`shell` where a backend's files are: a plain `sh` in another folder stands for the container."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Toolbox
from toolcrib.rules import read_rules
from toolcrib.secrets import Environment
from toolcrib.tools import RemoteShell, WriteFile
from toolcrib.tools.backends import CommandBackend, CompositeBackend, MemoryBackend

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the other side is a POSIX shell")


def far(folder: Path, seen: list[str]) -> CommandBackend:
    async def run(command: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        seen.append(command)
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", command, cwd=folder, stdin=-1, stdout=-1, stderr=-1, start_new_session=True
        )
        try:
            out, err = await process.communicate(stdin)
        except asyncio.CancelledError:
            os.killpg(process.pid, 9)
            await process.wait()
            seen.append("ended")
            raise
        return process.returncode or 0, out, err

    return CommandBackend(run)


def call(box: Toolbox[Any], command: str, **more: Any) -> tuple[str, Any]:
    result = box.call_sync("shell", {"command": command, **more})
    return result.text, result.structured


def test_commands_run_where_the_files_are(tmp_path: Path) -> None:
    seen: list[str] = []
    files = CompositeBackend({"/memories/": MemoryBackend()}, default=far(tmp_path, seen))
    box = Toolbox([WriteFile(files), RemoteShell(files, env={"ALL": "a"})], autonomy="full")
    box.call_sync("write_file", {"path": "sub/x.txt", "content": "hi\n"})
    assert call(box, "cat x.txt; pwd", workdir="sub")[0] == f"hi\n{tmp_path}/sub"
    assert call(box, "echo $ALL-$B; echo err >&2; exit 3", env={"B": "it's"}) == (
        "a-it's\nerr\n\n[exit code 3; 0.0 s]",
        {"exit_code": 3, "signal": None, "seconds": pytest.approx(0, abs=5)},
    )
    assert call(box, "cat; echo end")[0] == "end"  # there is no input
    assert (
        "no such folder" in call(box, "ls", workdir="none")[0].lower() or call(box, "ls", workdir="none")[1]
    )
    assert "outside" in call(box, "ls", workdir="../..")[0]


def test_it_is_stopped_at_its_timeout_and_when_the_call_is_cancelled(tmp_path: Path) -> None:
    seen: list[str] = []
    box = Toolbox([RemoteShell(far(tmp_path, seen))], autonomy="full")
    assert "ran longer than 1 seconds" in call(box, "sleep 30", timeout=1)[0]
    assert seen[-1] == "ended"


def test_no_value_of_a_variable_or_secret_is_part_of_a_command_line(tmp_path: Path) -> None:
    seen: list[str] = []
    value = "it's $HOME; s3cr3t v4lue"
    store = Environment(["KEY"], environ={"KEY": value})
    box = Toolbox([RemoteShell(far(tmp_path, seen))], autonomy="full", secrets=store)
    command = 'printf %s <secret_ref:KEY> > got; printf %s "$B" > env; echo <secret_ref:KEY>'
    text, _ = call(box, command, env={"B": "x <secret_ref:KEY>", "C": "plain"})
    assert text.startswith("[secret KEY]\n")
    assert (tmp_path / "got").read_text() == value
    assert (tmp_path / "env").read_text() == f"x {value}"
    assert not [command for command in seen if "s3cr3t" in command or "plain" in command]


def test_every_command_asks_unless_a_rule_allows_it(tmp_path: Path) -> None:
    seen: list[str] = []
    rules = read_rules(
        '[[rule]]\nallow = true\ncommand = "git status *"\n[[rule]]\ndeny = true\ncommand = "curl *"\nreason = "no"'
    )
    box = Toolbox([RemoteShell(far(tmp_path, seen))], policy=rules.policy())
    for command in ("ls", "cat x; git log"):
        assert "approv" in call(box, command)[0], command
    assert "is not allowed to run: no." in call(box, "echo a; curl http://x")[0]
    assert "never will be" in call(box, "rm -rf /")[0]
    assert seen == []
    call(box, "git status --short")
    assert len(seen) == 1


def test_a_backend_without_commands_is_refused() -> None:
    with pytest.raises(TypeError, match="no commands run where the files of MemoryBackend"):
        RemoteShell(MemoryBackend())
