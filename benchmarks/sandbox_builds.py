"""Builds and tests twenty small projects in the sandbox, and says how many questions a person was asked for each.

    python benchmarks/sandbox_builds.py [NAME...] [--backend bubblewrap|landlock] [--own-network]
        [--verbose]

The projects stand in `tests/builds/`. Some install packages, from wherever pip, uv, npm and pnpm find their index on
this machine. Each command is a call of the shell tool by the agent under autonomy "sandboxed"; whatever is asked is
answered "always". The seconds are those of the commands: the last run of each inside, and the same commands outside.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.build_projects import Project, build, projects

from toolcrib.command.sandbox import Bubblewrap, Landlock, choose
from toolcrib.net import system_resolver

BACKENDS = {"best": choose, "bubblewrap": Bubblewrap, "landlock": Landlock}


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, whatever network they are of."""
    return await asyncio.to_thread(system_resolver, host, port)


def outside(project: Project) -> str:
    """The seconds of a build without a sandbox, or that it fails there too."""
    with tempfile.TemporaryDirectory(prefix="builds-") as folder:
        root = Path(folder, "project")
        project.write(root)
        begun = time.monotonic()
        for command in project.run:
            done = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, check=False)
            if done.returncode:
                return "fails"
        return f"{time.monotonic() - begun:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--backend", choices=list(BACKENDS), default="best")
    parser.add_argument(
        "--own-network", action="store_true", help="names may lead to addresses of this network"
    )
    parser.add_argument("--verbose", action="store_true", help="what every command printed")
    given = parser.parse_args()
    print("| project | what | questions | result | inside, s | outside, s |")
    print("| --- | --- | ---: | --- | ---: | ---: |")
    built, asked, wanted = 0, 0, [one for one in projects() if one.name in (given.names or [one.name])]
    for project in wanted:
        if missing := project.missing():
            print(
                f"| {project.name} | {project.what} | | not tried: no {', '.join(missing)} | | |", flush=True
            )
            continue
        options = {"resolve": resolve} if given.own_network else {}
        make = partial(BACKENDS[given.backend], **options)
        result = asyncio.run(build(project, make))
        built += not result.failed
        asked = max(asked, len(result.questions))
        state = "fails" if result.failed else "builds"
        print(
            f"| {project.name} | {project.what} | {len(result.questions)} | {state} | {result.seconds:.1f} "
            f"| {outside(project)} |",
            flush=True,
        )
        for question in result.questions:
            print(f"    asked: {question}", file=sys.stderr)
        if given.verbose:
            for command, told in zip(project.run, result.results, strict=True):
                print(f"    $ {command}\n{told.text}", file=sys.stderr)
        elif result.failed:
            print(f"    $ {result.failed}", file=sys.stderr)
    print(f"\n{built} of {len(wanted)} build, with at most {asked} questions each")
    return 0 if built == len(wanted) else 1


if __name__ == "__main__":
    raise SystemExit(main())
