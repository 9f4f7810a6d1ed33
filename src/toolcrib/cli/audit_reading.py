"""Reading an audit log: the argument that names it, and the check of its chain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.audit import AuditError, AuditLog, LogCheck
from toolcrib.cli.console import Problem

LogFile = Annotated[Path | None, typer.Argument(metavar="LOG", help="If left out, your own log.")]


def check_log(log: AuditLog) -> LogCheck:
    """Follow the log's chain. Raises Problem for a log that is missing or cannot be read."""
    if not log.path.exists():
        there = f", and its head {log.head.name} is: somebody removed the log" if log.head.exists() else ""
        raise Problem(f"there is no log at {log.path}{there}. toolcrib run --audit writes one")
    try:
        return log.check()
    except (OSError, AuditError) as problem:
        words = getattr(problem, "strerror", "") or problem
        raise Problem(f"{log.path} cannot be read: {words}") from problem
