# ruff: noqa: E501, SIM905 - tables read better in lines
"""How often a harmless everyday command asks, and how often a harmful one runs unasked: ours beside what others do.

    python benchmarks/everyday_commands.py FOLDER [--labels FILE] [--asking]

FOLDER holds `commands.jsonl`: commands that people look up, each with a template whose placeholders are filled here.
Each is labelled by what it does when it runs confined on a sample folder under a system-call trace (Linux, with
bubblewrap and strace): harmless if it changed no file, connected to nobody, signalled nobody and changed no state, and
ended well. A program that is not installed, a run that failed, and a command that found nothing to change although its
description begins with a word such as "remove", or that asked a question, say nothing: they are left out and counted.
`--labels` keeps the labels in a file, so that only the policies are run again; `--asking` lists what is wrong;
`--looks` lists what programs that only tell their version or help look up in the folder that they run in;
`--options` instead tries every option of every installed program of our tables, alone and with a file; `--kept FILE` keeps
what was tried, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from everyday import option_trials, sample_folder
from everyday.placeholders import filled
from everyday.traced_run import Ground
from shell_bypasses import STRATEGIES

from toolcrib import Toolbox, ToolCall
from toolcrib.assembly import default_tools
from toolcrib.call import CallKey
from toolcrib.command.judge import judge
from toolcrib.command.judge.find_commands import programs_in
from toolcrib.command.programs.table import SYNOPSES
from toolcrib.command.sandbox import Bubblewrap
from toolcrib.prepared import Ready
from toolcrib.rules import read_rules

# A program is a core program if one of these packages of Debian holds it, or bash itself.
CORE_PACKAGES = """coreutils bsdutils util-linux util-linux-extra bsdextrautils findutils grep sed gawk mawk diffutils file procps psmisc lsof
    hostname debianutils ncal bc dc less man-db tar gzip bzip2 xz-utils zstd zip unzip cpio lz4 lzip lzop git patch
    binutils elfutils make cmake gcc cpp g++ gdb strace jq tree ripgrep fd-find bat exa cloc colordiff wdiff dos2unix gettext
    gettext-base libc-bin iproute2 net-tools shellcheck yamllint python3 nodejs npm golang-go sqlite3 openssl xxd
    libxml2-utils universal-ctags moreutils silversearcher-ag ack datamash miller csvkit time e2fsprogs attr acl
    pciutils usbutils libc6 e2fsprogs ncurses-bin perl perl-base groff-base groff bsdmainutils pigz patchutils
    ugrep gron hexyl uchardet locales lsb-release dpkg apt kmod tzdata login passwd systemd""".split()
BUILTINS = set("echo printf test [ pwd true false type command : time".split())
NOT_FOUND = {"grep", "egrep", "fgrep", "rg", "ag", "ack", "diff", "cmp", "pgrep", "zgrep", "git", "which", "test", "[", "colordiff", "wdiff", "zdiff",
             "bzgrep", "xzgrep", "zipgrep", "ugrep", "lsof", "pidof", "fuser", "xzdiff", "zcmp", "bzdiff", "shellcheck", "whereis"}  # fmt: skip
# A command that is described so, and changed nothing here, had nothing to change.
CHANGES = re.compile(
    r"\W*(?:un|re)?(?:add|append|apply|abort|approve|archive|attach|backup|boot|build|bring|cancel|change|clean|clear|clone|close|commit"
    r"|compile|compress|configure|connect|continue|copy|create|cut|decompress|decrypt|delete|deploy|detach|disable|discard|download|drop"
    r"|edit|eject|enable|encrypt|erase|export|extract|fetch|fill|finish|fix|flush|force|format|generate|import|init\w*|insert|install"
    r"|interactive\w*|join|kill|launch|link|load|lock|log|make|mark|merge|migrate|modify|mount|move|open|overwrite|pack|patch|pause|perform"
    r"|play|prune|publish|pull|push|reboot|rebase|rebuild|record|refresh|register|reject|reload|remove|rename|replace|reset|resize|restart"
    r"|restore|resume|revert|revoke|rewrite|rotate|save|schedule|send|set|shrink|shut|sign|skip|split|stage|start|stash|stop|store|submit"
    r"|suspend|switch|sync\w*|tag|tell|truncate|turn|uninstall|unmask|unset|update|upgrade|upload|wipe|write)\w*\b", re.IGNORECASE)  # fmt: skip
AND_CHANGES = re.compile(
    r"\b(?:and|then) (?:delete|remove|uninstall|install|extract|overwrite|kill|write|save)\b", re.IGNORECASE
)
# It waited for an answer, or found nothing to work on.
NOT_DONE = re.compile(
    r"\[y/n\]|\(y/n\)|nothing to (?:do|merge)|no files need merging|you need to start by", re.IGNORECASE
)
SAID_NOTHING = re.compile(
    r"usage|invalid|unrecognized|unknown|not found|No such|cannot|error|illegal|option", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A command and what its run showed: `label` is harmless, harmful, failed, nothing to change, or not installed."""

    text: str
    label: str
    why: str = ""

    @property
    def programs(self) -> tuple[str, ...]:
        return programs_in(self.text)


def commands_of(folder: Path) -> dict[str, str]:
    """All commands with what they are for, each with short and with long options, without repetitions."""
    found: dict[str, str] = {}
    for line in (folder / "commands.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        for long in (False, True):
            found.setdefault(filled(row["template"], long=long), row["says"])
    return found


def labelled(says: dict[str, str]) -> list[Labelled]:
    runs = [text for text in says if _installed(text)]
    with tempfile.TemporaryDirectory() as folder:
        grounds: Queue[Ground] = Queue()
        for number in range(2):
            grounds.put(Ground(Path(folder, str(number))))

        def one(text: str) -> Labelled:
            ground = grounds.get()
            try:
                return _label(ground, text, says[text])
            finally:
                grounds.put(ground)

        with ThreadPoolExecutor(2) as pool:
            done = {found.text: found for found in pool.map(one, runs)}
    return [done.get(text) or Labelled(text, "not installed") for text in says]


def _installed(text: str) -> bool:
    programs = programs_in(text)
    return bool(programs) and all(name in BUILTINS or shutil.which(name) for name in programs)


def _label(ground: Ground, text: str, says: str) -> Labelled:
    program = programs_in(text)[0]
    run = ground.run(text, program)
    if run.harms:
        return Labelled(text, "harmful", "; ".join(run.harms)[:200])
    well = run.outcome in ("ended", "running")
    nothing_found = run.status == 1 and program in NOT_FOUND and not SAID_NOTHING.search(run.output)
    plain_says = re.sub(r"[\[\]`*]", "", says)  # "E[x]tract files"
    if NOT_DONE.search(run.output):
        return Labelled(text, "nothing to change", "it asked, or had nothing to do")
    if (well or nothing_found) and (CHANGES.match(plain_says) or AND_CHANGES.search(plain_says)):
        return Labelled(text, "nothing to change", says)
    if well or nothing_found:
        return Labelled(text, "harmless", run.outcome)
    return Labelled(text, "failed", run.output[-120:])


def is_core(text: str, core: set[str]) -> bool:
    """Whether core programs alone run, and of git only its own sub-commands."""
    words = text.split()
    sub_command = (
        next((word for word in words[1:] if not word.startswith("-")), "") if words[0] == "git" else ""
    )
    return set(programs_in(text)) <= core and (not sub_command or sub_command in GIT)


GIT = (
    set(
        subprocess.run(
            ["git", "--list-cmds=main,nohelpers,builtins"], capture_output=True, text=True
        ).stdout.split()
    )
    if shutil.which("git")
    else set[str]()
)


def core_programs() -> set[str]:
    listed = subprocess.run(["dpkg", "-L", *CORE_PACKAGES], capture_output=True, text=True).stdout.split()
    names = {path.rpartition("/")[2] for path in listed if re.match(r"(?:/usr)?/s?bin/", path)}
    alternatives = {
        name for name in ("awk", "which", "nawk", "view", "c99", "cc", "pager") if shutil.which(name)
    }
    return names | BUILTINS | alternatives


async def unasked_under(autonomy: str, texts: list[str], root: Path) -> set[str]:
    """The commands that the shell tool would run unasked in a bubblewrap sandbox, with a checkpoint of the whole folder."""
    sample_folder.make(root)
    box = Toolbox(default_tools(root, sandbox=Bubblewrap(str(root))), policy=read_rules("").policy(autonomy))
    unasked = set[str]()

    def covers(path: str) -> str | None:
        return None if root in (Path(path), *Path(path).parents) else "it lies outside the workspace"

    with box.covered_by("run", covers):
        for number, text in enumerate(texts):
            call = ToolCall("shell", {"command": text})
            if isinstance(await box.prepare(call, key=CallKey("run", 1, number)), Ready):
                unasked.add(text)
    return unasked


def report(found: list[Labelled], core: set[str]) -> None:
    allowed = sorted({name for name, row in SYNOPSES.items() if row.runs_unasked})
    print(
        f"{len(found)} commands: "
        + ", ".join(f"{n} {label}" for label, n in Counter(one.label for one in found).most_common())
    )
    harmless = [one for one in found if one.label == "harmless"]
    harmful = [one for one in found if one.label == "harmful"]
    core_ones = [one for one in harmless if is_core(one.text, core)]
    print(
        f"{len(core_ones)} of the {len(harmless)} harmless ones are of {len({p for one in core_ones for p in one.programs})} core programs\n"
    )
    print(
        f"| {'policy':40} | harmless that ask | of core programs | harmful that run unasked, of {len(harmful)} |"
    )
    print("| --- | ---: | ---: | ---: |")
    policies: dict[str, Callable[[str, list[str]], bool]] = {**STRATEGIES}
    del policies["toolcrib"]
    texts = [one.text for one in (*harmless, *harmful)]
    for autonomy in ("supervised", "sandboxed"):
        with tempfile.TemporaryDirectory() as folder:
            runs = asyncio.run(unasked_under(autonomy, texts, Path(folder).resolve() / "project"))
        policies[f"toolcrib, {autonomy}"] = lambda text, _, runs=runs: text in runs
    for name, policy in policies.items():
        asks, of_core, harm = (
            sum(not policy(one.text, allowed) for one in harmless),
            sum(not policy(one.text, allowed) for one in core_ones),
            sum(policy(one.text, allowed) for one in harmful),
        )
        print(
            f"| {name:40} | {_share(asks, len(harmless))} | {_share(of_core, len(core_ones))} | {_share(harm, len(harmful))} |"
        )


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / max(whole, 1):.1f} %)"


def list_wrong(found: list[Labelled], core: set[str]) -> None:
    for one in found:
        judgement = judge(one.text)
        if one.label == "harmless" and judgement.verdict != "plain":
            place = "core" if is_core(one.text, core) else "other"
            print(f"ASKS {place} {one.text!r}: {judgement.reason}")
        if one.label == "harmful" and judgement.verdict == "plain":
            print(f"RUNS {judgement.effect} {one.text!r}: {one.why}")
        if one.label in ("failed", "not installed") and judgement.only_reads:
            print(f"UNSEEN {one.label} {one.text!r}: {one.why!r}")


def main() -> None:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("folder", type=Path)
    reader.add_argument("--options", action="store_true")
    reader.add_argument("--looks", action="store_true")
    reader.add_argument("--kept", type=Path)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--labels", type=Path)
    reader.add_argument("--asking", action="store_true")
    options = reader.parse_args()
    if options.looks:
        sys.exit(option_trials.report_looks() > 0)
    if options.options:
        sys.exit(option_trials.report(option_trials.try_options(options.kept, options.seed)) > 0)
    if options.labels and options.labels.exists():
        found = [Labelled(*row) for row in json.loads(options.labels.read_text("utf-8"))]
    else:
        found = labelled(commands_of(options.folder))
        if options.labels:
            options.labels.write_text(json.dumps([[one.text, one.label, one.why] for one in found]), "utf-8")
    core = core_programs()
    if options.asking:
        list_wrong(found, core)
    else:
        report(found, core)


if __name__ == "__main__":
    main()
