"""That a sandbox held is kept for later processes, and believed only on the machine as it was."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from toolcrib.command.sandbox import NoSandbox
from toolcrib.command.sandbox.choose import SandboxBackend, choose

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says enough of the machine")

ROW = SandboxBackend("any", lambda *given, **options: NoSandbox(), ("linux",), "")


class Trials:
    """Processes that choose a sandbox one after the other, and the trials that they made."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = file
        self.count = 0
        self.problems: list[str] = []
        monkeypatch.setattr("toolcrib.command.sandbox.probe.probe", self.probe)
        module = sys.modules["toolcrib.command.sandbox.choose"]  # the package's own `choose` is the function
        self.forget = lambda: monkeypatch.setattr(module, "_tried", {})

    def probe(self, make: Any) -> list[str]:
        self.count += 1
        return self.problems

    def in_a_process(self) -> int:
        """How many trials a process makes that has not chosen a sandbox before."""
        self.forget()
        before = self.count
        choose(self.file.parent, order=[ROW], trials=self.file)
        return self.count - before


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    return Trials(tmp_path / "state" / "trials.json", monkeypatch)


def test_what_held_is_not_tried_again(trials: Trials) -> None:
    assert [trials.in_a_process() for _ in range(3)] == [1, 0, 0]
    assert trials.file.stat().st_mode & 0o777 == 0o600


def test_what_did_not_hold_is_tried_each_time(trials: Trials) -> None:
    trials.problems = ["a command read a secret"]
    assert [trials.in_a_process() for _ in range(2)] == [1, 1]
    trials.problems = []
    assert [trials.in_a_process() for _ in range(2)] == [1, 0]


def test_it_is_tried_anew_after_a_day(trials: Trials) -> None:
    trials.in_a_process()
    noted = json.loads(trials.file.read_text())
    for at in (time.time() - 25 * 3600, time.time() + 3600, "now", None):
        noted["any"]["at"] = at
        trials.file.write_text(json.dumps(noted))
        assert trials.in_a_process() == 1
    assert trials.in_a_process() == 0


def test_it_is_tried_anew_on_a_machine_that_changed(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    trials.in_a_process()
    monkeypatch.setattr("toolcrib.command.sandbox.kept_trials.__version__", "0.0.9")
    assert [trials.in_a_process() for _ in range(2)] == [1, 0]
    program = trials.file.parent / "bwrap"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setattr("toolcrib.command.sandbox.kept_trials.bwrap", lambda: str(program))
    assert [trials.in_a_process() for _ in range(2)] == [1, 0]
    program.write_text("#!/bin/sh\necho\n")
    assert [trials.in_a_process() for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("damage", ["writable", "link", "broken", "nested", "folder", "gone"])
def test_a_file_that_is_not_trusted_says_nothing(trials: Trials, damage: str) -> None:
    trials.in_a_process()
    if damage == "writable":
        trials.file.chmod(0o666)
    elif damage == "link":
        trials.file.rename(trials.file.with_name("elsewhere"))
        trials.file.symlink_to("elsewhere")
    elif damage == "broken":
        trials.file.write_bytes(b'{"any": \xff')
    elif damage == "nested":
        trials.file.write_text("[" * 90_000)
    else:
        trials.file.unlink()
        if damage == "folder":
            trials.file.mkdir()
    assert trials.in_a_process() == 1


def test_without_a_file_nothing_is_kept(trials: Trials) -> None:
    for _ in range(2):
        trials.forget()
        choose(trials.file.parent, order=[ROW])
    assert trials.count == 2 and not trials.file.exists()
