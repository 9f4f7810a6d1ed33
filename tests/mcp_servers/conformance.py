"""Runs the official MCP conformance suite on our server and our client: `python dev.py conformance`.

Both roles run at both revisions, all at once: `conformance_server.py` is a toolbox served by `McpFace`,
`conformance_client.py` a toolset over the suite's own servers. Every check is read, because an exit code says too little:

- each scenario that a revision requires must have run, and must have a check of its own that succeeded;
- each scenario that is run but not scored counts as well, extensions included;
- a check that fails or warns fails this script, unless `KNOWN` says why it may; an entry of `KNOWN` that is not needed
  any more fails it too;
- some scenarios pass on a server that lacks the tool they call, so the tools are listed and called beforehand.

    python -m tests.mcp_servers.conformance                                  everything, a table at the end
    python -m tests.mcp_servers.conformance --role client --scenario sse-retry --revision 2025-11-25
    python -m tests.mcp_servers.conformance --role server --url http://127.0.0.1:8000/mcp    another server
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.mcp_servers import installs

REVISIONS = ("2025-11-25", "2026-07-28")
ROLES = ("server", "client")
LIMIT = 240  # seconds for all of it
START = 60  # seconds until a process of ours is ready

# What is known not to succeed, and why: (role, revision, scenario, check) -> reason.
KNOWN: dict[tuple[str, str, str, str], str] = {
    ("server", "2026-07-28", "tasks-status-notifications", "no success"): (
        "the suite skips its one check, until it listens where these notifications are sent"
    ),
}

TEXT_OF = {"test_simple_text": "This is a simple text response for testing."}
ERROR_OF = {"test_error_handling": "This tool intentionally returns an error for testing"}
FIXTURES = (
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_error_handling",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "json_schema_2020_12_tool",
)
"""Tools that the scenarios of the server call."""


@dataclass(slots=True)
class Outcome:
    """What the suite found in one role at one revision."""

    role: str
    revision: str
    scenarios: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    unscored: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def problems(self, only: str) -> Iterator[str]:
        """What is wrong, a line each; entries of `KNOWN` that were not needed included."""
        known = {key[2:]: key for key in KNOWN if key[:2] == (self.role, self.revision)}
        for scenario in [only] if only else [*self.required, *self.unscored]:
            checks = self.scenarios.get(scenario)
            if checks is None:
                yield f"{scenario}: it did not run"
                continue
            own = [check for check in checks if check["id"] != "wire-schema-valid"]
            bad = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
            succeeded = any(check["status"] == "SUCCESS" for check in own)
            if not bad and not succeeded and not known.pop((scenario, "no success"), None):
                yield f"{scenario}: no check of its own succeeded"
            for check in bad:
                # A check may fail more than once in a scenario; one entry stands for all of these.
                if (scenario, check["id"]) not in known:
                    yield f"{scenario}: {check['id']}: {said_of(check)}"
            for name in {check["id"] for check in bad}:
                known.pop((scenario, name), None)
        for scenario, name in known if not only else []:
            yield f"{scenario}: {name}: it succeeds now, so its entry in KNOWN is to go"

    def counts(self, scenarios: list[str]) -> str:
        good = [name for name in scenarios if self.scenarios.get(name) and not failing(self.scenarios[name])]
        return f"{len(good)}/{len(scenarios)}"

    def row(self) -> str:
        statuses = Counter(check["status"] for checks in self.scenarios.values() for check in checks)
        cells = [self.role, self.revision, self.counts(self.required), self.counts(self.unscored)]
        cells += [str(statuses[status]) for status in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED")]
        return "| " + " | ".join([*cells, f"{self.seconds:.0f} s"]) + " |"


def failing(checks: list[dict[str, Any]]) -> bool:
    return any(check["status"] in ("FAILURE", "WARNING") for check in checks)


def said_of(check: dict[str, Any]) -> str:
    text = str(check.get("errorMessage") or check.get("description") or "")
    return f"{check['status']}: {text} {json.dumps(check.get('details', {}))[:600]}"


def requirements(modules: Path, role: str, revision: str) -> tuple[list[str], list[str]]:
    """The scenarios that a revision scores for a role, and those that it runs without a score."""
    suite = modules / "@modelcontextprotocol" / "conformance" / "requirements" / f"{revision}.yaml"
    data = yaml.safe_load(suite.read_text("utf-8"))
    unscored = [entry["scenario"] for entry in data.get("not_scored", ()) if entry["leg"] == role]
    return list(data[role]), unscored


def run_suite(
    role: str, revision: str, target: list[str], scenario: str, modules: Path, folder: Path
) -> Outcome:
    """Runs the suite in one role at one revision, to its end or until the time is up."""
    program = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    what = ["--scenario", scenario, "--spec-version", revision] if scenario else ["--requirements", revision]
    command = [str(installs.node()), str(program), role, *target, *what, "-o", str(folder)]
    begun = time.monotonic()
    with (folder / "output.txt").open("wb") as output, suppress(subprocess.TimeoutExpired):
        # The suite's own limit for a scenario is half of ours: a slow machine must not be a failure.
        command += ["--timeout", str(LIMIT * 500)]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=LIMIT)
    outcome = Outcome(role, revision, read_checks(folder, role), *requirements(modules, role, revision))
    outcome.seconds = time.monotonic() - begun
    return outcome


def read_checks(folder: Path, role: str) -> dict[str, list[dict[str, Any]]]:
    """The checks of each scenario; a scenario's folder ends with the time at which it ran."""
    found = {}
    for file in folder.rglob("checks.json"):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\dZ-]+$", "", str(file.parent.relative_to(folder)))
        found[name.removeprefix("server-") if role == "server" else name] = json.loads(
            file.read_text("utf-8")
        )
    return found


@contextmanager
def started(command: list[str], what: str, log: Path) -> Iterator[str]:
    """A process of ours while it is needed; gives the line that it prints when it is ready."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=installs.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    assert process.stdin is not None and process.stdout is not None
    try:
        readable, _, _ = select.select([process.stdout], [], [], START)
        line = process.stdout.readline() if readable else b""
        if not line:
            raise SystemExit(f"{what} did not start:\n{log.read_text('utf-8', 'replace')[-3000:]}")
        yield line.decode().strip()
    finally:
        process.stdin.close()
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


async def fixture_problems(url: str) -> list[str]:
    """What is wrong with the tools that the scenarios call: some scenarios would pass without them."""
    from mcp import Client

    problems = []
    async with Client(url) as client:
        tools = (await client.list_tools()).tools
        missing = set(FIXTURES) - {tool.name for tool in tools}
        if missing:
            problems.append(f"the server lacks the tools {', '.join(sorted(missing))}")
        for is_error, table in ((False, TEXT_OF), (True, ERROR_OF)):
            for name, text in table.items():
                result = await client.call_tool(name, {})
                said = "".join(getattr(block, "text", "") for block in result.content)
                if result.is_error is not is_error or text not in said:
                    problems.append(f"{name} answered {said!r}, error: {result.is_error}")
    return problems


def run_all(given: argparse.Namespace, modules: Path, folder: Path) -> tuple[list[Outcome], list[str]]:
    """Runs the suite in all wanted roles and revisions at once. Gives what it found, and what is wrong."""
    problems: list[str] = []
    targets: dict[str, list[str]] = {}
    with ExitStack() as stack:
        if "server" in given.role:
            url = given.url or stack.enter_context(
                started(
                    [sys.executable, "-m", "tests.mcp_servers.conformance_server"],
                    "the server",
                    folder / "server.log",
                )
            )
            targets["server"] = ["--url", url]
        if "client" in given.role:
            stub, address = Path(__file__).with_name("client_processes.py"), folder / "socket"
            listening = [sys.executable, "-m", "tests.mcp_servers.client_processes", str(address)]
            stack.enter_context(started(listening, "the client", folder / "client.log"))
            asking = shlex.join([sys.executable, "-I", "-S", str(stub), str(address)])
            targets["client"] = ["--command", given.command or asking]
        if "server" in given.role and not given.scenario:
            problems += asyncio.run(fixture_problems(url))
        with ThreadPoolExecutor() as pool:
            running = []
            for role, revision in itertools.product(given.role, given.revision):
                place = folder / f"{role}-{revision}"
                place.mkdir()
                running.append(
                    pool.submit(run_suite, role, revision, targets[role], given.scenario, modules, place)
                )
        outcomes = [one.result() for one in running]
    for outcome in outcomes:
        where = f"{outcome.role} {outcome.revision}"
        problems += [f"{where}: {problem}" for problem in outcome.problems(given.scenario)]
    return outcomes, problems


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Runs the official MCP conformance suite on our server and our client."
    )
    parser.add_argument("--role", choices=ROLES, action="append", help="only this role")
    parser.add_argument("--revision", choices=REVISIONS, action="append", help="only this revision")
    parser.add_argument("--scenario", default="", help="only this scenario; prints all its checks")
    parser.add_argument("--url", default="", help="try the server that listens there")
    parser.add_argument("--command", default="", help="try this client, to which the URL is handed")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all that the suite wrote")
    given = parser.parse_args()
    given.role, given.revision = given.role or ROLES, given.revision or REVISIONS
    return given


def main() -> int:
    given = arguments()
    begun = time.monotonic()
    try:
        modules = installs.node_modules()
    except installs.NotInstalled as missing:
        print(f"MCP conformance is {'MISSING' if installs.required() else 'SKIPPED'}: {missing}")
        return int(installs.required())
    folder = Path(tempfile.mkdtemp(prefix="conformance-"))
    os.environ["TMPDIR"] = str(folder)  # what the clients leave goes with it: the suite ends them
    outcomes, problems = run_all(given, modules, folder)
    if given.scenario:
        print(json.dumps({f"{one.role} {one.revision}": one.scenarios for one in outcomes}, indent=2))
    print("| role | revision | scored scenarios | others | SUCCESS | FAILURE | WARNING | SKIPPED | time |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(outcome.row() for outcome in outcomes))
    for (role, revision, scenario, check), reason in KNOWN.items():
        print(f"known: {role} {revision} {scenario} {check}: {reason}")
    print(*problems, sep="\n")
    print(f"{len(problems)} problems after {time.monotonic() - begun:.0f} s")
    if given.keep or (problems and not installs.required()):
        print(f"what the suite wrote is in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
