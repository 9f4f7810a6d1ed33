"""`toolcrib demo`: a scripted model, and everything else as it is."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.command_line import toolcrib
from toolcrib import Agent
from toolcrib.agent import Reason
from toolcrib.cli.demo_model import demo_model
from toolcrib.cli.demo_project import build
from toolcrib.question import Answer, Question, Verdict
from toolcrib.tools import Shell, Workspace, workspace_tools


def test_the_demo_mends_its_project_and_says_what_it_is(tmp_path: Path) -> None:
    done = toolcrib(tmp_path, "demo", "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The model is a script" in done.stdout and "That was a scripted model" in done.stdout
    assert "answers its own questions: yes" in done.stdout
    assert "exit code 1" in done.stdout and "ZeroDivisionError" in done.stdout
    assert 'repaired: limit: read text as a number: "200" → 200' in done.stdout
    assert "+    return sum(weights) / len(weights) if weights else 0.0" in done.stdout
    assert "they pass" in done.stdout and "\x1b" not in done.stdout
    folder = Path(done.stdout.split("The project stays in ")[1].split("\n")[0])
    assert "if weights else 0.0" in (folder / "parcels/weights.py").read_text()
    assert list(tmp_path.iterdir()) == []


def play(folder: Path, answers: dict[str, Answer | None], command: str = "") -> tuple[str, Reason]:
    """The demo's model on a project, with an answer for each tool that asks; what it said at the end."""

    async def approver(question: Question) -> Answer | None:
        return answers.get(question.tool, Answer(Verdict.YES))

    workspace = Workspace(folder)
    tools = [tool for tool in workspace_tools(workspace) if tool.facts.name != "shell"]
    shell = Shell(workspace, env={"PYTHONDONTWRITEBYTECODE": "1"})
    agent = Agent(demo_model(command or f"{sys.executable} -m unittest"), [*tools, shell], approver=approver)
    outcome = asyncio.run(agent.run("mend it"))
    return outcome.text, outcome.reason


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"shell": Answer(Verdict.NO, "not on my machine")}, "not on my machine"),
        ({"edit_file": Answer(Verdict.NO)}, "I could not mend it"),
        ({"edit_file": None}, "I could not mend it"),
    ],
)
def test_a_no_is_respected_and_reported(tmp_path: Path, answers: dict[str, Answer | None], said: str) -> None:
    build(tmp_path)
    text, reason = play(tmp_path, answers)
    assert said in text and "pass now" not in text
    assert reason is Reason.COMPLETED
    assert "if weights" not in (tmp_path / "parcels/weights.py").read_text()


def test_the_model_goes_by_what_it_is_told(tmp_path: Path) -> None:
    build(tmp_path)
    second_fault = "\n    def test_more(self):\n        self.fail('still wrong')\n\n\nif __name__"
    path = tmp_path / "tests/test_weights.py"
    path.write_text(path.read_text().replace("\n\nif __name__", second_fault))
    text, _ = play(tmp_path, {})
    assert "still fail" in text and "AssertionError (still wrong)" in text


def test_a_project_without_a_fault_is_left_alone(tmp_path: Path) -> None:
    build(tmp_path)
    path = tmp_path / "parcels/weights.py"
    path.write_text(path.read_text().replace("len(weights)", "max(len(weights), 1)"))
    before = path.read_text()
    text, _ = play(tmp_path, {})
    assert "pass already" in text and path.read_text() == before


def test_a_line_it_does_not_know_is_not_touched(tmp_path: Path) -> None:
    build(tmp_path)
    path = tmp_path / "parcels/weights.py"
    path.write_text(
        path.read_text().replace("sum(weights) / len(weights)", "sum(weights) * 1 / len(weights)")
    )
    before = path.read_text()
    text, _ = play(tmp_path, {})
    assert "not something that I know how to mend" in text and path.read_text() == before
