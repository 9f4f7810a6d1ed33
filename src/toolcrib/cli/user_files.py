"""The files that a user of the command line owns: rules, trusted projects, approvals, secrets, and the audit log.

Settings lie in `$XDG_CONFIG_HOME/toolcrib` (usually ~/.config/toolcrib), what outlasts a run in
`$XDG_STATE_HOME/toolcrib` (usually ~/.local/state/toolcrib).
"""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.cli.console import Problem, say
from toolcrib.private_files import state_folder

if TYPE_CHECKING:
    from toolcrib.audit import AuditLog
    from toolcrib.checkpoints import Checkpoints
    from toolcrib.rules import RuleFile
    from toolcrib.rules.approvals import ApprovalStore
    from toolcrib.rules.trust import TrustStore
    from toolcrib.secrets import SecretFile


def config_folder() -> Path:
    """The folder of the user's settings."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "toolcrib"


def users_rules() -> Path:
    """The user's own rules."""
    return config_folder() / "policy.toml"


def rules_file(named: Path | None) -> RuleFile | None:
    """The rules in the file that was named, or else in the user's own policy.toml, if there is one.

    Raises Problem for a file that cannot be read or is wrong.
    """
    from toolcrib.rules import RuleError, load_rules

    path = named or users_rules()
    if named is None and not path.is_file():
        return None
    try:
        return load_rules(path)
    except RuleError as problem:
        raise Problem(str(problem)) from problem
    except OSError as problem:
        raise Problem(f"{path} cannot be read: {problem.strerror or problem}") from problem


def trust_store() -> TrustStore:
    """The projects whose rules the user trusts."""
    from toolcrib.rules.trust import TrustStore

    return TrustStore(config_folder() / "trusted.json")


def approval_store() -> ApprovalStore:
    """The user's approvals that outlast a run."""
    from toolcrib.rules.approvals import ApprovalStore

    return ApprovalStore(state_folder() / "approvals.json")


def secrets_path() -> Path:
    """The file of the user's secrets. A relative XDG_CONFIG_HOME is ignored, as its specification demands."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "toolcrib" / "secrets.json"


def stored_secrets() -> SecretFile | None:
    """The user's secrets; None if there are none. Raises Problem for a file that cannot be read."""
    from toolcrib.secrets import SecretError, SecretFile

    store = SecretFile(secrets_path())
    try:
        return store if secrets_path().exists() and store.names() else None
    except SecretError as problem:
        raise Problem(str(problem)) from problem


def checkpoints_of(workspace: Path) -> Checkpoints:
    """The checkpoints of a folder. Raises Problem where none can be kept of it."""
    from toolcrib.checkpoints import CheckpointError, Checkpoints

    try:
        return Checkpoints(workspace, store=state_folder() / "checkpoints")
    except CheckpointError as problem:
        raise Problem(str(problem)) from problem


def audit_log(path: Path | None = None) -> AuditLog:
    """The user's audit log, or the log at a path. Raises Problem for a folder, or for a key that cannot be read."""
    from toolcrib.audit import AuditError, AuditLog, read_key

    if path is not None and path.is_dir():
        raise Problem(f"{path} is a folder; expected the file of an audit log")
    try:
        key = read_key(state_folder() / "audit.key")
    except (AuditError, OSError) as problem:
        raise Problem(f"the key of the audit log: {problem}") from problem
    return AuditLog(path or state_folder() / "audit.jsonl", key=key, actor=getpass.getuser(), complain=say)


def writable_audit_log() -> AuditLog:
    """The user's audit log. Raises Problem if it cannot be written, before anything is done unrecorded."""
    from toolcrib.audit import AuditError

    log = audit_log()
    try:
        log.ready()
    except AuditError as problem:
        raise Problem(f"{problem}; nothing was run. See: toolcrib audit verify {log.path}") from problem
    return log
