"""Twenty small projects that are built and tested in a sandbox. Each is a text file in `tests/builds/`.

A file begins with fields, one a line: `what` it is, what it `needs` (programs and files), whether its first install
needs the `network`, what is done `before` outside the sandbox, and the commands to `run`. After them come the
project's files, each after a line `-- path --`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolcrib import Agent, Answer, Question, Verdict
from toolcrib.assembly import default_tools
from toolcrib.checkpoints import Checkpoints
from toolcrib.command.sandbox import Sandbox
from toolcrib.messages import ResultPart
from toolcrib.models import Scripted
from toolcrib.result import ToolResult

FOLDER = Path(__file__).parent / "builds"
FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)
MAX_SECONDS = 240


@dataclass
class Project:
    """A project of the twenty."""

    name: str
    what: str = ""
    needs: list[str] = field(default_factory=list)
    network: bool = False
    before: list[str] = field(default_factory=list)
    run: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def missing(self) -> list[str]:
        """What it needs and this machine has not."""
        return [name for name in self.needs if not (shutil.which(name) or Path(name).is_file())]

    def write(self, root: Path) -> None:
        """Makes the project in a new folder."""
        root.mkdir()
        for name, text in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for command in self.before:
            subprocess.run(["sh", "-ec", command], cwd=root, check=True, capture_output=True)


@dataclass
class Built:
    """How a build went: the questions that a person was asked, and what became of each command."""

    project: Project
    questions: list[str] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long the commands ran, their repetitions not included."""
        return sum(result.structured["seconds"] for result in self.results if result.structured)

    @property
    def failed(self) -> str:
        """The first command that failed, with its result; "" if none did."""
        for command, result in zip(self.project.run, self.results, strict=True):
            if result.is_error or not result.structured or result.structured["exit_code"] != 0:
                return f"{command}\n{result.text}"
        return ""


def projects() -> list[Project]:
    return [_read(path) for path in sorted(FOLDER.glob("*.txt"))]


def _read(path: Path) -> Project:
    head, *rest = FILE.split(path.read_text(encoding="utf-8"))
    project = Project(path.stem, files=dict(zip(rest[::2], rest[1::2], strict=True)))
    for line in head.splitlines():
        name, _, value = line.partition(": ")
        if name == "what":
            project.what = value
        elif name == "needs":
            project.needs = value.split()
        elif name == "network":
            project.network = value == "yes"
        elif name == "before":
            project.before.append(value)
        elif name == "run":
            project.run.append(value)
        else:
            raise ValueError(f"{path.name}: expected a field, got {line}")
    return project


async def build(project: Project, make: Callable[[Path], Sandbox], answer: Verdict = Verdict.ALWAYS) -> Built:
    """Builds a project as `toolcrib run` does: under autonomy "sandboxed", a command a turn."""
    with tempfile.TemporaryDirectory(prefix="builds-") as folder:
        root = Path(folder, "project")
        project.write(root)
        built = Built(project)

        async def person(question: Question) -> Answer:
            built.questions.append(question.action)
            return Answer(answer, by="person")

        calls = [
            {"name": "shell", "arguments": {"command": run, "timeout": MAX_SECONDS}} for run in project.run
        ]
        script: list[Any] = [{"calls": [call]} for call in calls]
        agent = Agent(
            Scripted([*script, "Done."]),
            default_tools(root, sandbox=make(root)),
            policy="sandboxed",
            approver=person,
            checkpoints=Checkpoints(root, store=Path(folder, "store")),
            max_failures=100,
        )
        outcome = await agent.run("build")
        assert outcome.finished, outcome.detail
        for message in outcome.messages:
            for part in message.parts:
                if isinstance(part, ResultPart):
                    built.results.append(part.result)
        return built
