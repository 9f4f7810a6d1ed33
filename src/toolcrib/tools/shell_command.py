"""How the tool `shell` judges a command.

Only what is written for bash or sh is proved. A command for another shell, one that is run in a terminal, where more
could be typed, and one whose variables change what programs do, ask as unrecognised text. A rule that denies still
recognises the commands in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from toolcrib.command.judge import Judgement, judge, variables
from toolcrib.command.launch import ShellKind
from toolcrib.command.plan import quoted
from toolcrib.dataclass import dataclass
from toolcrib.secrets.references import REFERENCE
from toolcrib.secrets.variables import PREFIX, as_variables
from toolcrib.tools.shell_params import ShellParams

MAX_COMMAND = 120_000  # bytes; the system's own limit is a little above
MAX_VARIABLES = 32_000  # characters of all names and values
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED = "TOOLCRIB_"
PROVED: tuple[ShellKind, ...] = ("bash", "sh")


class Asked(NamedTuple):
    """The parts of a call of `shell` that are judged."""

    command: str
    env: tuple[tuple[str, str], ...]
    kind: ShellKind
    terminal: bool


@dataclass(frozen=True, slots=True)
class CommandToRun:
    """A command line as it is run (`text`), and what was found out about it.

    `shown` is the text with its variables, as rules see it. `secrets` are {variable: name of the secret};
    `secrets_of_variables` are the names of those in `env`. `folder` is where it runs, from the workspace's root;
    `inside` says whether that folder belongs to the workspace itself.
    """

    text: str
    shown: str
    secrets: Mapping[str, str]
    secrets_of_variables: tuple[str, ...]
    folder: str
    judgement: Judgement
    inside: bool


def as_asked(params: ShellParams, kind: ShellKind) -> Asked:
    return Asked(params.command, tuple(params.env.items()), kind, params.terminal)


def without_references(params: ShellParams) -> dict[str, object]:
    """The parameters in which a word stands for each secret."""
    in_env = {name: REFERENCE.sub("secret", value) for name, value in params.env.items()}
    return {"command": REFERENCE.sub("secret", params.command), "env": in_env}


def problem_of_command(command: str) -> str | None:
    """Why a text cannot be a command line, in words for the model."""
    if not command.strip():
        return "command is empty."
    if "\0" in command:
        return "command contains a NUL character."
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        return "command holds half of a surrogate pair, which cannot be passed on."
    if size > MAX_COMMAND:
        return f"command is {size:,} bytes long; at most {MAX_COMMAND:,} are possible. Write it to a file."
    if isinstance(problem := as_variables(command), str):
        return f"command: {problem}."
    return None


def problem_of_variables(env: Mapping[str, str]) -> str | None:
    """Why variables cannot be set, in words for the model."""
    for name, value in env.items():
        if not NAME.fullmatch(name):
            return f"env: {name!r} cannot be the name of a variable: give letters, digits and underscores."
        if name.startswith(RESERVED):
            return f"env: {name} cannot be set; names that begin with {RESERVED} are taken."
        if "\0" in value:
            return f"env: the value of {name} contains a NUL character."
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"env: the value of {name} holds half of a surrogate pair, which cannot be passed on."
    if sum(len(name) + len(value) for name, value in env.items()) > MAX_VARIABLES:
        return f"env: names and values are longer than {MAX_VARIABLES:,} characters together. Write a file."
    return None


@lru_cache(64)
def judged(
    asked: Asked, root: str | None, folder: str, inside: bool, *, run_by_us: bool = True
) -> CommandToRun:
    """Judges a command in a folder below `root`, which is None where nobody knows its path.

    `inside` says whether the folder belongs to the workspace itself. `run_by_us` is that of `judge`.
    """
    workspace = None if root is None else str(Path(root, folder))
    spelled = as_variables(asked.command)
    text, secrets = (
        (asked.command, {}) if isinstance(spelled, str) else spelled
    )  # precheck refuses the former
    of_variables = tuple(match[1] for _, value in asked.env for match in REFERENCE.finditer(value))
    if reason := _not_proved(asked):
        shown = "".join(f"export {name}={quoted(value)}\n" for name, value in asked.env) + text
        judgement = judge(shown, cwd_is_workspace=inside, workspace=workspace)
        if judgement.verdict != "deny":
            by_bash = asked.kind in PROVED
            judgement = Judgement("ask", reason, programs=judgement.programs, by_bash=by_bash)
        return CommandToRun(text, shown, secrets, of_variables, folder, judgement, inside)
    judgement = judge(text, cwd_is_workspace=inside, workspace=workspace, run_by_us=run_by_us)
    if PREFIX in text and judgement.verdict == "plain":
        judgement = Judgement("ask", "it uses a secret", programs=judgement.programs)
    return CommandToRun(text, text, secrets, of_variables, folder, judgement, inside)


def _not_proved(asked: Asked) -> str | None:
    """Why nothing of a command is proved, whatever its text."""
    if asked.kind not in PROVED:
        return f"it is written for {asked.kind}, whose syntax is not proved"
    if (objection := variables.objection(dict(asked.env))) is not None:
        return objection
    return "it runs in a terminal, where more can be typed into it" if asked.terminal else None
