"""The file of approvals under attack: several processes, killed ones, clocks set back, and files that are none."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Answer, Effect, Toolbox, Verdict, tool
from toolcrib.call import CallKey
from toolcrib.errors import ToolcribError
from toolcrib.question import Lasting, Question, Scope
from toolcrib.rules.approvals import ApprovalStore
from toolcrib.toolbox.approval import Approval

ONE = Approval("id", "run", "identity", Scope.TOOL, Lasting.USER, at=1000.0, shown="every call of run")

ADDS = """
import sys
from toolcrib.question import Lasting, Scope
from toolcrib.rules.approvals import ApprovalStore
from toolcrib.toolbox.approval import Approval
store = ApprovalStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    store.add(Approval(f"{sys.argv[2]}{number}", "run", "i", Scope.TOOL, Lasting.USER, at=1.0))
    print(number, flush=True)
"""


def adder(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", ADDS, str(path), name, str(count)],
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


def test_what_is_stored_has_its_name_on_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, waited = tmp_path / "a.json", list[tuple[bool, bool]]()
    fsync = os.fsync

    def noted(fd: int) -> None:
        waited.append((os.path.samestat(os.fstat(fd), tmp_path.stat()), path.exists()))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    ApprovalStore(path).add(ONE)
    assert waited[-1] == (True, True)  # its folder, after the file had its name


def test_a_file_system_that_cannot_sync_folders_stores_approvals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "cannot sync folders")

    monkeypatch.setattr(os, "fsync", cannot)
    store = ApprovalStore(tmp_path / "a.json")
    store.add(ONE)
    assert [one.id for one in store.all()] == ["id"]


@pytest.mark.promise("policy.md", "Several processes may use that file at once.")
def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    children = [adder(path, name, 25) for name in "abc"]
    for child in children:
        go(child)
    for child in children:
        child.communicate(timeout=60)
    assert {item.id for item in ApprovalStore(path).all()} == {f"{n}{i}" for n in "abc" for i in range(25)}


@pytest.mark.promise(
    "faults.md",
    "Stored approvals are whole. No lock stays: locks are the kernel's, and end with the process.",
)
def test_a_killed_process_leaves_no_lock_and_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    store = ApprovalStore(path)
    for turn in range(4):
        child = adder(path, f"k{turn}-", 100_000)
        go(child)
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(5)]
        child.send_signal(signal.SIGKILL)
        child.wait(60)
        store.add(replace(ONE, id=f"after {turn}"))
        known = {item.id for item in store.all()}
        assert {f"k{turn}-{line.strip()}" for line in said} <= known
        assert f"after {turn}" in known


def test_revoking_while_others_add_keeps_both(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    store = ApprovalStore(path)
    for number in range(20):
        store.add(replace(ONE, id=f"old{number}"))
    child = adder(path, "new", 20)
    go(child)
    assert all(store.revoke(f"old{number}") for number in range(20))
    child.communicate(timeout=60)
    assert {item.id for item in store.all()} == {f"new{number}" for number in range(20)}


@pytest.mark.promise(
    "policy.md",
    "An approval that has expired stays expired when the clock is set back, as far as the file shows it.",
)
@pytest.mark.promise(
    "faults.md", "An approval lasts no longer than it was meant to when the clock is set back."
)
@pytest.mark.parametrize("anew", [True, False], ids=["another process", "the same process"])
def test_what_has_expired_does_not_live_again_when_the_clock_is_set_back(anew: bool, tmp_path: Path) -> None:
    now = [1500.0]
    store = ApprovalStore(tmp_path / "a.json", clock=lambda: now[0])
    store.add(replace(ONE, expires=2000.0))
    store.add(replace(ONE, id="for ever"))
    assert len(store.all()) == 2
    now[0] = 2001.0
    assert [item.id for item in store.all()] == ["for ever"]
    now[0] = 1500.0
    seen = ApprovalStore(store.path, clock=lambda: now[0]) if anew else store
    assert [item.id for item in seen.all()] == ["for ever"]


@pytest.mark.promise(
    "faults.md", "An approval lasts no longer than it was meant to when the clock is set back."
)
async def test_what_was_approved_for_a_run_lasts_no_longer_when_the_clock_is_set_back() -> None:
    now, asked = [1500.0], []

    @tool(effect=Effect.WRITE, secrets=())
    def put() -> str:
        """Put."""
        return "put"

    async def person(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS, lasting=Lasting.RUN, expires=2000.0)

    box = Toolbox([put], approver=person, clock=lambda: now[0])
    times = ((1500.0, 1), (1900.0, 1), (2001.0, 2), (1500.0, 3), (10.0, 4))
    for turn, (time, questions) in enumerate(times):
        now[0] = time
        assert not (await box.call("put", {}, key=CallKey("r", turn, 0))).is_error
        assert len(asked) == questions


def test_a_clock_before_the_last_approval_is_not_believed(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.json", clock=lambda: 3000.0)
    store.add(replace(ONE, expires=2500.0, at=1000.0))
    store.path.unlink()
    back = ApprovalStore(tmp_path / "b.json", clock=lambda: 100.0)
    back.add(replace(ONE, id="short", at=1000.0, expires=2500.0))
    back.add(replace(ONE, id="later", at=2600.0))
    assert [item.id for item in back.all()] == ["later"]


NONSENSE: dict[str, dict[str, Any]] = {
    "an expiry in words": {"expires": "tomorrow"},
    "an expiry that is no number": {"expires": float("nan")},
    "an expiry that is true": {"expires": True},
    "no time": {"at": None},
    "an identity that is none": {"identity": None},
    "a place that is none": {"where": 5},
    "words that are none": {"prefixes": ((1,),)},
}


@pytest.mark.parametrize("change", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_neither_kept_nor_read(change: dict[str, Any], tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.json")
    wrong = replace(ONE, **change)
    with pytest.raises((ToolcribError, TypeError)):
        store.add(wrong)
    assert store.all() == []
    store.path.write_text(json.dumps({"format": 1, "approvals": [asdict(wrong)]}))
    store.path.chmod(0o600)
    with pytest.raises(ToolcribError):
        store.all()


def test_links_pipes_folders_and_open_folders_grant_nothing(tmp_path: Path) -> None:
    real = ApprovalStore(tmp_path / "real.json")
    real.add(ONE)
    (tmp_path / "link").symlink_to("real.json")
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir()
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    (open_folder / "a.json").write_text(real.path.read_text())
    (open_folder / "a.json").chmod(0o600)
    open_folder.chmod(0o777)
    for name in ("link", "pipe", "folder", "open/a.json"):
        with pytest.raises(ToolcribError):
            ApprovalStore(tmp_path / name).all()


def test_a_full_disk_keeps_what_there_was(tmp_path: Path) -> None:
    import resource

    store = ApprovalStore(tmp_path / "a.json")
    store.add(ONE)
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
    try:
        with pytest.raises(ToolcribError, match="cannot be written"):
            store.add(replace(ONE, id="two"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [item.id for item in store.all()] == ["id"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.json.lock", "a.json"]
