"""`toolcrib audit verify | show`: the log of what was decided and done."""

from __future__ import annotations

import getpass
import json
import os
import time
from pathlib import Path

from toolcrib.audit import AuditError, AuditLog, read_key
from toolcrib.cli.main import Problem
from toolcrib.cli.shown import on_one_line
from toolcrib.cli.tools import out, say

SHOWN_LINES = 50


def state_folder() -> Path:
    """Where what outlasts a run is kept."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "toolcrib"


def audit_log(path: Path | None = None) -> AuditLog:
    """The log of this user, or the one at a path; its key lies with the user. Raises Problem."""
    try:
        key = read_key(state_folder() / "audit.key")
    except (AuditError, OSError) as problem:
        raise Problem(f"the key of the audit log: {problem}") from problem
    return AuditLog(path or state_folder() / "audit.jsonl", key=key, actor=getpass.getuser(), complain=say)


def verify(path: Path | None) -> int:
    """Follow the log's chain; 1 if it does not hold."""
    log = audit_log(path)
    if not log.path.exists() and not log.head.exists():
        out(f"no log at {log.path}: toolcrib run --audit writes one")
        return 0
    try:
        checked = log.check()
    except OSError as problem:
        raise Problem(f"{log.path} cannot be read: {problem.strerror}") from problem
    if checked.broken is not None:
        out(f"{log.path}: {checked.broken}; {checked.lines} lines before it hold")
        return 1
    out(f"{log.path}: {checked.lines} lines hold, the last sealed {checked.seal[:16]}…")
    return 0


def show(path: Path | None, count: int, *, as_json: bool) -> int:
    """Print the last lines of the log."""
    log = audit_log(path)
    try:
        lines = log.path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise Problem(f"{log.path} cannot be read: {problem.strerror}") from problem
    for line in lines[-count:]:
        if as_json:
            out(line)
            continue
        try:
            item = json.loads(line)
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item["at"]))
            said = " ".join(str(item[name]) for name in ("outcome", "why", "arguments") if item.get(name))
            out(f"{when}  {item['event']:<8} {on_one_line(item['tool'])}  {on_one_line(said, 120)}")
        except (ValueError, KeyError, TypeError):
            out(f"(not a line of this log) {on_one_line(line, 100)}")
    return 0
