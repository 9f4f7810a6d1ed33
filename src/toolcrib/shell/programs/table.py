"""The row of a command: its program's, or its sub-command's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.shell.gate import Stopped, Unknown
from toolcrib.shell.options import Form
from toolcrib.shell.programs import coreutils, develop, git, searching, writing

FORMS: dict[str, Form] = {
    **coreutils.FORMS,
    **writing.FORMS,
    **develop.FORMS,
    **searching.FORMS,
    **git.FORMS,
}
GLOBALS: dict[str, tuple[str, ...]] = {"git": git.GLOBALS, **develop.GLOBALS}
FAMILIES = {name.split()[0] for name in FORMS if " " in name}
MOST_VERBS = 3
NAME = re.compile(r"[A-Za-z0-9_.+-]+")
# These print a text and end, if that is all they are asked for.
SAYS_HELP = {
    name
    for name, form in {**coreutils.FORMS, **searching.FORMS}.items()
    if form.runs_unasked
    and not form.inert
    and " " not in name
    and name not in ("cd", "test", "true", "false", "expr")
}
# Where programs of the system lie: a path there is as good as the bare name.
SYSTEM = ("/bin/", "/usr/bin/")


def program_name(written: str) -> str:
    """The bare name of a program. Raises Stopped for one that lies elsewhere than the system's."""
    if "/" not in written:
        return written
    folder, _, name = written.rpartition("/")
    if f"{folder}/" not in SYSTEM:
        raise Stopped(f"a program given by its path: {written}")
    return name


def find_form(argv: Sequence[str | None]) -> tuple[str, Form, int]:
    """The row's name, the row, and at which argument its own begin. `argv` has None where a word is not
    literal. Raises Stopped where there is no row."""
    name = argv[0] or ""
    if name not in FAMILIES:
        if name not in FORMS:
            raise Unknown(f"{name}: an unknown program")
        return name, FORMS[name], 1
    at = 1
    while at < len(argv) and argv[at] in GLOBALS.get(name, ()):
        at += 1
    for verbs in range(min(MOST_VERBS, len(argv) - at), -1, -1):
        words = argv[at : at + verbs]
        if None in words:
            continue
        key = " ".join([name, *(word for word in words if word is not None)])
        if key in FORMS and (verbs or at >= len(argv) or (argv[at] or "").startswith("-")):
            return key, FORMS[key], at + verbs
    if name in FORMS and FORMS[name].otherwise:
        raise Unknown(f"{name}: {FORMS[name].otherwise}")
    shown = (argv[at] or "…") if at < len(argv) else ""
    raise Unknown(f"{name} {shown}".strip() + ": not on its list")
