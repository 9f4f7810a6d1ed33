"""Milliseconds that deny rules about paths add to a confined command: a call of the shell tool, by rules.

    python benchmarks/withheld_paths.py [ROUNDS]

`true` in a workspace of 10,000 files in 500 folders. The rows take turns. "looking" is the part before the launch: the
first time, and again while no folder changes.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from toolcrib import Effect, Toolbox
from toolcrib.command.sandbox import choose
from toolcrib.facts import Facts
from toolcrib.rules import read_rules
from toolcrib.toolbox.policy import PolicyRequest
from toolcrib.tools import Shell, Workspace

LITERAL = ["conf/prod.key", "conf/stage.key", "vault/keys", "deploy/keys/id", "home/.netrc"]
ROWS = {
    "no rule about paths": [],
    "5 paths written out, there": LITERAL,
    "`**/.env`, 3 there": ["**/.env"],
    "`**/.env` and `**/*.pem`, 23 there": ["**/.env", "**/*.pem"],
}


def workspace(root: Path) -> None:
    for folder in range(500):
        here = root / f"d{folder % 20}" / f"e{folder}"
        here.mkdir(parents=True)
        for number in range(20):
            (here / f"file{number}.py").touch()
        if folder < 20:
            (here / "cert.pem").touch()
        if folder < 3:
            (here / ".env").touch()
    for name in LITERAL:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for path, _, _ in os.walk(root):  # settled: as in a folder that nobody works in just now
        os.utime(path, (1, 1))
    time.sleep(4)


def rules(paths: list[str]) -> str:
    listed = ", ".join(f'"{path}"' for path in paths)
    return f"[[rule]]\ndeny = true\npath = [{listed}]\n" if paths else ""


def looking(paths: list[str], root: str) -> tuple[float, float]:
    asked = (
        read_rules(rules(paths))
        .policy()
        .denied_paths(PolicyRequest(Facts("shell", Effect.WRITE, frozenset()), Effect.WRITE))
    )
    times = [0.0]
    for _ in range(6 if asked else 0):
        began = time.perf_counter()
        assert asked is not None
        asked(root, ())
        times.append((time.perf_counter() - began) * 1e3)
    return (times[1], min(times[2:])) if asked else (0.0, 0.0)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        workspace(root)
        sandbox = choose(root)
        boxes = {
            name: Toolbox(
                [Shell(Workspace(root), sandbox=sandbox)], policy=read_rules(rules(paths)).policy("full")
            )
            for name, paths in ROWS.items()
        }
        took: dict[str, list[float]] = {name: [] for name in ROWS}
        for _ in range(rounds + 1):
            for name, box in boxes.items():
                began = time.perf_counter()
                result = box.call_sync("shell", {"command": "true"})
                took[name].append((time.perf_counter() - began) * 1e3)
                assert result.code is None, result.text
        print(sandbox.report().backend)
        print("| | least | median | looking, first | again |\n| --- | --- | --- | --- | --- |")
        for name, times in took.items():
            first, again = looking(ROWS[name], str(root))
            least, median = min(times[1:]), statistics.median(times[1:])
            print(f"| {name} | {least:.1f} | {median:.1f} | {first:.1f} | {again:.1f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
