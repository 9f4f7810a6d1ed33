# ruff: noqa: E501 - tables read better in lines
"""Tries every option of every row that is judged to read only, under the system-call trace, many in one traced run.

Each option is tried alone and with operands, and an option that takes a value with several. Commands of one program share
a run; if that run did harm, each of its commands is run alone to find which one it was. A program that uses up its time
is cut, and what was not tried of it is counted. Results are kept in a file, a line a program, so that a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import json
import random
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Queue

from everyday.traced_run import Ground
from toolcrib.command.judge import judge
from toolcrib.command.launch.git_options import hardened
from toolcrib.command.programs.options import Synopsis, listed_options
from toolcrib.command.programs.table import SYNOPSES, TELLS

IN_BASH = {"cd", ":", "yes"}  # `yes` prints without an end
DEBIAN = {"fd": "fdfind", "bat": "batcat"}
VALUES = {"data": ("2", "name"), "read": ("path/to/list",), "pair": ("a b",)}
BATCH = 25
EACH = 1.5  # seconds of one command
OF_ONE_PROGRAM = 300.0  # seconds
ENDED = (0, 1)  # of a command that took its option: found, or not found


@dataclass(slots=True)
class Tried:
    """What the trials of one program showed. `accepted`: options with which it ended well at least once."""

    program: str
    options: int = 0
    accepted: int = 0
    commands: int = 0
    untried: int = 0
    holes: list[str] = field(default_factory=list)


def commands_of(name: str, row: Synopsis) -> Iterator[tuple[str, str]]:
    """Each option of a row with the commands that try it, as far as they are judged to read only."""
    read = row.reading or row
    options = {**listed_options(row.options), **(listed_options(row.reading.options) if row.reading else {})}
    needed = ["", read.needs.split()[0]] if read.needs else [""]
    first = "line " if read.operands.startswith("data") else ""
    operands = ["", f"{first}path/to/file"]
    if read.operands.count("read") > 1 and "*" not in read.operands:
        operands.append("path/to/file path/to/other")
    for option, kind in options.items():
        if kind == "optional":
            forms = [option, f"{option}=2" if option.startswith("--") else f"{option}2"]
        elif kind in VALUES:
            forms = [f"{option} {value}" for value in VALUES[kind]]
        else:
            forms = ["-3" if option == "#" else option]
        for form in forms:
            for need in needed:
                for operand in operands:
                    text = " ".join(filter(None, [name, need, form, operand]))
                    if judge(text).only_reads:
                        yield f"{name} {option}", text


def programs() -> dict[str, list[str]]:
    """The rows of each program of the tables that may only read."""
    rows: dict[str, list[str]] = {}
    for name, row in SYNOPSES.items():
        if (row.effect == "read" or row.reading is not None) and name.split()[0] not in IN_BASH:
            rows.setdefault(name.split()[0], []).append(name)
    for names in TELLS.values():
        for name in names:
            rows.setdefault(name, [])
    return rows


def installed(program: str) -> str | None:
    """The name under which a program is installed here."""
    return next((name for name in (program, DEBIAN.get(program, program)) if shutil.which(name)), None)


def as_a_plan(text: str) -> str:
    """A command with the options that a plan adds to it before it runs."""
    return shlex.join(hardened(shlex.split(text)))


def try_program(ground: Ground, program: str, rows: Sequence[str], seed: int) -> Tried:
    run_as = installed(program) or program
    found = Tried(program)
    texts = [pair for name in rows for pair in commands_of(name, SYNOPSES[name])]
    told = [f"{program} {option}" for option, names in TELLS.items() if program in names]
    texts += [(text, text) for text in told if judge(text).only_reads and (text, text) not in texts]
    random.Random(seed).shuffle(texts)  # so that what is cut off is no certain part
    found.options = len({option for option, _ in texts})
    accepted = set[str]()
    until = time.monotonic() + OF_ONE_PROGRAM
    for at in range(0, len(texts), BATCH):
        if time.monotonic() > until:
            found.untried = len(texts) - at
            break
        part = texts[at : at + BATCH]
        commands = [run_as + as_a_plan(text).removeprefix(program) for _, text in part]
        run = ground.run_all(commands, run_as, each=EACH)
        found.commands += len(commands)
        accepted |= {
            option for (option, _), status in zip(part, run.statuses, strict=False) if status in ENDED
        }
        if run.harms:
            alone = [(text, ground.run_all([text], run_as, each=EACH).harms) for text in commands]
            holes = [f"{text}: {'; '.join(harms)[:200]}" for text, harms in alone if harms]
            found.holes += holes or [
                f"{commands[0]} … {commands[-1]}, one of them once: {run.harms[0][:200]}"
            ]
    found.accepted = len(accepted)
    return found


def try_options(kept: Path | None, seed: int) -> list[Tried]:
    """Tries the options of all installed programs; those that stand in the file `kept` are not tried again."""
    done: dict[str, Tried] = {}
    if kept is not None and kept.exists():
        rows = [Tried(**json.loads(line)) for line in kept.read_text("utf-8").splitlines()]
        done = {one.program: one for one in rows}
    waiting = {name: rows for name, rows in programs().items() if name not in done and installed(name)}
    with tempfile.TemporaryDirectory() as folder:
        grounds: Queue[Ground] = Queue()
        for number in range(2):
            grounds.put(Ground(Path(folder, str(number))))

        def one(item: tuple[str, list[str]]) -> Tried:
            ground = grounds.get()
            try:
                return try_program(ground, *item, seed)
            finally:
                grounds.put(ground)

        with ThreadPoolExecutor(2) as pool:
            for number, tried in enumerate(pool.map(one, waiting.items()), start=1):
                done[tried.program] = tried
                if kept is not None:
                    with kept.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(tried)) + "\n")
                print(
                    f"{number}/{len(waiting)} {tried.program}: {tried.options} options, {len(tried.holes)} holes",
                    file=sys.stderr,
                    flush=True,
                )
    return list(done.values())


def report_looks() -> int:
    """Prints what programs that only tell (their version, their help) look up in the folder that they run in."""
    asked = [(name, option) for option, names in TELLS.items() for name in sorted(names)]
    there = [
        (name, option) for name, option in asked if judge(f"{name} {option}").only_reads and installed(name)
    ]
    looked: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        grounds: Queue[Ground] = Queue()
        for number in range(2):
            grounds.put(Ground(Path(folder, str(number))))

        def one(asked: tuple[str, str]) -> str:
            ground = grounds.get()
            try:
                text = f"{installed(asked[0])} {asked[1]}"
                names = ground.run(text, asked[0], limit=EACH + 2, looks=True).looked_up
                return f"{text}: {', '.join(names[:5])}" if names else ""
            finally:
                grounds.put(ground)

        with ThreadPoolExecutor(2) as pool:
            looked = list(filter(None, pool.map(one, there)))
    print(
        f"{len(there)} commands of {len({name for name, _ in there})} programs, {len(looked)} look up names in their folder"
    )
    print("\n".join(looked))
    return len(looked)


def report(tried: Sequence[Tried]) -> int:
    """Prints what was tried, and every hole. Returns how many holes there are."""
    missing = sorted(name for name in programs() if not installed(name))
    cut = [f"{one.program} ({one.untried})" for one in tried if one.untried]
    holes = [hole for one in tried for hole in one.holes]
    print(
        f"{len(tried)} programs, {sum(one.options for one in tried)} options in {sum(one.commands for one in tried)} commands; {sum(one.accepted for one in tried)} options ended well at least once"
    )
    print(f"not installed: {' '.join(missing) or 'none'}")
    print(f"cut after {OF_ONE_PROGRAM:.0f} s, with commands untried: {' '.join(cut) or 'none'}")
    print("\n".join([f"{len(holes)} holes", *holes]))
    return len(holes)
