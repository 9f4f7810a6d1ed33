"""What is left when the process is killed with SIGKILL, which no code of ours can see: nothing that runs, and no lie."""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.properties import is_nightly
from tests.sandbox_runs import BACKENDS, backend
from toolcrib import Agent, Answer, Toolbox, Verdict
from toolcrib.agent import TranscriptFile, scan_transcript
from toolcrib.audit import AuditLog
from toolcrib.checkpoints import Checkpoints
from toolcrib.command.launch.output import BoundedOutput
from toolcrib.command.launch.process import run_process
from toolcrib.command.sandbox import NoSandbox, Sandbox
from toolcrib.errors import ErrorCode
from toolcrib.models import Scripted
from toolcrib.question import Lasting, Question, Scope
from toolcrib.rules.approvals import ApprovalStore
from toolcrib.tools import EditFile, Workspace, workspace_tools

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="where the system has no /proc, survivors cannot be found"
    ),
]
START = 0.08  # seconds in which a command is certainly started
GONE_WITHIN = 5.0


def rounds() -> int:
    """How often a process is killed, each time at another moment."""
    return 100 if is_nightly() else 40


def in_fork(work: Callable[[], None]) -> int:
    """The id of a fork of this process that does the work and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return pid


def killed_after(pid: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def named_in_command_lines(tag: str) -> list[int]:
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and tag.encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def sandbox_of(kind: str, place: Path) -> Sandbox:
    return NoSandbox() if kind == "none" else backend(kind)(place)


@pytest.mark.promise(
    "faults.md",
    "A command ends with the process that started it, also while it is being started, in "
    "every sandbox on Linux and without one.",
)
@pytest.mark.parametrize("kind", [*BACKENDS, "none"])
def test_no_command_survives_the_process_that_was_starting_it(kind: str, tmp_path: Path) -> None:
    sandbox, tag = sandbox_of(kind, tmp_path), secrets.token_hex(8)
    sandbox.launch(
        ["true"], cwd=str(tmp_path), env={}
    ).close()  # what is tried once in a process is tried here
    script = ["/bin/sh", "-c", f"sleep 60; : {tag}"]
    env = {"PATH": os.environ["PATH"]}
    chance = random.Random(7)

    def work() -> None:
        launch = sandbox.launch(script, cwd=str(tmp_path), env=env)
        os.write(ready, b"r")
        running = run_process(
            launch.argv, cwd=str(tmp_path), env=launch.env, timeout=60, output=BoundedOutput(100),
            pass_fds=launch.pass_fds, on_start=launch.started,
        )  # fmt: skip
        asyncio.run(running)

    begun, ready = os.pipe()
    for _ in range(rounds()):
        pid = in_fork(work)
        assert os.read(begun, 1) == b"r"
        killed_after(pid, chance.random() * START)
    os.close(begun)
    os.close(ready)
    deadline = time.monotonic() + GONE_WITHIN
    while (left := named_in_command_lines(tag)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


# -- what was written

EDITS = 40
PADDING = "x" * 100_000 + "\n"


def edits_until_killed(place: Path) -> None:
    """A run that counts in a file, one edit a turn, with a question that is answered for good at its first call."""
    turns = [
        {
            "calls": [
                {
                    "name": "edit_file",
                    "arguments": {"path": "count", "old_string": f"n={n}\n", "new_string": f"n={n + 1}\n"},
                }
            ]
        }
        for n in range(EDITS)
    ]

    async def person(question: Question) -> Answer:
        return Answer(Verdict.ALWAYS, lasting=Lasting.USER, scope=Scope.TOOL, by="ann")

    box = Toolbox(
        [EditFile(Workspace(place / "ws"))],
        approver=person,
        approvals=ApprovalStore(place / "approvals.json"),
        audit=AuditLog(place / "audit.jsonl", key=b"k" * 32),
    )
    with closing(TranscriptFile(place / "t.jsonl")) as transcript:
        Agent(Scripted([*turns, "Done."]), toolbox=box, max_turns=EDITS + 1).run_sync(
            "Go.", transcript=transcript
        )


@pytest.mark.promise("faults.md", "The audit log verifies, and has the line of every call that ran.")
@pytest.mark.promise("faults.md", "An edited file has its old or its new content.")
@pytest.mark.promise(
    "faults.md",
    "A transcript is readable up to its last whole line. A result in it is true; a call "
    "without one is answered as `outcome_unknown`.",
)
def test_what_was_written_is_readable_and_true_whenever_the_process_is_killed(tmp_path: Path) -> None:
    chance = random.Random(11)
    unknown_results, whole_edits = 0, []
    for number in range(rounds() // 2):
        place = tmp_path / str(number)
        (place / "ws").mkdir(parents=True)
        count = place / "ws" / "count"
        count.write_text(f"{PADDING}n=0\n{PADDING}")
        killed_after(in_fork(lambda place=place: edits_until_killed(place)), chance.random() * 0.5)  # type: ignore[misc]

        content = count.read_text()
        done = int(
            content.removeprefix(f"{PADDING}n=").removesuffix(f"\n{PADDING}")
        )  # old or new, no mixture
        whole_edits.append(done)
        if (place / "audit.jsonl").exists():
            log = AuditLog(place / "audit.jsonl", key=b"k" * 32)
            assert log.check().ok
            log.note({"event": "afterwards"})  # its lock is free
            lines = [json.loads(line) for line in (place / "audit.jsonl").read_text().splitlines()]
            assert sum(line["event"] == "decided" for line in lines) >= done
        store = ApprovalStore(place / "approvals.json")
        assert len(store.all()) <= 1
        store.revoke("none")
        if not (place / "t.jsonl").exists() or not (place / "t.jsonl").read_bytes():
            assert done == 0
            continue
        messages = scan_transcript(place / "t.jsonl").mended
        results = [result for message in messages for result in message.results]
        known = [result for result in results if not result.is_error]
        unknown = [result for result in results if result.code is ErrorCode.OUTCOME_UNKNOWN]
        unknown_results += len(unknown)
        assert len(known) + len(unknown) == len(results)
        assert len(known) <= done <= len(known) + len(unknown)
    assert len(set(whole_edits)) > 5 and unknown_results


# -- what runs in the background


def background_until_killed(place: Path, tag: str, ready: int) -> None:
    """A run with a process in the background and one of a Python session, which says when both are there."""
    code = f"import os, subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 60; : {tag}'])\nos.getpid()"

    async def both() -> None:
        tools = workspace_tools(Workspace(place))
        async with Toolbox(tools, autonomy="full") as box:
            command = f"(setsid sleep 60 &) ; sleep 60; : {tag}"
            started = await box.call("shell", {"command": command, "run_in_background": True})
            ran = await box.call("python", {"code": code})
            os.write(ready, b"e" if started.is_error or ran.is_error else b"r")
            await asyncio.sleep(60)

    asyncio.run(both())


def test_nothing_in_the_background_survives_the_process_that_owned_it(tmp_path: Path) -> None:
    tag = secrets.token_hex(8)
    begun, ready = os.pipe()
    for _ in range(3):
        pid = in_fork(lambda: background_until_killed(tmp_path, tag, ready))
        assert os.read(begun, 1) == b"r"
        assert named_in_command_lines(tag)
        killed_after(pid, 0)
    os.close(begun)
    os.close(ready)
    deadline = time.monotonic() + GONE_WITHIN
    while (left := named_in_command_lines(tag)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


# -- what was handed to other agents


def delegating_until_killed(place: Path, tag: str) -> None:
    """A run whose two helpers work in the background: each has a process, and a command in the foreground."""
    from toolcrib.agent.delegation import Delegate, delegation_tools

    def calls(name: str, **arguments: Any) -> dict[str, Any]:
        return {"calls": [{"name": name, "arguments": arguments}]}

    def helper(number: int) -> Agent:
        work = [
            calls("write_file", path=f"by-{number}", content="whole\n" * 1000),
            calls("shell", command=f"(setsid sleep 60 &) ; sleep 60; : {tag}", run_in_background=True),
            calls("shell", command=f"touch up-{number}; sleep 60; : {tag}"),
        ]
        tools = [*workspace_tools(Workspace(place / "ws"))]
        return Agent(Scripted([*work, "Done."]), tools, autonomy="full")

    helpers = {f"helper{number}": Delegate(helper(number), "Helps.") for number in range(2)}
    hands_out = [calls("new_task", agent=name, task="Go.", background=True) for name in helpers]
    outer = Agent(
        Scripted([*hands_out, calls("shell", command=f"sleep 60; : {tag}"), "Done."]),
        [*workspace_tools(Workspace(place / "ws")), *delegation_tools(helpers)],
        autonomy="full",
        checkpoints=Checkpoints(place / "ws", store=place / "store"),
    )
    with closing(TranscriptFile(place / "t.jsonl")) as transcript:
        outer.run_sync("Go.", transcript=transcript)


def test_of_a_run_with_tasks_in_the_background_nothing_runs_on_and_all_of_it_can_be_undone(
    tmp_path: Path,
) -> None:
    tag, ws = secrets.token_hex(8), tmp_path / "ws"
    ws.mkdir()
    (ws / "by-0").write_text("mine\n")
    pid = in_fork(lambda: delegating_until_killed(tmp_path, tag))
    deadline = time.monotonic() + 30
    while not ((ws / "up-0").exists() and (ws / "up-1").exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert named_in_command_lines(tag)
    killed_after(pid, 0)
    deadline = time.monotonic() + GONE_WITHIN
    while (left := named_in_command_lines(tag)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for survivor in left:
        os.kill(survivor, signal.SIGKILL)
    assert left == []
    assert {(ws / f"by-{number}").read_text() for number in range(2)} == {"whole\n" * 1000}
    messages = scan_transcript(tmp_path / "t.jsonl").mended
    results = [result for message in messages for result in message.results]
    assert [result.is_error for result in results] == [False, False, True]
    assert results[-1].code is ErrorCode.OUTCOME_UNKNOWN
    Checkpoints(ws, store=tmp_path / "store").undo()
    # The empty folders that a sandbox covered names with go with the next command.
    Toolbox(workspace_tools(Workspace(ws)), autonomy="full").call_sync("shell", {"command": "echo $0"})
    assert sorted(path.name for path in ws.iterdir()) == ["by-0"]
    assert (ws / "by-0").read_text() == "mine\n"
