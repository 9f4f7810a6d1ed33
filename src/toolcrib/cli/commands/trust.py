"""`toolcrib trust`: a person reads a project's rules, settings, tools, skills and MCP servers, and decides."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.console import DONE, NOT_DONE, Problem, out
from toolcrib.cli.project_trust import files_to_trust, lines_of
from toolcrib.cli.tool_settings import misplaced_settings
from toolcrib.cli.user_files import trust_store
from toolcrib.errors import ToolcribError
from toolcrib.rules.project_files import read_project_file
from toolcrib.visible import on_one_line

Project = Annotated[Path, typer.Argument(metavar="PATH", help="The folder of the project.")]
ListThem = Annotated[bool, typer.Option("--list", help="List what you trust, and what changed since.")]
Revoke = Annotated[bool, typer.Option("--revoke", help="Stop trusting what is in this folder.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Trust it without being asked: you have read it.")]


def command(path: Project = Path(), list_: ListThem = False, revoke: Revoke = False, yes: Yes = False) -> int:
    """The rules are in the project's .toolcrib/policy.toml: they can only deny or ask, and one that allows something is
    not used. The settings are in .toolcrib/toolcrib.toml, the tools in .toolcrib/tools/*.py, the skills in
    .toolcrib/skills, and MCP servers in .mcp.json, .cursor/mcp.json and .vscode/mcp.json. When a file changes, it stops
    counting until you trust it again.
    """
    if list_ + revoke + yes > 1:
        raise typer.BadParameter("choose one of --list, --revoke and --yes")
    try:
        if list_:
            return _list()
        return _revoke(path) if revoke else _trust(path, yes=yes)
    except ToolcribError as problem:
        raise Problem("\n".join(map(on_one_line, str(problem).splitlines()))) from problem


def _trust(folder: Path, *, yes: bool) -> int:
    """Show what a project has that needs trust, and ask whether it counts."""
    if not folder.is_dir():
        raise Problem(f"expected a folder, got {_shown(folder)}")
    found = files_to_trust(folder)
    store = trust_store()
    for line in lines_of(found):
        out(line)
    if not found.all:
        out(
            f"{_shown(folder)} has no rules, settings, tools, skills or MCP servers: there is nothing to trust"
        )
        if misplaced := misplaced_settings(folder):
            out(misplaced)
        return DONE
    if all(map(store.holds, found.all)):
        out("\nYou already trust this.")
        return DONE
    if not yes and not _person_agrees():
        out("Not trusted, and not used.")
        return NOT_DONE
    store.add(*found.all, by=getpass.getuser())
    out("Trusted. When a file changes, it is not used until you trust it again.")
    return DONE


def _list() -> int:
    """Print what is trusted, and what changed since."""
    trusted = trust_store().all()
    for item in trusted:
        try:
            found = read_project_file(item.project, item.path)
        except ToolcribError as problem:
            state = f"not used: {problem}"
        else:
            same = found is not None and found.sha256 == item.sha256
            state = "used" if same else "gone" if found is None else "changed since, and not used"
        place = on_one_line(f"{item.project}/{item.path}")
        out(f"{place}  sha256 {on_one_line(item.sha256[:16])}…  {on_one_line(state)}")
    if not trusted:
        out("no project's files are trusted")
    return DONE


def _revoke(folder: Path) -> int:
    """Stop trusting the files of a project; the exit code is 1 if none were trusted."""
    known = trust_store().revoke(os.path.realpath(folder))
    out(f"{_shown(folder)}: {'no longer trusted' if known else 'was not trusted'}")
    return DONE if known else NOT_DONE


def _person_agrees() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Problem("there is no terminal to ask on; if you have read this, add --yes")
    sys.stderr.write("Tools and MCP servers run as you do, outside of every sandbox.\n")
    sys.stderr.write("Should this count when you work in this folder? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _shown(folder: Path) -> str:
    return on_one_line(str(folder))
