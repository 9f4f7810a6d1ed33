"""`shell` where a backend's files are: a plain `sh` in another folder stands for the container."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands_elsewhere import backend_elsewhere, commands_with
from toolcrib import Answer, Toolbox, Verdict
from toolcrib.command.remote import scripts
from toolcrib.question import Lasting
from toolcrib.rules import ApprovalStore, read_rules
from toolcrib.secrets import Environment
from toolcrib.tools import Process, ProcessList, ProcessWrite, Shell, Workspace, WriteFile
from toolcrib.tools.backends import CommandBackend, CompositeBackend, MemoryBackend

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the other side is a POSIX shell")


def call(box: Toolbox[Any], command: str, **more: Any) -> tuple[str, Any]:
    result = box.call_sync("shell", {"command": command, **more})
    return result.text, result.structured


def test_commands_run_where_the_files_are(tmp_path: Path) -> None:
    seen: list[str] = []
    files = CompositeBackend({"/memories/": MemoryBackend()}, default=backend_elsewhere(tmp_path, seen))
    box = Toolbox([WriteFile(files), Shell(files, env={"ALL": "a"})], autonomy="full")
    box.call_sync("write_file", {"path": "sub/x.txt", "content": "hi\n"})
    assert call(box, "cat x.txt; pwd", workdir="sub")[0] == f"hi\n{tmp_path}/sub"
    text, data = call(box, "echo $ALL-$B; echo err >&2; exit 3", env={"B": "it's"})
    assert text.startswith("a-it's\nerr\n\n[exit code 3; ")
    assert (data["exit_code"], data["signal"]) == (3, None)
    assert call(box, "cat; echo end")[0] == "end"  # there is no input
    assert call(box, "ls", workdir="none")[0] == "There is no folder none."
    assert "outside" in call(box, "ls", workdir="../..")[0]


async def ended(tag: str) -> bool:
    """Whether no process with a tag in its command line is left, within 15 seconds."""
    deadline = time.monotonic() + 15
    while commands_with(tag):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.1)
    return True


async def test_it_is_stopped_at_its_timeout_and_when_the_call_is_cancelled(tmp_path: Path) -> None:
    box, tag = Toolbox([Shell(backend_elsewhere(tmp_path))], autonomy="full"), f"tag-{os.urandom(6).hex()}"
    command = f"(setsid sh -c 'sleep 61; : {tag}' &); echo up; touch up; sleep 61; : {tag}"
    late = await box.call("shell", {"command": command, "timeout": 1})
    assert "ran longer than 1 second." in late.text and late.text.endswith("up")
    assert await ended(tag)
    (tmp_path / "up").unlink()
    calling = asyncio.ensure_future(box.call("shell", {"command": command}))
    async with asyncio.timeout(20):
        while not (tmp_path / "up").exists():  # noqa: ASYNC110 - a file of another process
            await asyncio.sleep(0.05)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert await ended(tag)


@pytest.mark.slow
async def test_a_command_that_nobody_follows_any_more_ends(tmp_path: Path) -> None:
    tag = f"tag-{os.urandom(6).hex()}"
    start = scripts.start("x" + tag[4:], ".", input=True, grace=0.2, lease=1)
    await backend_elsewhere(tmp_path).run_command(start, f"exec sh -c 'sleep 61; : {tag}'".encode())
    assert await ended(tag)


async def test_a_transport_that_fails_is_tried_again_and_then_named(tmp_path: Path) -> None:
    whole, failing = backend_elsewhere(tmp_path), [0]

    async def run(command: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        if not stdin and (failing[0] > 1 or failing[0] == 0):  # each poll fails once, or always
            failing[0] += 1
            raise ConnectionError(104, "the connection was lost")
        failing[0] -= 1 if failing[0] == 1 else 0
        answer = await whole.run_command(command, stdin)
        return answer.code, answer.stdout, answer.stderr

    box = Toolbox([Shell(CommandBackend(run), grace=0)], autonomy="full")
    assert (await box.call("shell", {"command": "echo a; sleep 0.5; echo b"})).text == "a\nb"
    failing[0] = 2
    lost = await box.call("shell", {"command": "echo a; sleep 0.5; echo b"})
    assert lost.is_error and lost.text == "The command could not be run: the connection was lost."


def test_no_value_of_a_variable_or_secret_is_part_of_a_command_line(tmp_path: Path) -> None:
    seen: list[str] = []
    value = "it's $HOME; s3cr3t v4lue"
    store = Environment(["KEY"], environ={"KEY": value})
    box = Toolbox([Shell(backend_elsewhere(tmp_path, seen))], autonomy="full", secrets=store)
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
    box = Toolbox([Shell(backend_elsewhere(tmp_path, seen))], policy=rules.policy())
    for command in ("ls", "cat x; git log"):
        assert "approv" in call(box, command)[0], command
    assert "is not allowed to run: no." in call(box, "echo a; curl http://x")[0]
    assert "never will be" in call(box, "rm -rf /")[0]
    assert seen == []
    call(box, "git status --short")
    assert seen


NONSENSE = {
    "an end that is none": "echo '0 0 evil; rm -rf x' > $d/end; sleep 3",
    "an end in words": "echo abc def > $d/end; sleep 3",
    "a status beyond all numbers": "echo 99999999999999999999 0 > $d/end; sleep 3",
    "a folder for an end": "mkdir $d/end; sleep 0.5; echo late",
    "output without an end": "ln -s /dev/zero $d/0; ln -s /dev/zero $d/1; sleep 0.5; echo late",
    "a piece of 3 GB": "truncate -s 3G $d/1; sleep 0.5; echo late",
    "a pipe for a piece": "mkfifo $d/1; sleep 0.5; echo late",
    "its folder is gone": "rm -rf $d; sleep 0.5",
    "its supervisor is another": "echo 99999999 > $d/supervisor; echo late",
}


@pytest.mark.parametrize("forged", NONSENSE.values(), ids=NONSENSE)
async def test_what_a_command_writes_into_its_folder_there_harms_nothing_here(
    forged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.command.remote.remote_command.WAIT_FOR_END", 2.0)
    whole, most = backend_elsewhere(tmp_path), [0]

    async def run(command: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        answer = await whole.run_command(command, stdin)
        most[0] = max(most[0], len(answer.stdout))
        return answer.code, answer.stdout, answer.stderr

    box = Toolbox([Shell(CommandBackend(run), grace=0)], autonomy="full")
    result = await box.call("shell", {"command": f"d=$TOOLCRIB_PROCESS; {forged}", "timeout": 2})
    assert "internal error" not in result.text and len(result.text) < 1_000
    assert most[0] < 1_100_000  # sixteen pieces, whatever they were replaced by


async def test_an_answer_that_means_nothing_ends_the_command(tmp_path: Path) -> None:
    whole, tag = backend_elsewhere(tmp_path), f"tag-{os.urandom(6).hex()}"

    async def run(command: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        answer = await whole.run_command(command, stdin)
        return answer.code, b"Welcome to far!\n" + answer.stdout, b""

    box = Toolbox([Shell(CommandBackend(run), grace=0.1)], autonomy="full")
    result = await box.call("shell", {"command": f"sleep 61; : {tag}"})
    assert result.is_error and "means nothing" in result.text
    assert await ended(tag)


QUOTES = "echo $'a\\'; touch made #\\''"  # one word to bash; to other shells two commands


def test_a_command_is_not_allowed_as_bash_reads_it_where_another_shell_may_run_it(tmp_path: Path) -> None:
    for rule in ('allow = true\ncommand = "echo *"', 'deny = true\ncommand = "touch *"'):
        rules = read_rules(f"[[rule]]\n{rule}")
        box = Toolbox([Shell(backend_elsewhere(tmp_path))], policy=rules.policy())
        assert ("rule denies it" if "deny" in rule else "approv") in call(box, QUOTES)[0]
    assert list(tmp_path.iterdir()) == []


def test_a_path_of_the_whole_host_is_none_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    allowed = read_rules('[[rule]]\nallow = true\ncommand = "cat *"')
    box = Toolbox([Shell(backend_elsewhere(tmp_path))], policy=allowed.policy())
    assert "approv" in call(box, "cat /etc/hostname", workdir="etc")[0]
    denied = read_rules('[[rule]]\ndeny = true\npath = "/etc/**"').policy()
    box = Toolbox([Shell(backend_elsewhere(tmp_path))], policy=denied, autonomy="full")
    assert "a rule denies it" in call(box, "cat /etc/hostname", workdir="etc")[0]


async def test_a_yes_to_a_script_elsewhere_is_for_what_was_in_it_and_for_once(tmp_path: Path) -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        if "echo two" in question.preview:
            (tmp_path / "run.sh").write_text("echo three")
        return Answer(Verdict.ALWAYS, lasting=Lasting.USER)

    store = ApprovalStore(tmp_path.parent / "approvals.json")
    box = Toolbox([Shell(backend_elsewhere(tmp_path))], approver=approver, approvals=store)
    for code, runs in (("echo one", "one"), ("echo two", "three")):
        (tmp_path / "run.sh").write_text(code)
        assert (await box.call("shell", {"command": "sh run.sh"})).text == runs
    shown = [question.preview.partition("| ")[2] for question in asked]
    assert shown == ["echo one", "echo two", "echo three"]  # what changed meanwhile is asked about anew
    assert store.all() == [] and all(question.strict for question in asked)


@pytest.mark.parametrize("make", [Shell, Process, ProcessWrite, ProcessList])
def test_a_backend_without_commands_is_refused(make: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"no commands run where the files of .*MemoryBackend"):
        make(CompositeBackend({"/far/": Workspace(tmp_path)}, default=MemoryBackend()))


def test_commands_of_a_composite_run_in_its_default(tmp_path: Path) -> None:
    files = CompositeBackend({"/notes/": MemoryBackend()}, default=Workspace(tmp_path))
    box = Toolbox([Shell(files), WriteFile(files)], autonomy="full")
    box.call_sync("write_file", {"path": "a.txt", "content": "here"})
    assert call(box, "cat a.txt")[0] == "here"
    assert "outside" in call(box, "ls", workdir="/notes")[0]
    with pytest.raises(TypeError, match="for commands of this machine"):
        Shell(backend_elsewhere(tmp_path), passthrough=["LANG"])
