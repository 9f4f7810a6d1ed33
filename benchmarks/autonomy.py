"""How often a person is asked, by autonomy: everyday commands before they run, and whole tasks as they run.

    python benchmarks/autonomy.py [COMMANDS.jsonl]

COMMANDS.jsonl holds a command a line, as {"short": "ls -l"}. The tasks are run: by the agent, with scripted models, in
the sandbox of this machine, with checkpoints, before a person who always says yes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolcrib import Agent, Answer, Question, Toolbox, ToolCall, Verdict
from toolcrib.assembly import default_tools
from toolcrib.call import CallKey
from toolcrib.checkpoints import Checkpoints
from toolcrib.command.sandbox import choose, why_not_contained
from toolcrib.models import Scripted

LEVELS = ("supervised", "sandboxed", "full")
Call = tuple[str, dict[str, Any]]


def sh(command: str) -> Call:
    return "shell", {"command": command}


def put(path: str, content: str) -> Call:
    return "write_file", {"path": path, "content": content}


READ = ("read_file", {"path": "shop.py"})
TESTS = sh("python3 -m unittest -q")
# Each a turn or more: a list in a list is one turn with several calls.
TASKS: dict[str, list[Call | list[Call]]] = {
    "mend a bug": [
        sh("ls -la && git status"), READ, TESTS, put("shop.py", "def total(prices):\n    return sum(prices)\n"), TESTS,
        sh("git diff"),
    ],
    "add a feature": [
        READ, sh("grep -rn total ."),
        [put("shop.py", "def total(p, tax=0):\n    return sum(p) * (1 + tax)\n"),
         put("test_tax.py", "import unittest\n"), put("README.md", "# Shop\nWith taxes.\n")],
        TESTS, sh("python3 -c 'import shop; print(shop.total([1], 1))'"), sh("git add -A && git commit -qm tax"),
    ],
    "rename across files": [
        sh("grep -rln total . --include=*.py"), sh("sed -i 's/total/whole/g' shop.py test_shop.py"), TESTS,
        sh("git diff --stat"),
    ],
    "build": [
        sh("cat Makefile"), sh("make"), sh("ls dist && file dist/*"), sh("rm -rf dist && make all 2>&1 | tail -5"),
    ],
    "look at data": [
        sh("head -3 data.csv; wc -l data.csv"), sh("awk -F, '{s += $2} END {print s}' data.csv"),
        put("sums.py", "import csv\nprint(sum(float(r[1]) for r in csv.reader(open('data.csv'))))\n"),
        sh("python3 sums.py > sums.txt && cat sums.txt"),
    ],
    "tidy up": [
        sh("find . -name '*.tmp' -print"), sh("find . -name '*.tmp' -delete"),
        sh("mkdir -p docs && mv README.md docs/"),
        sh("for f in *.py; do python3 -m py_compile \"$f\"; done"), sh("ls -R | head -30"),
    ],
    "install a package": [
        sh("cat requirements.txt"), sh("python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt"),
        TESTS,
    ],
    "read an API": [
        sh("curl -s http://api.test/items.json -o items.json"), put("client.py", "URL = 'http://api.test'\n"),
        sh("python3 client.py"),
    ],
}  # fmt: skip


def project(root: Path) -> None:
    root.mkdir()
    (root / "shop.py").write_text("def total(prices):\n    return sum(prices[1:])\n")
    (root / "test_shop.py").write_text(
        "import unittest, shop\n\n\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        self.assertEqual(shop.total([1, 2]), 3)\n"
    )
    (root / "README.md").write_text("# Shop\n")
    (root / "Makefile").write_text("all:\n\tmkdir -p dist && cp *.py dist/\n")
    (root / "data.csv").write_text("a,1\nb,2\n")
    (root / "requirements.txt").write_text("six\n")
    (root / "old.tmp").write_text("x")
    (root / ".gitignore").write_text("dist/\n.venv/\n")
    for line in ("init -q", "add -A", "-c user.name=a -c user.email=a@b.test commit -qm first"):
        subprocess.run(["git", *line.split()], cwd=root, check=True)


class Person:
    """Says yes to everything. Questions that are asked at once count once as a prompt."""

    def __init__(self) -> None:
        self.prompts = 0

    async def __call__(self, question: Question) -> Answer:
        self.prompts += 1
        return Answer(Verdict.YES, by="person")

    async def ask_all(self, questions: tuple[Question, ...]) -> list[Answer]:
        self.prompts += 1
        return [Answer(Verdict.YES, by="person") for _ in questions]


async def prompts_of(task: list[Call | list[Call]], level: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        root, person = Path(folder, "project"), Person()
        project(root)
        turns = [step if isinstance(step, list) else [step] for step in task]
        script = [{"calls": [{"name": name, "arguments": given} for name, given in turn]} for turn in turns]
        agent = Agent(
            Scripted([*script, "Done."]),
            default_tools(root, sandbox=choose(root)),
            policy=level,  # type: ignore[arg-type]
            approver=person,
            checkpoints=Checkpoints(root, store=Path(folder, "store")),
            max_failures=100,
        )
        outcome = await agent.run("work")
        assert outcome.finished, outcome.detail
        return person.prompts


async def asked_before(commands: list[str], level: str, covers: Callable[[str], str | None]) -> Counter[str]:
    """How many of the commands run unasked, ask and are refused, as far as that is known before they run."""
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        box = Toolbox(default_tools(folder, sandbox=choose(folder)), policy=level)  # type: ignore[arg-type]
        with box.covered_by("run", covers):
            for number, command in enumerate(commands):
                call = ToolCall("shell", {"command": command})
                counted[(await box.prepare(call, key=CallKey("run", 1, number))).kind] += 1
    return counted


def main() -> None:
    if why := why_not_contained(choose(tempfile.gettempdir())):
        print(f"note: sandboxed counts as supervised here: {why}")
    if len(sys.argv) > 1:
        lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
        commands = [json.loads(line)["short"] for line in lines]
        print(f"{len(commands):,} everyday commands\n\n| autonomy | unasked | ask | refused |")
        print("| --- | ---: | ---: | ---: |")
        for level in LEVELS:
            found = asyncio.run(asked_before(commands, level, lambda path: None))
            shares = [
                f"{100 * found[kind] / len(commands):.1f} %" for kind in ("ready", "pending", "refused")
            ]
            print(f"| {level} | {' | '.join(shares)} |")
    print("\n| task | calls |", " | ".join(LEVELS), "|\n| --- | ---: |" + " ---: |" * len(LEVELS))
    sums: Counter[str] = Counter()
    for name, task in TASKS.items():
        calls = sum(len(step) if isinstance(step, list) else 1 for step in task)
        row = {level: asyncio.run(prompts_of(task, level)) for level in LEVELS}
        sums.update(row, calls=calls)
        print(f"| {name} | {calls} |", " | ".join(str(count) for count in row.values()), "|", flush=True)
    print(f"| all | {sums['calls']} |", " | ".join(str(sums[level]) for level in LEVELS), "|")


if __name__ == "__main__":
    main()
