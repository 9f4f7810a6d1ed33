"""shell: what a command prints is kept in bounds, and all that it started ends with it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.growth import growth
from toolcrib.command.launch.environment import SET_ENV_VARS
from toolcrib.command.launch.output import BoundedOutput, plain
from toolcrib.command.sandbox import NoSandbox
from toolcrib.context import Context
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.tools import SAFE_ENV_VARS, Shell, ShellParams, Workspace


class Listener:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def report(self, ctx: Context[Any], named: dict[str, Any]) -> None:
        self.told.append(named["result"])

    def remembered_approvals(self, ctx: Context[Any]) -> list[Any]:
        return []


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


async def sh(ws: Workspace, command: str, ctx: Context[Any] | None = None, **named: Any) -> str:
    shell = Shell(ws, grace=0.3, sandbox=NoSandbox())
    return (await shell.execute(ShellParams(command=command, **named), ctx or Context())).text


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo hi", "hi"),
        ("true", "(no output)"),
        ("printf 'a\\nb\\n\\n'", "a\nb"),
        ("echo out; echo err >&2; echo out", "out\nerr\nout"),
        ("echo 'a  b' # comment", "a  b"),
        ("cat", "(no output)"),
        ("printf '\\033[1;31mred\\033[0m \\033]0;title\\007text\\a\\n'", "red text"),
        ("printf '10%%\\r50%%\\r100%%\\ndone\\r\\n'", "100%\ndone"),
        ("printf 'caf\\351\\n'", "caf\ufffd"),
        ("echo 'one\ntwo'", "one\ntwo"),
        ("cat <<'E'\n$x\nE", "$x"),
    ],
)
async def test_what_a_command_prints(ws: Workspace, command: str, told: str) -> None:
    assert await sh(ws, command) == told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo no; exit 7", r"no\n\n\[exit code 7; \d+\.\d s\]"),
        ("exit 3", r"\(no output\)\n\n\[exit code 3; \d+\.\d s\]"),
        ("kill -9 $$", r"\(no output\)\n\n\[ended by signal 9 \(SIGKILL\); \d+\.\d s\]"),
        ("-x", r".*: command not found\n\n\[exit code 127; .*"),
    ],
)
async def test_an_exit_code_is_told_when_it_is_not_zero(ws: Workspace, command: str, told: str) -> None:
    import re

    assert re.fullmatch(told, await sh(ws, command), re.DOTALL)


@pytest.mark.promise("sandbox.md", "A few variables")
async def test_a_command_sees_no_variable_that_was_not_named(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "LD_PRELOAD_X", "PYTHONPATH", "BASH_ENV", "PASSED"):
        monkeypatch.setenv(name, "/nowhere")
    shell = Shell(ws, env={"GIVEN": "1"}, passthrough=["PASSED"], sandbox=NoSandbox())
    lines = (await shell.execute(ShellParams(command="env"), Context())).text.splitlines()
    seen = {line.partition("=")[0] for line in lines}
    of_the_shell = {"PWD", "OLDPWD", "SHLVL", "_", "TOOLCRIB_PROCESS"}
    assert seen <= {*SAFE_ENV_VARS, *SET_ENV_VARS, *of_the_shell, "GIVEN", "PASSED"}
    assert {"PATH", "GIVEN", "PASSED"} <= seen


async def test_it_runs_where_it_is_told(ws: Workspace) -> None:
    (Path(ws.root.path) / "sub").mkdir()
    assert await sh(ws, "pwd", workdir="sub") == f"{ws.root.path}/sub"
    with pytest.raises(ToolError, match="There is no folder nowhere"):
        await sh(ws, "pwd", workdir="nowhere")


@pytest.mark.parametrize("command", ["", "  \n", "a\0b", "echo " + "x" * 200_000, "\ud800"])
async def test_commands_that_cannot_be_run_are_refused_before(ws: Workspace, command: str) -> None:
    params = ShellParams.model_construct(command=command, timeout=5, workdir=".")
    problem = Shell(ws).precheck(params)
    assert problem is not None
    with pytest.raises(ToolError):
        await Shell(ws).execute(params, Context())


def test_its_facts_are_careful(ws: Workspace) -> None:
    facts = Shell(ws).facts
    assert facts.effect is Effect.DESTRUCTIVE and facts.open_world and facts.secrets == {"command", "env"}


async def test_output_comes_live_and_not_too_often(ws: Workspace) -> None:
    listener = Listener()
    ctx: Context[Any] = Context(host=listener)  # type: ignore[arg-type]
    await sh(ws, "echo first; sleep 0.5; for i in $(seq 2000); do echo $i; done", ctx)
    assert listener.told[0]["output"] == "first\n"
    assert listener.told[-1]["exit_code"] == 0 and listener.told[-1]["output"].endswith("2000\n")
    assert len(listener.told) < 40


async def test_much_output_keeps_its_beginning_and_its_end(ws: Workspace) -> None:
    got = await sh(ws, "seq 1 400000")
    assert got.startswith("1\n2\n3\n") and got.endswith("\n399999\n400000")
    assert "bytes left out ...]" in got
    assert len(got) < 1_200_000
    numbers = [int(line) for line in got.splitlines() if line.isdigit()]
    assert numbers == sorted(numbers)  # cut between lines: no number is a piece of another


# Processes. Only those are looked at that a test itself started: each writes its id into a file.


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs a process table to read")

SLEEPERS: dict[str, str] = {
    "child": "sh -c 'echo $$ >pid; exec sleep 60' ; true",
    "grandchild": "sh -c 'sh -c \"echo \\$\\$ >pid; sleep 60\"; true'; true",
    "background": "sh -c 'echo $$ >pid; exec sleep 60' & wait",
    "ignores_term": "trap '' TERM; echo $$ >pid; while :; do sleep 1; done",
    "ignores_term_below": "sh -c \"trap '' TERM; echo \\$\\$ >pid; while :; do sleep 1; done\"; true",
    "own_session": "setsid sh -c 'echo $$ >pid; exec sleep 60' ; sleep 60",
    "daemon": "(setsid setsid sh -c 'echo $$ >pid; exec sleep 60' >/dev/null 2>&1 &); sleep 60",
    "daemon_without_environment": "(env -i setsid sh -c 'echo $$ >pid; exec /bin/sleep 60' &); sleep 60",
    "nohup": "nohup sh -c 'echo $$ >pid; exec sleep 60' >/dev/null 2>&1 & sleep 60",
}


async def started(ws: Workspace) -> int:
    path = Path(ws.root.path) / "pid"
    for _ in range(500):
        if path.exists() and path.read_text().strip():
            return int(path.read_text())
        await asyncio.sleep(0.01)
    raise AssertionError("the command never started")


async def gone(pid: int) -> bool:
    for _ in range(200):
        if not alive(pid):
            return True
        await asyncio.sleep(0.01)
    return False


@contextmanager
def nothing_left_by(ws: Workspace) -> Iterator[None]:
    """Ends the process of the case, if toolcrib did not."""
    try:
        yield
    finally:
        path = Path(ws.root.path) / "pid"
        if path.exists() and path.read_text().strip() and alive(int(path.read_text())):
            os.kill(int(path.read_text()), 9)


@pytest.fixture
def clean(ws: Workspace) -> Iterator[None]:
    with nothing_left_by(ws):
        yield


@needs_proc
@each("name", SLEEPERS, at_once=4)
async def test_a_timeout_ends_all_that_was_started(tmp_path: Path, name: str) -> None:
    ws = Workspace(tmp_path)
    with nothing_left_by(ws):
        with pytest.raises(ToolError, match=r"longer than 1 second\b") as refused:
            await sh(ws, f"echo begun; {SLEEPERS[name]}", timeout=1)
        assert "begun" in refused.value.message
        assert await gone(await started(ws))


@needs_proc
@each("name", SLEEPERS, at_once=4)
async def test_a_cancel_ends_all_that_was_started(tmp_path: Path, name: str) -> None:
    ws = Workspace(tmp_path)
    with nothing_left_by(ws):
        task = asyncio.create_task(sh(ws, SLEEPERS[name]))
        pid = await started(ws)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await gone(pid)


@needs_proc
@each("name", SLEEPERS)
async def test_a_cancel_while_it_starts_ends_all_that_was_started(tmp_path: Path, name: str) -> None:
    ws = Workspace(tmp_path)
    with nothing_left_by(ws):
        task = asyncio.create_task(sh(ws, SLEEPERS[name]))
        pid_file = tmp_path / "pid"
        for _ in range(200):
            await asyncio.sleep(0)
            time.sleep(0.04)  # noqa: ASYNC251 - the command is ahead of us, who have not heard that it runs
            if pid_file.exists() and pid_file.read_text().strip():
                break
        pid = await started(ws)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await gone(pid)


@needs_proc
async def test_a_second_cancel_hurries_the_end(ws: Workspace, clean: None) -> None:
    shell = Shell(ws, grace=30.0, sandbox=NoSandbox())
    task = asyncio.create_task(shell.execute(ShellParams(command=SLEEPERS["ignores_term"]), Context()))
    pid = await started(ws)
    task.cancel()
    await asyncio.sleep(0.2)
    assert alive(pid) and not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(pid)


@needs_proc
@pytest.mark.parametrize(
    "command",
    [
        "sh -c 'echo $$ >pid; exec sleep 60' & while [ ! -s pid ]; do :; done; echo done",
        "sh -c 'echo $$ >pid; exec sleep 60' >log 2>&1 & while [ ! -s pid ]; do :; done; echo done",
        "setsid sh -c 'echo $$ >pid; exec sleep 60' & while [ ! -s pid ]; do :; done; echo done",
    ],
)
async def test_what_is_left_in_the_background_is_stopped_and_told(
    ws: Workspace, command: str, clean: None
) -> None:
    got = await sh(ws, command)
    assert got == "done\n\n[stopped what it left running in the background (1 process)]"
    assert await gone(await started(ws))


@needs_proc
async def test_what_was_detached_on_purpose_stays(ws: Workspace, clean: None) -> None:
    got = await sh(
        ws, "setsid sh -c 'echo $$ >pid; exec sleep 60' >log 2>&1 & while [ ! -s pid ]; do :; done; echo done"
    )
    assert got == "done"
    assert alive(await started(ws))


@needs_proc
async def test_commands_side_by_side_do_not_end_each_other(ws: Workspace) -> None:
    slow = asyncio.create_task(sh(ws, "sleep 1.5; echo slow"))
    with pytest.raises(ToolError):
        await sh(ws, "sleep 30", timeout=1)
    await sh(ws, "sleep 30 & echo")
    assert await slow == "slow"


def test_it_runs_on_loops_in_other_threads(ws: Workspace) -> None:
    import threading

    got: list[str] = []
    threads = [
        threading.Thread(target=lambda number=number: got.append(asyncio.run(sh(ws, f"echo {number}"))))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == ["0", "1", "2", "3"]


@needs_proc
async def test_descriptors_are_given_back(ws: Workspace) -> None:
    await sh(ws, "true")
    before = descriptors()
    for command in ("true", "exit 1", "sleep 5 & true"):
        await sh(ws, command)
    with pytest.raises(ToolError):
        await sh(ws, "sleep 9", timeout=1)
    with pytest.raises(ToolError):
        await sh(ws, "true", workdir="nowhere")
    assert descriptors() <= before


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


# Buffers.


@given(st.integers(0, 40), st.lists(st.binary(max_size=30), max_size=30))
def test_head_and_tail_are_what_they_say(limit: int, pieces: list[bytes]) -> None:
    kept = BoundedOutput(limit)
    for piece in pieces:
        kept.feed(piece)
    whole = b"".join(pieces)
    assert kept.total == len(whole)
    assert kept.omitted == max(0, len(whole) - limit)
    head, tail = kept.head, kept.tail
    assert whole.startswith(head) and whole.endswith(tail)
    assert len(head) + len(tail) == min(limit, len(whole))
    assert len(head) == min(limit // 2, len(whole))


@given(st.text())
def test_plain_text_has_no_control_characters(text: str) -> None:
    got = plain(text.encode("utf-8", "replace"))
    assert not [char for char in got if ord(char) < 32 and char not in "\n\t"]
    assert plain(got.encode()) == got


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda count: b"\x1b]" * count,
        lambda count: b"\x1b[" * count,
        lambda count: b"\x1b[0" * count,
        lambda count: b"a\r" * count,
        lambda count: b"\r" * count,
        lambda count: b"abc" * count,
        lambda count: b"\x1bP" + b"x" * count,
        lambda count: b"\x1b" + b" " * count,
    ],
)
def test_cleaning_is_linear(make: Callable[[int], bytes]) -> None:
    def cleaning(count: int) -> Callable[[], object]:
        data = make(count)
        return lambda: plain(data)

    assert growth(cleaning, 20_000, 200_000, 60, floor=1e-5) < 60
