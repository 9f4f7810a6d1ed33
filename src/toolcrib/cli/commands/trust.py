"""`toolcrib trust`: a person reads the rules of a project, and says whether they count."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.console import DONE, NOT_DONE, Problem, out
from toolcrib.cli.user_files import trust_store
from toolcrib.cli.wording import value_on_one_line
from toolcrib.errors import ToolcribError
from toolcrib.rules import Rule
from toolcrib.rules.trust import PLACE, ProjectRules, project_rules
from toolcrib.visible import on_one_line

Project = Annotated[Path, typer.Argument(metavar="[PATH]", help="The folder of the project.")]
ListThem = Annotated[bool, typer.Option("--list", help="List what you trust, and what changed since.")]
Revoke = Annotated[bool, typer.Option("--revoke", help="Stop trusting the rules of this folder.")]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Trust the rules without being asked: you have read them.")
]


def command(path: Project = Path(), list_: ListThem = False, revoke: Revoke = False, yes: Yes = False) -> int:
    """The rules are in the project's .toolcrib/policy.toml. They can only deny or ask; a rule that allows something is
    not used. When the file changes, the rules stop counting until you trust them again.
    """
    if list_ + revoke + yes > 1:
        raise typer.BadParameter("choose one of --list, --revoke and --yes")
    try:
        if list_:
            return _list()
        return _revoke(path) if revoke else _trust(path, yes=yes)
    except ToolcribError as problem:
        raise Problem(on_one_line(str(problem))) from problem


def _trust(folder: Path, *, yes: bool) -> int:
    """Show what a project's rules say and ask whether they count."""
    if not folder.is_dir():
        raise Problem(f"expected a folder, got {_shown(folder)}")
    found = project_rules(folder)
    store = trust_store()
    if found is None:
        out(f"{_shown(folder)} has no {PLACE}: there is nothing to trust")
        return DONE
    for line in _lines(found):
        out(line)
    if store.holds(found):
        out("\nYou already trust this.")
        return DONE
    if not yes and not _person_agrees():
        out("Not trusted, and not used.")
        return NOT_DONE
    store.add(found, by=getpass.getuser())
    out("Trusted. When the file changes, it is not used until you trust it again.")
    return DONE


def _list() -> int:
    """Print what is trusted, and what changed since."""
    trusted = trust_store().all()
    for item in trusted:
        try:
            found = project_rules(item.project)
        except ToolcribError as problem:
            state = f"not used: {problem}"
        else:
            same = found is not None and found.sha256 == item.sha256
            state = "used" if same else "gone" if found is None else "changed since, and not used"
        out(f"{on_one_line(item.project)}  sha256 {on_one_line(item.sha256[:16])}…  {on_one_line(state)}")
    if not trusted:
        out("no project's rules are trusted")
    return DONE


def _revoke(folder: Path) -> int:
    """Trust a project's rules no more."""
    known = trust_store().revoke(os.path.realpath(folder))
    out(f"{_shown(folder)}: {'no longer trusted' if known else 'was not trusted'}")
    return DONE if known else NOT_DONE


def _person_agrees() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Problem("there is no terminal to ask on; if you have read the rules, add --yes")
    sys.stderr.write("Should these rules count when you work in this folder? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _lines(found: ProjectRules) -> list[str]:
    lines = [f"{on_one_line(found.project)}/{PLACE}  (sha256 {found.sha256})"]
    if found.rules.autonomy is not None:
        lines.append(f"  autonomy at most {found.rules.autonomy.value}")
    lines += [f"  {line}" for rule in found.narrowing for line in _rule_lines(rule)]
    if found.widening:
        lines.append("  not used, because a project may not allow anything:")
        lines += [f"    {line}" for rule in found.widening for line in _rule_lines(rule)]
    lines += [f"  {on_one_line(str(limit))}" for limit in found.rules.limits]
    if not found.rules.rules:
        lines.append("  no rules")
    return lines


def _rule_lines(rule: Rule) -> list[str]:
    """What a rule matches, and what the model and the person are told."""
    fields = {**rule.written(), **({"reason": rule.reason} if rule.reason else {})}
    lines = [f"{rule.verb.value:<5} {on_one_line(rule.name)}"]
    for name, value in fields.items():
        plain = isinstance(value, list) and all(isinstance(item, str) for item in value)
        text = ", ".join(value) if plain else value
        lines.append(
            f"        {name}: {on_one_line(text) if isinstance(text, str) else value_on_one_line(text)}"
        )
    return lines


def _shown(folder: Path) -> str:
    return on_one_line(str(folder))
