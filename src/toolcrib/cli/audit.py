"""`toolcrib audit verify | show`: the log of what was decided and done."""

from __future__ import annotations

import getpass
import json
import os
import re
import time
from pathlib import Path
from typing import Any

from toolcrib.audit import AuditError, AuditLog, LogCheck, read_key
from toolcrib.cli.console import Problem, out, say
from toolcrib.cli.shown import on_one_line
from toolcrib.visible import arguments_shown, without_credentials

ARGUMENTS = 80  # characters of a call's arguments in a line
WHY = 100
PAIR = re.compile(r'"([^"\\]{1,80})"\s*:\s*"((?:[^"\\]|\\.)*)"?')  # of JSON that was cut


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


def log_of_run() -> AuditLog:
    """The log of this user, which can be written. Raises Problem before anything is done unrecorded."""
    log = audit_log()
    try:
        log.ready()
    except AuditError as problem:
        raise Problem(f"{problem}; nothing was run. See: toolcrib audit verify {log.path}") from problem
    return log


def verify(path: Path | None) -> int:
    """Follow the log's chain; 1 if it does not hold. Raises Problem where there is none."""
    log = audit_log(path)
    checked = _checked(log)
    if checked.broken is not None:
        out(f"{log.path}: {checked.broken}; {checked.lines} lines before it hold")
        return 1
    out(f"{log.path}: {checked.lines} lines hold, the last sealed {checked.seal[:16]}…")
    return 0


def show(path: Path | None, count: int, *, as_json: bool) -> int:
    """Print the last lines of the log; 2 if it does not hold."""
    log = audit_log(path)
    checked = _checked(log)
    try:
        lines = log.path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise Problem(f"{log.path} cannot be read: {problem.strerror}") from problem
    for line in lines[-count:]:
        out(line if as_json else _on_a_line(line))
    if checked.broken is not None:
        say(f"this log does not hold, and may not be what was written: {log.path}: {checked.broken}")
        return 2
    return 0


def _checked(log: AuditLog) -> LogCheck:
    if not log.path.exists():
        there = f", and its head {log.head.name} is: somebody removed the log" if log.head.exists() else ""
        raise Problem(f"there is no log at {log.path}{there}. toolcrib run --audit writes one")
    try:
        return log.check()
    except (OSError, AuditError) as problem:
        words = getattr(problem, "strerror", "") or problem
        raise Problem(f"{log.path} cannot be read: {words}") from problem


def _on_a_line(line: str) -> str:
    """Of a line of the log: when, what, who, and of what; what stands in it was masked when it was written."""
    try:
        item = json.loads(line)
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item["at"]))
        said = [f"{when}  {item['event']:<8} {on_one_line(str(item['tool']))}"]
        said += [on_one_line(str(item["outcome"]), 40)] if item.get("outcome") else []
        said += [_arguments(str(item["arguments"]))] if item.get("arguments") else []
        said += [on_one_line(str(item["why"]), WHY)] if item.get("why") else []
        if item.get("by") and item["event"] != "ended":
            said.append(f"for {on_one_line(str(item['by']), 40)}")
        return "  ".join(said)
    except (ValueError, KeyError, TypeError, OverflowError):
        return f"(not a line of this log) {on_one_line(line, 100)}"


def _arguments(text: str) -> str:
    """The beginning of a call's arguments, without what stands under the name of a credential."""
    try:
        value: Any = json.loads(text)
    except ValueError:  # cut, or not JSON at all
        return on_one_line(PAIR.sub(_pair, text), ARGUMENTS)
    return (
        arguments_shown(value, ARGUMENTS) if isinstance(value, dict | list) else on_one_line(text, ARGUMENTS)
    )


def _pair(match: re.Match[str]) -> str:
    (value,) = without_credentials({match[1]: match[2]}).values()
    return match[0] if value == match[2] else f'"{match[1]}": "{value}"'
