"""Finds the row of options of a command: that of its program, or of its sub-command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.command.not_proved import NotProved, UnknownProgram
from toolcrib.command.programs import (
    archives,
    coreutils,
    develop,
    documents,
    git,
    searching,
    system,
    telling,
    writing,
)
from toolcrib.command.programs.options import Synopsis

SYNOPSES: dict[str, Synopsis] = {
    **coreutils.SYNOPSES,
    **writing.SYNOPSES,
    **develop.SYNOPSES,
    **searching.SYNOPSES,
    **git.SYNOPSES,
    **archives.SYNOPSES,
    **documents.SYNOPSES,
    **system.SYNOPSES,
}
GLOBALS: dict[str, tuple[str, ...]] = {"git": git.GLOBALS, **develop.GLOBALS}
FAMILIES = {name.split()[0] for name in SYNOPSES if " " in name}
MAX_VERBS = max(name.count(" ") for name in SYNOPSES)
NAME = re.compile(r"[A-Za-z0-9_.+-]+")
# Programs that print a text and end if this is all they are asked for, by option.
TELLS: dict[str, frozenset[str]] = {
    option: frozenset(names.split()) for option, names in telling.TELLS.items()
}
# Where programs of the system lie: a path there is as good as the bare name.
SYSTEM = ("/bin/", "/usr/bin/")


def program_name(written: str) -> str:
    """The name of a program without its folder. Raises NotProved if that is not a folder of the system."""
    if "/" not in written:
        return written
    folder, _, name = written.rpartition("/")
    if f"{folder}/" not in SYSTEM:
        raise NotProved(f"a program given by its path: {written}")
    return name


def find_synopsis(argv: Sequence[str | None]) -> tuple[str, Synopsis, int]:
    """The name of the row, the row, and the index of the first argument after the sub-command.

    `argv` holds None for a word that is only known when it runs. Raises UnknownProgram if there is no row.
    """
    name = argv[0] or ""
    if name not in FAMILIES:
        if name not in SYNOPSES:
            raise UnknownProgram(f"{name}: an unknown program")
        return name, SYNOPSES[name], 1
    at = 1
    while at < len(argv) and argv[at] in GLOBALS.get(name, ()):
        at += 1
    for verbs in range(min(MAX_VERBS, len(argv) - at), -1, -1):
        words = argv[at : at + verbs]
        if None in words:
            continue
        key = " ".join([name, *(word for word in words if word is not None)])
        if key in SYNOPSES and (verbs or at >= len(argv) or (argv[at] or "").startswith("-")):
            return key, SYNOPSES[key], at + verbs
    if name in SYNOPSES and SYNOPSES[name].otherwise:
        raise UnknownProgram(f"{name}: {SYNOPSES[name].otherwise}")
    shown = (argv[at] or "…") if at < len(argv) else ""
    raise UnknownProgram(f"{name} {shown}".strip() + ": not on its list")
