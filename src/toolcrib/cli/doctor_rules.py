"""What `toolcrib doctor` says of rules, approvals, secrets and the audit log: which there are, no value of any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.cli.audit import audit_log, state_folder
from toolcrib.cli.console import Problem, out
from toolcrib.cli.force import approvals_in_words, config_folder, counted, counts, rules_file, stray, tried
from toolcrib.cli.secrets import stored_secrets
from toolcrib.cli.shown import on_one_line
from toolcrib.cli.trust import trust_store
from toolcrib.errors import ToolcribError
from toolcrib.rules.trust import PLACE, project_rules

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox


def examine_rules(workspace: Path, box: Toolbox, problems: list[str]) -> None:
    """Print what counts here; what cannot be used is added to the problems."""
    out("\nRules, approvals, secrets")
    for label, said in (
        ("your rules", _rules(box, problems)),
        ("project's rules", _project(workspace, box, problems)),
        ("approvals", approvals_in_words(workspace)),
        ("secrets", _secrets(problems)),
        ("audit log", _audit(problems)),
    ):
        out(f"  {label:<20} {on_one_line(said)}")


def _rules(box: Toolbox, problems: list[str]) -> str:
    path = config_folder() / "policy.toml"
    try:
        file = rules_file(None)
        if file is None:
            return f"none ({path} does not exist)"
        untried = tried(file, box)
    except Problem as problem:
        problems.append(f"your rules: {problem}")
        return f"{path} cannot be used, so no run begins"
    for line in stray(file, box):
        out(f"  warning: {line}")
    said = [f"{path}: {counts(file)}", counted(len(file.examples), "example")]
    said += [f"{len(untried)} not tried, as their tools are not there now"] if untried else []
    said += [f"autonomy {file.autonomy}"] if file.autonomy is not None else []
    return ", ".join(said)


def _project(workspace: Path, box: Toolbox, problems: list[str]) -> str:
    try:
        found = project_rules(workspace)
        if found is None:
            return f"none (no {PLACE})"
        trusted = trust_store().find(found.project)
    except ToolcribError as problem:
        problems.append(f"{PLACE}: {problem}")
        return f"{PLACE} is not used: {problem}"
    said = f"{PLACE}: {counts(found.rules)}"
    if trusted is None:
        return f"{said}, not trusted and not used; toolcrib trust shows them"
    if trusted.sha256 != found.sha256:
        return f"{said}, changed since you trusted them, and not used; toolcrib trust shows them"
    try:
        tried(found.rules, box)
    except Problem as problem:
        problems.append(f"the project's rules: {problem}")
    unused = f", {len(found.widening)} not used, as a project allows nothing" if found.widening else ""
    return f"{said}, trusted{unused}"


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
