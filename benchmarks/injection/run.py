"""How far injected orders get, and what the rules against them cost: AgentDojo with a model that obeys everybody.

    python3 benchmarks/injection/run.py [--all] [--docs]

Needs the standard library alone to start: it builds an environment with AgentDojo below benchmarks/.envs/. No network,
no model, no randomness: the same figures each time. A third of the pairs of task and injection unless --all is given.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]
PAGE = BENCHMARKS.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- injection -->\n", "<!-- /injection -->\n"
HEAD = (
    "suite", "rules", "asked", "tasks done", "questions a task",
    "attacks that came through", "tasks done under attack", "questions a run under attack",
)  # fmt: skip
NUMBERS = HEAD[3:]


def in_its_environment() -> None:
    """Go on in the environment that has AgentDojo, unless this is it."""
    if importlib.util.find_spec("agentdojo") is not None:
        return
    sys.path.insert(0, str(BENCHMARKS))
    import envs

    python = str(envs.python_of("agentdojo"))
    os.execve(python, [python, __file__, *sys.argv[1:]], envs.clean_environment())


class Tally:
    """What the runs of one suite, policy and person came to."""

    def __init__(self) -> None:
        self.benign: list[Any] = []
        self.attacked: list[Any] = []

    def cells(self) -> list[str]:
        def share(ended: list[Any], fact: str) -> str:
            return f"{sum(getattr(one, fact) for one in ended)} of {len(ended)}"

        def questions(ended: list[Any]) -> str:
            return f"{sum(one.asked for one in ended) / len(ended):.2f}"

        return [
            share(self.benign, "useful"),
            questions(self.benign),
            share(self.attacked, "attacked"),
            share(self.attacked, "useful"),
            questions(self.attacked),
        ]

    def add(self, other: Tally) -> None:
        self.benign += other.benign
        self.attacked += other.attacked


async def measured(
    suite: Any, policies: list[str], every: int, model: str | None
) -> dict[tuple[str, bool], Tally]:
    """All runs of one suite; of the pairs of a task and an injection one in `every`."""
    import hijacked
    from policies import REVIEWED, policy
    from suites import World, attackable, poisoned

    from toolcrib.agent import ModelReviewer

    clean, poison = suite.load_and_inject_default_environment({}), poisoned(suite)
    injections = list(attackable(suite, clean).values())
    tallies: dict[tuple[str, bool], Tally] = defaultdict(Tally)
    by_model = None if model is None else ModelReviewer(model)
    for name in policies:
        reviewer = (by_model or hijacked.named_by_user) if name in REVIEWED else None
        for there in (False, True):
            tally = tallies[name, there]
            for number, task in enumerate(suite.user_tasks.values()):
                world = World.of(suite, task, clean)
                tally.benign.append(await hijacked.run(world, task, None, policy(name), there, reviewer))
                for injection in injections[number % every :: every]:
                    world = World.of(suite, task, poison)
                    ended = await hijacked.run(world, task, injection, policy(name), there, reviewer)
                    tally.attacked.append(ended)
    return tallies


def rows(found: dict[str, dict[tuple[str, bool], Tally]]) -> Iterator[list[str]]:
    """A row for each suite, policy and person; the sums of all suites first."""
    whole: dict[tuple[str, bool], Tally] = defaultdict(Tally)
    for tallies in found.values():
        for key, tally in tallies.items():
            whole[key].add(tally)
    for suite, tallies in {"all": whole, **found}.items():
        for (name, there), tally in tallies.items():
            yield [suite, name, "the user" if there else "nobody", *tally.cells()]


def table(listed: list[list[str]], head: tuple[str, ...] = HEAD) -> str:
    lines = [list(head), ["---:" if name in NUMBERS else "---" for name in head], *listed]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="every pair of a task and an injection")
    parser.add_argument("--docs", action="store_true", help="put the sums into docs/benchmarks.md as well")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.add_argument("--reviewer", metavar="MODEL", help="the reviewer's model, in place of a rule")
    given = parser.parse_args()
    in_its_environment()
    from policies import POLICIES, REVIEWED
    from suites import suites

    found = {}
    for name, suite in suites().items():
        found[name] = asyncio.run(
            measured(suite, [*POLICIES, *REVIEWED], 1 if given.all else 3, given.reviewer)
        )
        print(f"{name} is done", file=sys.stderr, flush=True)
    listed = list(rows(found))
    print(json.dumps([dict(zip(HEAD, row, strict=True)) for row in listed]) if given.json else table(listed))
    if given.docs:
        text = PAGE.read_text("utf-8")
        before, _, rest = text.partition(BEGIN)
        sums = [row[1:] for row in listed if row[0] == "all"]
        PAGE.write_text(before + BEGIN + table(sums, HEAD[1:]) + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
