"""Measures toolcrib beside its peers, interleaved: `python3 benchmarks/run.py`.

Needs the standard library alone to start; each peer gets an environment of its own below benchmarks/.envs/.
A table in Markdown goes to stdout, every round's figures to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import envs
import report
from measures import MEASURES

ROUNDS = 7
LIMIT = 900  # seconds for one peer in one round


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures toolcrib beside its peers, interleaved.")
    parser.add_argument(
        "--only", default=",".join(MEASURES), help="measures, with commas: " + ", ".join(MEASURES)
    )
    parser.add_argument(
        "--peers", default=",".join(envs.PEERS), help="peers, with commas: " + ", ".join(envs.PEERS)
    )
    parser.add_argument(
        "--rounds", type=int, default=0, help="rounds of each measure; at most 7, or 2 when quick"
    )
    parser.add_argument("--quick", action="store_true", help="shorter blocks and fewer rounds: noisier")
    parser.add_argument("--docs", action="store_true", help="put the tables into docs/benchmarks.md as well")
    given = parser.parse_args()
    given.only, given.peers = given.only.split(","), given.peers.split(",")
    for name, known in (*((n, MEASURES) for n in given.only), *((n, envs.PEERS) for n in given.peers)):
        if name not in known:
            parser.error(f"unknown: {name!r}; known are {', '.join(known)}")
    return given


def pythons(peers: list[str]) -> dict[str, Path]:
    """The interpreters of all peers that can be had; the others are named on stderr."""
    found = {}
    for peer in peers:
        try:
            found[peer] = envs.python_of(peer)
        except envs.BuildFailed as problem:
            print(f"{peer} is left out: {problem}", file=sys.stderr)
    return found


def worked(peer: str, python: Path, measure: str, options: dict[str, Any]) -> dict[str, Any] | None:
    """What a fresh process in the peer's environment measured; None when it failed."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "samples.json"
        command = [str(python), str(envs.HERE / "worker.py"), peer, measure, json.dumps(options), str(output)]
        try:
            done = subprocess.run(
                command,
                env=envs.clean_environment(),
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            print(f"{measure} of {peer}: not done after {LIMIT} s", file=sys.stderr)
            return None
        if done.returncode or not output.exists():
            print(f"{measure} of {peer} failed:\n{done.stderr[-1500:]}", file=sys.stderr)
            return None
        return json.loads(output.read_text("utf-8"))


def run_measure(measure: str, given: argparse.Namespace, found: dict[str, Path]) -> dict[str, Any]:
    """All rounds of one measure; the order of the peers turns round every time."""
    load = os.getloadavg()[0]
    samples: list[dict[str, Any]] = []
    versions: dict[str, dict[str, str]] = {}
    failures: dict[str, int] = {}
    tokenizer = envs.tokenizer() if measure == "tokens" else None
    wanted = given.rounds or (MEASURES[measure].quick_rounds if given.quick else ROUNDS)
    for number in range(min(wanted, MEASURES[measure].rounds)):
        for peer in list(found)[:: -1 if number % 2 else 1]:
            if MEASURES[measure].alone and peer != "toolcrib":
                continue
            if failures.get(peer, 0) > 1:
                continue
            begun = time.monotonic()
            options = {"quick": given.quick, "round": number, "tokenizer": str(tokenizer or "")}
            result = worked(peer, found[peer], measure, options)
            if result is None:
                failures[peer] = failures.get(peer, 0) + 1
                continue
            versions[peer] = result["versions"]
            who = {"peer": peer, "name": result["name"], "round": number}
            samples += [{**who, **sample} for sample in result["samples"]]
            said = f"{measure}, round {number + 1}, {peer}: {time.monotonic() - begun:.1f} s"
            print(said, file=sys.stderr, flush=True)
    return {"samples": samples, "versions": versions, "load": load}


def machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "load": os.getloadavg()[0],
    }


def main() -> int:
    given = arguments()
    found = pythons(given.peers)
    if not found:
        return 1
    now = datetime.datetime.now().astimezone()
    results: dict[str, Any] = {
        "when": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {},
    }
    sections, missed = [], []
    for measure in given.only:
        outcome = run_measure(measure, given, found)
        for peer, versions in outcome.pop("versions").items():
            results["versions"].setdefault(peer, {}).update(versions)
        merged = report.medians(outcome["samples"])
        results[measure] = {**outcome, "medians": merged}
        sections.append(
            report.table(measure, *MEASURES[measure][:2], measured(results, outcome, given), merged)
        )
        missed += [
            f"{measure}: {sample['row']}" for sample in merged if report.judged(measure, sample)[1] is False
        ]
    if given.docs:
        page = envs.CHECKOUT / "docs" / "benchmarks.md"
        text = report.into_page(
            page.read_text("utf-8"), told_machine(results), told_versions(results), sections
        )
        page.write_text(text, "utf-8")
    print(heading(results))
    print("\n\n".join(sections))
    print("\nGoals missed: " + ("; ".join(dict.fromkeys(missed)) or "none") + ".")
    folder = envs.HERE / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"{now:%Y-%m-%d-%H%M%S}.json"
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False), "utf-8")
    print(f"every round: {path}", file=sys.stderr)
    return 0


def heading(results: dict[str, Any]) -> str:
    lines = [f"- {peer}: {text}" for peer, text in told_versions(results).items()]
    return "\n".join([told_machine(results), "", *lines, ""])


def told_machine(results: dict[str, Any]) -> str:
    box = results["machine"]
    return f"{box['cpu']}, {box['cores']} cores, {box['system']}, Python {box['python']}."


def told_versions(results: dict[str, Any]) -> dict[str, str]:
    """The releases that each peer was measured with."""
    told = results["versions"].items()
    return {
        peer: ", ".join(f"{name} {version}" for name, version in versions.items()) for peer, versions in told
    }


def measured(results: dict[str, Any], outcome: dict[str, Any], given: argparse.Namespace) -> str:
    """When and how a measure was taken, as a sentence."""
    rounds = max((sample["round"] + 1 for sample in outcome["samples"]), default=0)
    how = f"{rounds} {'quick ' * given.quick}round{'s' * (rounds != 1)}"
    busy = f"{outcome['load']:.1f} processes were busy when it began"
    return f"Measured on {results['when'][:10]} in {how}; {busy}."


if __name__ == "__main__":
    sys.exit(main())
