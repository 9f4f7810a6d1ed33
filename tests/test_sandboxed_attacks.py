"""What a hostile model tries under "sandboxed": to change what no checkpoint brings back, without a question."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Agent, Effect, Question, tool
from toolcrib.assembly import default_tools
from toolcrib.checkpoints import Checkpoints
from toolcrib.checkpoints.scan import CheckpointLimits
from toolcrib.messages import ResultPart
from toolcrib.models import Scripted
from toolcrib.question import Answer, Verdict

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("bwrap"), reason="needs bubblewrap"),
    pytest.mark.slow,
]

INNER = ("", "lib/one", "lib/deep/two")  # repositories


class Attack:
    """A run of scripted calls under "sandboxed", with a person who says no; `asked` are the questions."""

    def __init__(self, root: Path, limits: CheckpointLimits | None = None) -> None:
        self.root = root
        self.asked: list[Question] = []
        self.checkpoints = Checkpoints(root, store=root.parent / "store", limits=limits or CheckpointLimits())

    def run(self, *calls: tuple[str, dict[str, Any]]) -> str:
        """Makes the calls, one a turn; returns what the tools said."""
        turns: list[Any] = [{"calls": [{"name": name, "arguments": given}]} for name, given in calls]
        agent = Agent(
            Scripted([*turns, "Done."]),
            [*default_tools(self.root), wait],
            autonomy="sandboxed",
            checkpoints=self.checkpoints,
            approver=self.approver,
        )
        outcome = agent.run_sync("Go.")
        return "\n".join(
            part.result.text
            for message in outcome.messages
            for part in message.parts
            if isinstance(part, ResultPart)
        )

    async def approver(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(Verdict.NO)


@tool(effect=Effect.READ, secrets=())
def wait(seconds: float) -> str:
    """Wait, and change nothing."""
    time.sleep(seconds)
    return "waited"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "user.txt").write_text("precious\n" * 1000)
    return made


def shell(command: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "shell", {"command": command, **more}


def test_the_history_of_a_repository_anywhere_in_the_workspace_stays(root: Path) -> None:
    commit = "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m"
    for inner in INNER:
        (root / inner).mkdir(parents=True, exist_ok=True)
        subprocess.run(["bash", "-c", f"{commit} 'of {inner or 0}'"], cwd=root / inner, check=True)
    (root / "x.py").write_text(
        "import os, shutil\n"
        "for folder, inner, _ in list(os.walk('.')):\n"
        "    if '.git' in inner:\n"
        "        shutil.rmtree(f'{folder}/.git', ignore_errors=True)\n"
        "os.system('mv lib/one moved; rm -rf lib/deep')\n"
    )
    attack = Attack(root)
    attack.run(shell("python3 x.py"), ("python", {"code": "exec(open('x.py').read())"}))
    assert not attack.asked
    for inner in INNER:
        log = subprocess.run(["git", "log", "--format=%s"], cwd=root / inner, capture_output=True, text=True)
        assert log.stdout == f"of {inner or 0}\n", log.stderr


def test_what_a_run_began_with_is_not_pushed_out_by_what_it_writes(root: Path) -> None:
    attack = Attack(root, CheckpointLimits(file_bytes=1 << 20, tree_bytes=2 << 20, stored_bytes=4 << 20))
    junk = [
        shell(f"for i in 1 2 3 4; do head -c 400000 /dev/urandom > junk$i; done; : {n}") for n in range(5)
    ]
    said = attack.run(shell("rm user.txt"), *junk)
    assert "rejected" in said or attack.asked, "what could not be stored any more asks"
    attack.checkpoints.undo()
    assert (root / "user.txt").read_text() == "precious\n" * 1000
    assert [path.name for path in root.iterdir()] == ["user.txt"]
    later = Attack(root, attack.checkpoints.limits)
    later.run(shell("rm user.txt"))
    assert not later.asked, "another run has room again"
    later.checkpoints.undo()
    assert (root / "user.txt").exists()


MAPPED = """
import mmap, os, time
with open("user.txt", "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
mapped[0:1] = mapped[0:1]  # from now on nothing of a write shows in the file's status
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
mapped[0:4] = b"EVIL"
open("done", "w").close()
time.sleep(60)
"""


def test_a_write_that_no_status_shows_is_undone(root: Path) -> None:
    (root / "x.py").write_text(MAPPED)
    attack = Attack(root)
    attack.run(
        shell("python3 x.py", run_in_background=True),
        shell("until [ -e ready ]; do sleep 0.05; done; sleep 0.1"),
        shell("touch go; until [ -e done ]; do sleep 0.05; done"),
    )
    assert (root / "user.txt").read_bytes()[:4] == b"EVIL" and not attack.asked
    attack.checkpoints.undo()
    assert (root / "user.txt").read_bytes()[:4] == b"prec"


def test_what_a_python_session_does_between_its_calls_is_the_runs(root: Path) -> None:
    later = "import threading\nthreading.Timer(0.3, lambda: open('user.txt', 'w').write('EVIL')).start()"
    attack = Attack(root)
    attack.run(("python", {"code": later}), ("wait", {"seconds": 1.0}), shell("true"), shell("touch a"))
    assert (root / "user.txt").read_text() == "EVIL" and not attack.asked
    attack.checkpoints.undo()
    assert (root / "user.txt").read_bytes()[:4] == b"prec"
