"""`toolcrib audit verify`: whether the audit log is as it was written."""

from __future__ import annotations

from toolcrib.cli.audit_reading import LogFile, check_log
from toolcrib.cli.console import DONE, NOT_DONE, out
from toolcrib.cli.user_files import audit_log


def command(log: LogFile = None) -> int:
    """Lines that were changed, removed or moved are found. The exit code is 1 if there are any, and 2 without a log."""
    opened = audit_log(log)
    checked = check_log(opened)
    if checked.broken is not None:
        out(f"{opened.path}: {checked.broken}; {checked.lines} lines before it hold")
        return NOT_DONE
    out(f"{opened.path}: {checked.lines} lines hold; the last seal is {checked.seal[:16]}…")
    return DONE
