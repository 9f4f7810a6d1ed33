"""`toolcrib doctor`: what is installed, what is configured, what is missing. Names of variables, never values."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib import __version__
from toolcrib.assembly import BUILT_IN, Assembly
from toolcrib.cli.console import DONE, NOT_DONE, Problem, out, quiet_logging
from toolcrib.cli.loaded_tools import load_assembly, load_tools
from toolcrib.cli.mcp_servers import ServersWanted, configured_servers
from toolcrib.cli.mcp_states import known_servers
from toolcrib.cli.options import WorkspaceFolder
from toolcrib.cli.rule_checks import unmatched_lines, untried_examples
from toolcrib.cli.settings_in_effect import approvals_summary, rules_summary
from toolcrib.cli.user_files import (
    audit_log,
    rules_file,
    stored_secrets,
    trust_store,
    users_rules,
)
from toolcrib.command.sandbox import SandboxError, choose, warnings, why_not_contained
from toolcrib.errors import ToolcribError
from toolcrib.models.providers import ALIASES, PROVIDERS
from toolcrib.models.resolve import resolve_model
from toolcrib.private_files import state_folder
from toolcrib.rules.trust import PLACE, project_rules
from toolcrib.settings import join_settings
from toolcrib.visible import counted, escape_invisible, on_one_line

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox

MODEL = "TOOLCRIB_MODEL"


def command(workspace: WorkspaceFolder = Path()) -> int:
    """The exit code is 1 if there is a problem."""
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
        assembly = _assembly(workspace, problems)
        _rules(workspace, assembly.toolbox(autonomy="full"), problems)
        _tools(assembly, problems)
        _servers(workspace, problems)
    out()
    for problem in problems:
        out(escape_invisible(f"! {problem}"))
    ready = "Ready." if os.environ.get(MODEL) else "Ready, once toolcrib run is given a model: --model NAME."
    out(ready if not problems else f"{counted(len(problems), 'problem')}.")
    return NOT_DONE if problems else DONE


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
    extras.pop("all", None)  # the others together
    for extra, names in sorted(extras.items()):
        missing = [name for name in names if not _installed(name)]
        if missing:
            out(f"  {extra:<20} not installed; to install it: pip install 'toolcrib[{extra}]'")
        else:
            out(f"  {extra:<20} " + ", ".join(f"{name} {_installed(name)}" for name in names))


def _models(problems: list[str]) -> None:
    out("\nModels")
    keyed = [name for name, row in PROVIDERS.items() if row.keys and row.key()]
    out(f"  {'keys':<20} {', '.join(keyed) or 'no key of a provider is set'}")
    out("  `toolcrib models` lists every provider and what it needs.")
    spec = os.environ.get(MODEL)
    if not spec:
        out(f"  {MODEL:<20} not set: name a model with --model each time, or set it")
        return
    out(f"  {MODEL:<20} {_without_password(spec)}")
    kind = spec.partition(":")[0]
    row = PROVIDERS.get(ALIASES.get(kind, kind))
    if row is not None and row.official and row.key() is None:
        problems.append(f"{MODEL} is {spec}, and {row.keys[0]} is not set")
    try:
        resolve_model(spec)
    except Exception as problem:  # an SDK says what is missing in an exception of its own
        problems.append(f"{MODEL}: {problem}")


def _workspace(workspace: Path, problems: list[str]) -> None:
    out("\nWorkspace")
    if not workspace.is_dir():
        out(f"  {workspace}: no such folder")
        problems.append(f"workspace: expected a folder that exists, got {workspace}")
        return
    writable = os.access(workspace, os.W_OK)
    out(escape_invisible(f"  {workspace.resolve()}" + ("" if writable else " (cannot be written to)")))


def _sandbox(workspace: Path, problems: list[str]) -> None:
    """Try the sandbox that commands get here, and print what it enforces, what is weak, and how to mend it."""
    out("\nSandbox")
    if not workspace.is_dir():
        out("  not tried, because there is no workspace")
        return
    try:
        sandbox = choose(workspace)
        report = sandbox.report()
    except SandboxError as refused:
        out(escape_invisible(f"  none for this workspace: {refused}"))
        problems.append(f"sandbox: {refused}")
        return
    for line in report.lines():
        out(escape_invisible(f"  {line}"))
    uncontained = why_not_contained(sandbox)
    state = f"counts as supervised here: {uncontained}" if uncontained else "can be kept here"
    out(escape_invisible(f"  autonomy sandboxed {state}"))
    if not report.confines:
        if sys.platform == "win32":
            out(
                "  Commands are not run on Windows. The file tools look at a path before they open it: a program that"
            )
            out("  runs meanwhile could swap a folder for a link. Nobody has run this on Windows yet.")
        else:
            out("  The file tools cannot leave the workspace; a shell command can do all that you can.")
        out(escape_invisible(f"  {warnings(sandbox)[0]}"))
        problems.append("no sandbox works here" + (f"; {report.fix}" if report.fix else ""))


def _assembly(workspace: Path, problems: list[str]) -> Assembly:
    """The tools of a run here, with notes among the problems; built-in ones where settings cannot be used."""
    try:
        return load_assembly((), workspace, notes=False)
    except Problem as problem:
        problems += problem.message.splitlines()
        without = ServersWanted(configured=False)
        return load_assembly((), workspace, mcp=without, joined=join_settings([]), notes=False)


def _rules(workspace: Path, box: Toolbox, problems: list[str]) -> None:
    """Print which rules, approvals, secrets and audit log count here; those that cannot be used are problems."""
    out("\nRules, approvals, secrets")
    for label, state in (
        ("your rules", _own_rules(box, problems)),
        ("project's rules", _project(workspace, box, problems)),
        ("approvals", approvals_summary(workspace)),
        ("secrets", _secrets(problems)),
        ("audit log", _audit(problems)),
    ):
        out(f"  {label:<20} {on_one_line(state)}")


def _own_rules(box: Toolbox, problems: list[str]) -> str:
    path = users_rules()
    try:
        file = rules_file(None)
        if file is None:
            return f"none ({path} does not exist)"
        untried = untried_examples(file, box)
    except Problem as problem:
        problems.append(f"your rules: {problem}")
        return f"{path} cannot be used, so no run starts"
    for line in unmatched_lines(file, box):
        out(f"  warning: {line}")
    parts = [f"{path}: {rules_summary(file)}", counted(len(file.examples), "example")]
    parts += [f"{len(untried)} not tried, because their tools do not exist now"] if untried else []
    parts += [f"autonomy {file.autonomy}"] if file.autonomy is not None else []
    return ", ".join(parts)


def _project(workspace: Path, box: Toolbox, problems: list[str]) -> str:
    try:
        found = project_rules(workspace)
        if found is None:
            return f"none (no {PLACE})"
        trusted = trust_store().find(found.project)
    except ToolcribError as problem:
        problems.append(f"{PLACE}: {problem}")
        return f"{PLACE} is not used: {problem}"
    state = f"{PLACE}: {rules_summary(found.rules)}"
    if trusted is None:
        return f"{state}, not trusted and not used; toolcrib trust shows them"
    if trusted.sha256 != found.sha256:
        return f"{state}, changed since you trusted them, and not used; toolcrib trust shows them"
    try:
        untried_examples(found.rules, box)
    except Problem as problem:
        problems.append(f"the project's rules: {problem}")
    unused = (
        f", {len(found.widening)} not used, because a project may not allow anything"
        if found.widening
        else ""
    )
    return f"{state}, trusted{unused}"


def _secrets(problems: list[str]) -> str:
    try:
        store = stored_secrets()
    except Problem as problem:
        problems.append(f"secrets: {problem}")
        return "cannot be read"
    return counted(len(store.names()), "name") if store is not None else "none"


def _audit(problems: list[str]) -> str:
    path = state_folder() / "audit.jsonl"
    if not path.exists():
        return "none (toolcrib run --audit writes one)"
    try:
        log = audit_log()
        checked = log.check()
    except (Problem, ToolcribError, OSError) as problem:
        problems.append(f"audit log: {problem}")
        return f"{path} cannot be read"
    if checked.broken is not None:
        problems.append(f"audit log {path}: {checked.broken}")
        return f"{path} does not hold"
    return f"{path}: {counted(checked.lines, 'line')}, all hold"


def _tools(assembly: Assembly, problems: list[str]) -> None:
    out("\nTools")
    tools = load_tools(assembly)
    out(f"  {sum(tool.source == BUILT_IN for tool in tools)} built-in")
    for plugin in assembly.plugins:
        supplied = [tool for tool in tools if tool.source == plugin.source]
        broken = sum(bool(tool.problem) for tool in supplied)
        state = counted(len(supplied), "tool") + (f", {broken} BROKEN" if broken else "")
        out(escape_invisible(f"  plugin {plugin.source}: {'BROKEN' if plugin.problem else state}"))
    if not assembly.plugins:
        out("  no plugins are installed (entry points of the group toolcrib.tools)")
    problems += assembly.notes
    problems += [f"tool {tool.name} ({tool.source}): {tool.problem}" for tool in tools if tool.problem]


def _servers(workspace: Path, problems: list[str]) -> None:
    """Print what is known of each MCP server; none is started."""
    out("\nMCP servers")
    try:
        found = configured_servers(workspace)
    except Problem as problem:
        out("  cannot be read")
        problems += [line for line in problem.message.splitlines() if line not in problems]
        return
    rows = known_servers(found, workspace)
    for row in rows:
        out(on_one_line(f"  {row.server.name:<20} {row.words}"))
        for warning in row.status.warnings if row.status is not None else ():
            out(on_one_line(f"    warning: {warning}"))
        if row.status is not None and row.status.problem:
            named = f"MCP server {row.server.name!r}"
            why = row.status.problem
            problems.append(why if why.startswith(named) else f"{named}: {why}")
    problems += found.notes
    if not rows:
        out("  none are configured; to add one: toolcrib mcp add")
    elif not _installed("mcp"):
        problems.append("MCP servers cannot be started without the extra mcp: pip install 'toolcrib[mcp]'")


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _name_of(requirement: str) -> str:
    found = re.match(r"\s*([A-Za-z0-9._-]+)", requirement)
    return found[1] if found else requirement.strip()


def _without_password(spec: str) -> str:
    """The name of a model, without a password in its address."""
    scheme, slashes, rest = spec.partition("://")
    host, at, tail = rest.rpartition("@")
    return f"{scheme}{slashes}…@{tail}" if slashes and at and host else spec
