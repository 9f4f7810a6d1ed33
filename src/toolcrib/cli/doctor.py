"""`toolcrib doctor`: what is installed, what is configured, what is missing. Names of variables, never values."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from toolcrib import __version__
from toolcrib.assembly import Assembly, assemble
from toolcrib.cli.console import out, quiet_logging
from toolcrib.cli.shown import shown
from toolcrib.cli.tools import items_of

MODEL = "TOOLCRIB_MODEL"


def examine(workspace: Path) -> int:
    """Print what there is; 0 if runs and tools can work, 1 if something stands in their way."""
    quiet_logging()
    problems: list[str] = []
    out(
        f"toolcrib {__version__}, Python {platform.python_version()} ({sys.executable}), {platform.platform()}"
    )
    _dependencies(problems)
    _models(problems)
    _workspace(workspace, problems)
    _sandbox(workspace, problems)
    if workspace.is_dir():
        from toolcrib.cli.doctor_rules import examine_rules

        assembly = assemble(workspace)
        examine_rules(workspace, assembly.toolbox(autonomy="full"), problems)
        _plugins(assembly, problems)
    out()
    for problem in problems:
        out(shown(f"! {problem}"))
    out("Ready." if not problems else f"{len(problems)} to look at.")
    return 1 if problems else 0


def _dependencies(problems: list[str]) -> None:
    out("\nDependencies")
    extras: dict[str, list[str]] = {}
    for requirement in requires("toolcrib") or ():
        needed, _, condition = requirement.partition(";")
        name = _name_of(needed)
        if "extra" in condition:
            extra = condition.split("==")[-1].strip().strip("\"'")
            extras.setdefault(extra, []).append(name)
        elif _installed(name):
            out(f"  {name:<20} {_installed(name)}")
        else:
            out(f"  {name:<20} MISSING")
            problems.append(f"{name} is missing: pip install toolcrib")
    out("\nExtras")
    for extra, names in sorted(extras.items()):
        missing = [name for name in names if not _installed(name)]
        if missing:
            out(f"  {extra:<20} not installed; to have it: pip install 'toolcrib[{extra}]'")
        else:
            out(f"  {extra:<20} " + ", ".join(f"{name} {_installed(name)}" for name in names))


def _models(problems: list[str]) -> None:
    out("\nModels")
    from toolcrib.models.providers import PROVIDERS as ALL

    keyed = [name for name, row in ALL.items() if row.keys and row.key()]
    out(f"  keys are set for     {', '.join(keyed) or 'no provider'}")
    out("  `toolcrib models` lists every provider and what it needs.")
    spec = os.environ.get(MODEL)
    if not spec:
        out(f"  {MODEL:<20} not set: name a model with --model each time, or set it")
        return
    out(f"  {MODEL:<20} {_without_credentials(spec)}")
    from toolcrib.models import resolve_model
    from toolcrib.models.providers import ALIASES, PROVIDERS

    kind = spec.partition(":")[0]
    row = PROVIDERS.get(ALIASES.get(kind, kind))
    if row is not None and row.official and row.key() is None:
        problems.append(f"{MODEL} is {spec}, and {row.keys[0]} is not set")
    try:
        resolve_model(spec)
    except Exception as problem:  # an SDK says what it misses in its own exceptions
        problems.append(f"{MODEL}: {problem}")


def _workspace(workspace: Path, problems: list[str]) -> None:
    out("\nWorkspace")
    if not workspace.is_dir():
        out(f"  {workspace}: no such folder")
        problems.append(f"workspace: expected a folder that exists, got {workspace}")
        return
    writable = os.access(workspace, os.W_OK)
    out(shown(f"  {workspace.resolve()}" + ("" if writable else " (cannot be written to)")))


def _sandbox(workspace: Path, problems: list[str]) -> None:
    """The sandbox that commands get here, after it was tried: what holds, what is weak, how to mend it."""
    out("\nSandbox")
    if not workspace.is_dir():
        out("  not tried: there is no workspace")
        return
    from toolcrib.command.sandbox import SandboxError, choose, warnings

    try:
        sandbox = choose(workspace)
        report = sandbox.report()
    except SandboxError as refused:
        out(shown(f"  none for this workspace: {refused}"))
        problems.append(f"sandbox: {refused}")
        return
    for line in report.lines():
        out(shown(f"  {line}"))
    if not report.confines:
        out("  The file tools cannot leave the workspace; a shell command can do all that you can.")
        out(shown(f"  {warnings(sandbox)[0]}"))
        problems.append("no sandbox works here" + (f"; {report.fix}" if report.fix else ""))


def _plugins(assembly: Assembly, problems: list[str]) -> None:
    out("\nTools")
    items = items_of(assembly)
    built_in = sum(item.source == "built-in" for item in items)
    out(f"  {built_in} built-in")
    for plugin in assembly.plugins:
        if plugin.problem:
            out(shown(f"  plugin {plugin.source}: BROKEN"))
        else:
            mine = [item for item in items if item.source == plugin.source]
            broken = sum(bool(item.problem) for item in mine)
            out(
                shown(
                    f"  plugin {plugin.source}: {len(mine)} tool{'s' * (len(mine) != 1)}"
                    + (f", {broken} BROKEN" if broken else "")
                )
            )
    if not assembly.plugins:
        out("  no plugins are installed (entry points of the group toolcrib.tools)")
    problems += assembly.notes
    problems += [f"tool {item.name} ({item.source}): {item.problem}" for item in items if item.problem]


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _name_of(requirement: str) -> str:
    import re

    found = re.match(r"\s*([A-Za-z0-9._-]+)", requirement)
    return found[1] if found else requirement.strip()


def _without_credentials(spec: str) -> str:
    """A model's string without a password that its address may hold."""
    scheme, slashes, rest = spec.partition("://")
    host, at, tail = rest.rpartition("@")
    return f"{scheme}{slashes}…@{tail}" if slashes and at and host else spec
