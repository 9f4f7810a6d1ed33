"""`toolcrib trust`: a person reads the rules that lie in a project, and says whether they count."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path

from toolcrib.cli.console import Problem, out, say
from toolcrib.cli.force import config_folder
from toolcrib.cli.shown import on_one_line, value_on_one_line
from toolcrib.errors import ToolcribError
from toolcrib.rules.policy import Rule
from toolcrib.rules.trust import PLACE, ProjectRules, TrustStore, project_rules


def trust_store() -> TrustStore:
    """What the user trusts, in their own settings and in no project."""
    return TrustStore(config_folder() / "trusted.json")


def trust(workspace: Path, *, yes: bool) -> int:
    """Show what a project's rules say and ask whether they count; 1 when they do not."""
    try:
        found = project_rules(_folder(workspace))
        store = trust_store()
        if found is None:
            out(f"{_shown(workspace)} has no {PLACE}: there is nothing to trust")
            return 0
        for line in _lines(found):
            out(line)
        if store.holds(found):
            out("\nYou trust this already.")
            return 0
        if not yes and not _said_yes():
            out("It is not trusted, and not used.")
            return 1
        store.add(found, by=getpass.getuser())
    except ToolcribError as problem:
        raise Problem(on_one_line(str(problem))) from problem
    out("It is trusted as it stands; when it changes, it is not until you say so again.")
    return 0


def list_trusted() -> int:
    """Print what is trusted, and what changed since."""
    try:
        kept = trust_store().all()
    except ToolcribError as problem:
        raise Problem(str(problem)) from problem
    for item in kept:
        try:
            found = project_rules(item.project)
        except ToolcribError as problem:
            state = f"not used: {problem}"
        else:
            same = found is not None and found.sha256 == item.sha256
            state = "used" if same else "gone" if found is None else "changed since, and not used"
        out(f"{on_one_line(item.project)}  sha256 {on_one_line(item.sha256[:16])}…  {on_one_line(state)}")
    if not kept:
        out("no project's rules are trusted")
    return 0


def revoke(workspace: Path) -> int:
    """Trust a project's rules no more; 1 where they were not trusted."""
    try:
        known = trust_store().revoke(os.path.realpath(workspace))
    except ToolcribError as problem:
        raise Problem(str(problem)) from problem
    out(f"{_shown(workspace)}: {'trusted no more' if known else 'was not trusted'}")
    return 0 if known else 1


def project_in(workspace: Path) -> ProjectRules | None:
    """The workspace's rules if they are trusted; else None, and a line that says that they are not used."""
    try:
        found = project_rules(workspace)
        if found is None:
            return None
        trusted = trust_store().find(found.project)
    except ToolcribError as problem:
        say(f"{PLACE} of this folder is not used: {on_one_line(str(problem))}")
        return None
    if trusted is None or trusted.sha256 != found.sha256:
        why = "it changed since you trusted it" if trusted is not None else "nobody trusted it"
        say(
            f"{PLACE} of this folder is not used: {why}; see what it says: toolcrib trust {_shown(workspace)}"
        )
        return None
    if found.widening:
        names = ", ".join(on_one_line(rule.name, 40) for rule in found.widening)
        say(f"{PLACE}: a project allows nothing; not used: {names}")
    return found


def _lines(found: ProjectRules) -> list[str]:
    lines = [f"{on_one_line(found.project)}/{PLACE}  (sha256 {found.sha256})"]
    if found.rules.autonomy is not None:
        lines.append(f"  autonomy at most {found.rules.autonomy.value}")
    lines += [f"  {line}" for rule in found.narrowing for line in _rule_lines(rule)]
    if found.widening:
        lines.append("  not used, as a project allows nothing:")
        lines += [f"    {line}" for rule in found.widening for line in _rule_lines(rule)]
    lines += [f"  {on_one_line(str(limit))}" for limit in found.rules.limits]
    if not found.rules.rules:
        lines.append("  no rules")
    return lines


def _rule_lines(rule: Rule) -> list[str]:
    """All that a rule says: what it is about, and what the model and the person are told."""
    said = {
        "tool": rule.tools,
        "effect": tuple(effect.label for effect in sorted(rule.effects)),
        "server": rule.servers,
        "path": tuple(pattern.text for pattern in rule.paths),
        "reach": tuple(sorted(rule.reach)),
        "command": tuple(pattern.text for pattern in rule.commands),
        "host": rule.hosts,
        "argument": rule.arguments,
        "tainted": rule.tainted,
        "unsaid": rule.unsaid,
        "reason": rule.reason,
    }
    lines = [f"{rule.verb.value:<5} {on_one_line(rule.name)}"]
    for name, value in said.items():
        if value or value is False:
            plain = value if isinstance(value, str | bool | dict) else ", ".join(map(str, value))
            lines.append(
                f"        {name}: {on_one_line(plain) if isinstance(plain, str) else value_on_one_line(plain)}"
            )
    return lines


def _said_yes() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Problem("nobody is at a terminal to say yes; a person who has read it may add --yes")
    sys.stderr.write("Should these rules count when you work in this folder? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _folder(workspace: Path) -> Path:
    if not workspace.is_dir():
        raise Problem(f"expected a folder, got {_shown(workspace)}")
    return workspace


def _shown(workspace: Path) -> str:
    return on_one_line(str(workspace))
