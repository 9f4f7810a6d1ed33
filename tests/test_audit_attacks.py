"""The audit log under attack: several writers, killed writers, full disks, and files that are not what they were."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Effect, Toolbox, tool
from toolcrib.audit import AuditError, AuditLog, read_key
from toolcrib.call import CallKey, ToolCall
from toolcrib.rules import Limit, RateLimits

KEY = b"k" * 32
ran: list[str] = []

WRITER = """
import sys
from toolcrib.audit import AuditLog
log = AuditLog(sys.argv[1], key=b"k" * 32, actor=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    log.note({"event": "x", "number": number, "filler": "." * 300})
    print(number, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


@tool(effect=Effect.WRITE, secrets=())
async def touch(name: str = "") -> str:
    "Touch."
    ran.append(name)
    return "done"


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    children = [writer(path, name, 40) for name in "abc"]
    for child in children:
        go(child)
    for child in children:
        child.communicate(timeout=60)
        assert child.returncode == 0
    checked = AuditLog(path, key=KEY).check()
    assert (checked.lines, checked.broken) == (120, None)
    for name in "abc":
        assert [item["number"] for item in records(path) if item["by"] == name] == list(range(40))


def test_a_writer_that_is_killed_leaves_neither_a_lock_nor_a_broken_chain(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    other = AuditLog(path, key=KEY)
    other.note({"event": "first"})
    for _ in range(5):
        child = writer(path, "killed", 100_000)
        go(child)
        assert child.stdout is not None
        for _ in range(3):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        said = child.communicate(timeout=60)[0].split()
        other.note({"event": "after", "said": len(said)})
        checked = other.check()
        assert checked.broken is None
    assert AuditLog(path, key=KEY).check().ok
    assert len([item for item in records(path) if item["event"] == "after"]) == 5


@pytest.mark.promise("faults.md", "The audit log verifies, and has the line of every call that ran.")
def test_what_was_said_to_be_written_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    child = writer(path, "killed", 100_000)
    go(child)
    assert child.stdout is not None
    said = [int(child.stdout.readline()) for _ in range(20)]
    child.send_signal(signal.SIGKILL)
    child.wait(60)
    AuditLog(path, key=KEY).note({"event": "end"})
    assert {item.get("number") for item in records(path)} >= set(said)


def test_threads_with_loops_of_their_own_share_a_log(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY, sync=False)
    box = Toolbox([touch], autonomy="full", audit=log)

    def work(name: str) -> None:
        async def calls() -> None:
            await asyncio.gather(*(box.call("touch", {"name": name}) for _ in range(50)))

        asyncio.run(calls())

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checked = log.check()
    assert (checked.lines, checked.broken) == (400, None)
    events = [(item["call"], item["event"]) for item in records(log.path)]
    assert all(events.index((call, "decided")) < events.index((call, "ended")) for call, _ in events)


def test_a_forked_process_has_a_writer_of_its_own(tmp_path: Path) -> None:
    code = """
import os, sys
from toolcrib.audit import AuditLog
log = AuditLog(sys.argv[1], key=b"k" * 32)
log.note({"event": "parent"})
child = os.fork()
log.note({"event": "child" if child == 0 else "parent"})
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(log.check().lines, log.check().ok)
"""
    path = str(tmp_path / "a.jsonl")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60)
    assert done.stdout == "3 True\n", done.stderr


def test_lines_are_written_before_the_program_ends(tmp_path: Path) -> None:
    code = """
import sys
from toolcrib import Effect, Toolbox, tool
from toolcrib.audit import AuditLog
@tool(effect=Effect.WRITE, secrets=())
def touch() -> str:
    "Touch."
    return "done"
Toolbox([touch], autonomy="full", audit=AuditLog(sys.argv[1], key=b"k" * 32)).call_sync("touch", {})
"""
    path = tmp_path / "a.jsonl"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    assert [item["event"] for item in records(path)] == ["decided", "ended"]


async def test_the_loop_goes_on_while_a_line_is_written(tmp_path: Path) -> None:
    """Somebody else holds the log: this call waits, others and the loop do not."""
    import fcntl

    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    log.note({"event": "first"})
    ran.clear()
    box = Toolbox([touch], autonomy="full", audit=log)
    fd = os.open(log.path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        waiting = asyncio.create_task(box.call("touch", {"name": "held"}))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not waiting.done()
        assert ran == []
    finally:
        os.close(fd)
    assert (await waiting).text == "done"
    assert ran == ["held"]


async def test_a_call_that_is_cancelled_while_its_line_is_written_does_not_run(tmp_path: Path) -> None:
    import fcntl

    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    log.note({"event": "first"})
    ran.clear()
    limits = RateLimits([Limit(1)])
    box = Toolbox([touch], autonomy="full", audit=log, limits=limits)
    fd = os.open(log.path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        waiting = asyncio.create_task(box.call("touch", {"name": "cancelled"}))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    finally:
        os.close(fd)
    assert (await box.call("touch", {"name": "next"})).text == "done", "what did not run counts for no limit"
    assert ran == ["next"]
    assert log.check().ok


def plain(log: AuditLog) -> list[str]:
    return log.path.read_text().splitlines(keepends=True)


def cut_middle(log: AuditLog) -> None:
    kept = plain(log)
    log.path.write_text("".join([kept[0], *kept[2:]]))


def edit(log: AuditLog) -> None:
    log.path.write_text(log.path.read_text().replace('"value":1', '"value":7'))


def replace_by_link(log: AuditLog) -> None:
    log.path.rename(log.path.with_name("elsewhere"))
    log.path.symlink_to("elsewhere")


def replace_by_pipe(log: AuditLog) -> None:
    log.path.unlink()
    os.mkfifo(log.path)


def replace_by_full_device(log: AuditLog) -> None:
    log.path.unlink()
    log.path.symlink_to("/dev/full")


def other_head(log: AuditLog) -> None:
    log.head.write_text(f"2 {'0' * 64}\n")


ATTACKS: dict[str, Callable[[AuditLog], Any]] = {
    "the last line cut": lambda log: log.path.write_text("".join(plain(log)[:-1])),
    "all lines cut": lambda log: log.path.write_text(""),
    "a line cut in the middle": cut_middle,
    "a value edited": edit,
    "a line appended": lambda log: log.path.write_text(log.path.read_text() + '{"n":3}\n'),
    "removed": lambda log: log.path.unlink(),
    "moved away": lambda log: log.path.rename(log.path.with_name("a.1")),
    "a link in its place": replace_by_link,
    "a pipe in its place": replace_by_pipe,
    "a full device in its place": replace_by_full_device,
    "a folder in its place": lambda log: (log.path.unlink(), log.path.mkdir()),
    "the head removed": lambda log: log.head.unlink(),
    "the head emptied": lambda log: log.head.write_text(""),
    "the head forged": other_head,
    "the head a link": lambda log: (log.head.rename(log.head.with_name("h")), log.head.symlink_to("h")),
}


@each("fresh", [True, False], ids=["opened anew", "already open"])
@each("attack", ATTACKS.values(), ids=ATTACKS)
async def test_a_log_that_is_not_what_it_was_is_not_gone_on_with(
    attack: Callable[[AuditLog], Any], fresh: bool, tmp_path: Path
) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    for value in range(3):
        log.note({"event": "x", "value": value})
    before = log.path.stat().st_mtime_ns
    attack(log)
    for path in (log.path, log.head):
        if path.is_file():  # an edit is not in the same tick of the clock
            os.utime(path, ns=(before + 10**9, before + 10**9))
    used = AuditLog(log.path, key=KEY) if fresh else log
    ran.clear()
    result = await Toolbox([touch], autonomy="full", audit=used).call("touch", {"name": "x"})
    assert result.is_error
    assert ran == []
    assert str(tmp_path) not in result.text
    said: list[str] = []
    loud = AuditLog(log.path, key=KEY, on_failure="go_on", complain=said.append)
    assert not (await Toolbox([touch], autonomy="full", audit=loud).call("touch", {"name": "y"})).is_error
    loud.flush()
    assert "unrecorded" in said[0]
    assert len(said) == 2, "the line after the call is missed too"
    assert ran == ["y"]


def test_moving_log_and_head_away_begins_a_new_one(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    for _ in range(2):
        log.note({"event": "x"})
    log.path.rename(tmp_path / "old.jsonl")
    log.head.rename(tmp_path / "old.jsonl.head")
    log.note({"event": "y"})
    assert [item["n"] for item in records(log.path)] == [0]
    assert log.check().lines == 1
    assert AuditLog(tmp_path / "old.jsonl", key=KEY).check().lines == 2


async def test_a_full_disk_refuses_and_counts_for_no_limit(tmp_path: Path) -> None:
    import resource

    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    log.note({"event": "x"})
    ran.clear()
    box = Toolbox([touch], autonomy="full", audit=log, limits=RateLimits([Limit(1), Limit(1, seconds=60)]))
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.path.stat().st_size + 20, before[1]))
    try:
        for name in "abc":
            assert (await box.call("touch", {"name": name})).is_error
        log.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert ran == []
    assert (await box.call("touch", {"name": "d"})).text == "done"
    assert ran == ["d"]
    assert log.check().ok


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    log = AuditLog(folder / "a.jsonl", key=KEY)
    assert (await Toolbox([touch], autonomy="full", audit=log).call("touch", {})).is_error


def test_keys_that_are_made_at_once_are_one(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "audit.key"
    keys: list[bytes] = []
    start = threading.Barrier(8)

    def read() -> None:
        start.wait()
        keys.append(read_key(place))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1
    assert [path.name for path in place.parent.iterdir()] == ["audit.key"]


def test_a_key_is_an_ordinary_file_of_ours(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(AuditError, match="no ordinary file"):
        read_key(tmp_path / "pipe")


async def test_what_is_prepared_but_not_run_leaves_no_line(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    box = Toolbox([touch], autonomy="full", audit=log)
    prepared = await box.prepare(ToolCall("touch", {}), key=CallKey("r", 0, 0))
    log.flush()
    assert not log.path.exists()
    await asyncio.gather(box.execute(prepared), box.execute(prepared))
    assert log.check().lines == 2


def test_a_log_with_nothing_to_write_has_no_thread(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    for number in range(3):
        log.note({"event": str(number)})
        for thread in [thread for thread in threading.enumerate() if thread.name == "toolcrib-audit"]:
            thread.join(10)
            assert not thread.is_alive()
    assert log.check().lines == 3


def watched_disk(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], None]) -> list[int]:
    """Calls `wait` each time that the log is to reach the disk, before it does; the sizes of the log at these times."""
    name = "fdatasync" if hasattr(os, "fdatasync") else "fsync"
    real, sizes = getattr(os, name), list[int]()

    def to_disk(fd: int) -> None:
        sizes.append(os.fstat(fd).st_size)
        wait()
        real(fd)

    monkeypatch.setattr(os, name, to_disk)
    return sizes


async def test_calls_at_once_wait_for_the_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    begun, may_go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        may_go_on.wait(10)

    sizes = watched_disk(monkeypatch, wait)
    box = Toolbox([touch], autonomy="full", audit=log)
    ran.clear()
    calls = [asyncio.create_task(box.call("touch", {"name": str(number)})) for number in range(100)]
    await asyncio.to_thread(begun.wait, 10)
    await asyncio.sleep(0.02)
    assert ran == [], "no call runs before its line is on the disk"
    may_go_on.set()
    await asyncio.gather(*calls)
    assert len(ran) == 100
    log.flush()
    assert len(sizes) < 20
    assert log.head.read_text().split()[0] == "200"
    assert log.check().ok


async def test_a_line_that_nobody_waits_for_reaches_the_disk_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=KEY)
    sizes = watched_disk(monkeypatch, lambda: None)
    await Toolbox([touch], autonomy="full", audit=log).call("touch", {"name": "a"})
    for thread in [thread for thread in threading.enumerate() if thread.name == "toolcrib-audit"]:
        await asyncio.to_thread(thread.join, 10)
    assert sizes[-1] == log.path.stat().st_size
    assert log.head.read_text().split()[0] == "2"


async def test_calls_whose_lines_do_not_reach_the_disk_do_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    told: list[str] = []
    log = AuditLog(tmp_path / "a.jsonl", key=KEY, complain=told.append)
    box = Toolbox([touch], autonomy="full", audit=log)
    assert not (await box.call("touch", {"name": "before"})).is_error
    log.flush()
    ran.clear()
    with monkeypatch.context() as broken:
        watched_disk(broken, fail)
        results = await asyncio.gather(*(box.call("touch", {"name": str(number)}) for number in range(30)))
        log.flush()
    assert all("Nothing was run" in result.text for result in results)
    assert ran == []
    assert any("Input/output error" in words for words in told)
    assert not (await box.call("touch", {"name": "after"})).is_error
    log.flush()
    assert [item["event"] for item in records(log.path)].count("decided") == 2
    assert log.check().ok


@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(), SystemExit(), ValueError()])
@pytest.mark.parametrize("code", ["mask", "clock", "complain"])
async def test_what_code_of_a_user_raises_while_a_call_is_noted_ends_no_run(
    code: str, error: BaseException, tmp_path: Path
) -> None:
    def fail(*given: object) -> Any:
        raise error

    (tmp_path / "no").write_text("")
    log = AuditLog(tmp_path / "no" / "a.jsonl", key=KEY, **{code: fail})  # type: ignore[arg-type]
    ran.clear()
    box = Toolbox([touch], autonomy="full", audit=log)
    for _ in range(3):  # the log answers again after the thread that wrote its lines has ended
        result = await asyncio.wait_for(box.call("touch", {"name": "a"}), 20)
        assert result.is_error
        await asyncio.to_thread(log.flush)
    assert ran == []


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError()])
async def test_a_log_goes_on_where_its_thread_cannot_even_tell_what_is_lost(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise error

    (tmp_path / "no").write_text("")
    monkeypatch.setattr(logging.getLogger("toolcrib"), "filters", [fail])
    box = Toolbox(
        [touch], autonomy="full", audit=AuditLog(tmp_path / "no" / "a.jsonl", key=KEY, complain=fail)
    )
    for _ in range(2):
        await box.call("nothing", {})
        result = await asyncio.wait_for(box.call("touch", {"name": "a"}), 5)
        assert "Nothing was run" in result.text


async def test_a_folder_that_is_gone_meanwhile_is_told_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    log = AuditLog(tmp_path / "logs" / "a.jsonl", key=KEY, complain=told.append)
    watched_disk(monkeypatch, lambda: shutil.rmtree(tmp_path / "logs"))
    result = await Toolbox([touch], autonomy="full", audit=log).call("touch", {"name": "a"})
    log.flush()
    assert result.is_error
    assert (
        told[0] == "the audit log a.jsonl cannot be written: No such file or directory; the call is not run"
    )
