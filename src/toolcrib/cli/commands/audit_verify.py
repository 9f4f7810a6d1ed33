"""`toolcrib audit verify`: whether the audit log is as it was written."""

from __future__ import annotations

from toolcrib.cli.audit_reading import LogFile, check_log
from toolcrib.cli.console import DONE, NOT_DONE, out
from toolcrib.cli.user_files import audit_log
from toolcrib.visible import counted


def command(log: LogFile = None) -> int:
    """Lines that were changed, removed or moved are found. The exit code is 1 if there are any, and 2 without a log."""
    opened = audit_log(log)
    checked = check_log(opened)
    held = f"{counted(checked.lines, 'line')} {'holds' if checked.lines == 1 else 'hold'}"
    if checked.broken is not None:
        out(f"{opened.path}: {checked.broken}; before it, {held}")
        return NOT_DONE
    out(f"{opened.path}: {held}; the last seal is {checked.seal[:16]}…")
    return DONE
