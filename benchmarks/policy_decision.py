"""Microseconds that a policy takes to decide: by rules, by tool, and for what a search finds on its way.

    python benchmarks/policy_decision.py [rounds]

Prints a table; nothing is run or written but a folder for the time of the measurement.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.access import Access, Reach
from toolcrib.command.sandbox import NoSandbox
from toolcrib.prepared import Lookups, Ready
from toolcrib.rules import read_rules
from toolcrib.rules.permissions import covering
from toolcrib.rules.policy import RulePolicy
from toolcrib.toolbox.policy import PolicyRequest
from toolcrib.tools import GlobFiles, ReadFile, Shell, Workspace, WriteFile

COUNTS = (2, 20, 200)
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "src/deep/down/module.py"}),
    ("write_file", {"path": "src/deep/down/module.py", "content": "x"}),
    ("glob", {"pattern": "src/**/*.py"}),
    ("shell", {"command": "git status -s"}),
    ("shell", {"command": "grep -rn needle src | sort | head -20 > out/found.txt"}),
    ("shell", {"command": "python script.py --input data/a.csv && make all"}),
    ("send", {"text": "hello", "channel": "general"}),
]


@tool(effect=Effect.WRITE, secrets=())
def send(text: str, channel: str) -> str:
    """Send a message."""
    return ""


def rules(count: int) -> str:
    """As many rules, of the kinds that people write."""
    kinds = (
        'deny = true\npath = ["secrets{n}/**", "**/*.key{n}", ".env.{n}"]',
        'allow = true\ncommand = ["tool{n} *", "git log{n} *"]',
        'ask = true\npath = "generated{n}/**"\nreach = ["write", "delete"]',
        'deny = true\ntool = "send"\nargument = {{ channel = "private{n}*" }}',
        'allow = true\ntool = "write_file"\npath = "notes{n}/**"',
        'deny = true\ncommand = "danger{n} *"',
        'deny = true\nhost = "*.internal{n}.example"',
        'ask = true\ntool = "other{n}_*"\neffect = "destructive"',
    )
    written = [f'[[rule]]\nname = "rule{n}"\n' + kinds[n % len(kinds)].format(n=n) for n in range(count)]
    return "\n".join(written)


def micros(do: Callable[[], object], rounds: int) -> float:
    """The median over batches of the time that one takes."""
    for _ in range(20):
        do()
    found: list[float] = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(rounds):
            do()
        found.append((time.perf_counter() - start) / rounds * 1e6)
    return statistics.median(found)


def measure(root: Path, rounds: int) -> None:
    workspace = Workspace(root)
    tools = [ReadFile(workspace), WriteFile(workspace), GlobFiles(workspace)]
    shell = Shell(workspace, sandbox=NoSandbox())
    box = Toolbox([*tools, shell, send], autonomy="full")
    cases: list[PolicyRequest] = []
    for name, arguments in CALLS:
        ready = asyncio.run(box.prepare(ToolCall(name, arguments)))
        assert isinstance(ready, Ready)
        cases.append(PolicyRequest(ready.tool.definition.facts, ready.effect, ready))
    print(f"{'decide: the rules alone':58}" + "".join(f"{count:>9}" for count in COUNTS))
    policies = [read_rules(rules(count)).policy("supervised") for count in COUNTS]
    for (name, arguments), case in zip(CALLS, cases, strict=True):
        row = [micros(lambda c=case, p=policy: p.decide(c), rounds) for policy in policies]
        print(_line(name, arguments, row))
    print("with what the call reaches worked out each time (names looked up, commands parsed once)")
    for (name, arguments), case in zip(CALLS, cases, strict=True):
        row = [micros(lambda c=case, p=policy: _anew(p, c), rounds) for policy in policies]
        print(_line(name, arguments, row))
    print("one file that a search finds")
    found = [Access(Reach.READ, f"src/folder/file_{number}.py") for number in range(20_000)]
    glob = cases[2]
    row = []
    for policy in policies:
        permits = policy.permits(glob, covering(glob.accesses))
        start = time.perf_counter()
        for access in found:
            permits(access)
        row.append((time.perf_counter() - start) / len(found) * 1e6)
    print(_line("ctx.permits", {}, row))


def _anew(policy: RulePolicy, case: PolicyRequest) -> None:
    assert case.prepared is not None
    policy.decide(replace(case, prepared=case.prepared._replace(lookups=Lookups())))


def _line(name: str, arguments: dict[str, Any], row: list[float]) -> str:
    shown = f"{name} {next(iter(arguments.values()), '')}"
    return f"{shown[:57]:58}" + "".join(f"{value:9.1f}" for value in row)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "src/deep/down").mkdir(parents=True)
        Path(folder, "src/deep/down/module.py").write_text("x")
        measure(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 500)
