"""`toolcrib audit show`: the last lines of the audit log."""

from __future__ import annotations

import re
import time
from collections import deque
from json import loads
from typing import Annotated, Any

import typer

from toolcrib.cli.audit_reading import LogFile, check_log
from toolcrib.cli.console import DONE, MISUSED, Problem, out, say
from toolcrib.cli.options import AsJson
from toolcrib.cli.user_files import audit_log
from toolcrib.credentials import arguments_on_one_line, without_credentials
from toolcrib.visible import escape_invisible, on_one_line

ARGUMENTS = 80  # characters of a call's arguments in a line
MAX_LINE = 1_000_000  # bytes that are read as one line: what is no log may have no line breaks
REASON = 100  # characters of a reason
PAIR = re.compile(r'"([^"\\]{1,80})"\s*:\s*"((?:[^"\\]|\\.)*)"?')  # a name and a string in JSON that was cut

Count = Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="How many lines.")]


def command(log: LogFile = None, count: Count = 50, json: AsJson = False) -> int:
    """A line says what ran or was refused, why, for whom, and how it ended. The exit code is 2 for a changed log."""
    opened = audit_log(log)
    checked = check_log(opened)
    try:
        with opened.path.open("rb") as file:
            lines = deque(iter(lambda: file.readline(MAX_LINE), b""), maxlen=count)
    except OSError as problem:
        raise Problem(f"{opened.path} cannot be read: {problem.strerror}") from problem
    for data in lines:
        line = data.decode("utf-8", "replace").removesuffix("\n")
        out(escape_invisible(line) if json else _readable(line))
    if checked.broken is not None:
        say(f"this log does not hold, so do not trust it: {opened.path}: {checked.broken}")
        return MISUSED
    return DONE


def _readable(line: str) -> str:
    """A line of the log for a person. Secrets in it were masked when it was written."""
    try:
        item = loads(line)
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item["at"]))
        parts = [f"{when}  {on_one_line(str(item['event']), 20):<8} {on_one_line(str(item['tool']))}"]
        parts += [on_one_line(str(item["outcome"]), 40)] if item.get("outcome") else []
        parts += [_arguments(str(item["arguments"]))] if item.get("arguments") else []
        parts += [on_one_line(str(item["why"]), REASON)] if item.get("why") else []
        if item.get("by") and item["event"] != "ended":
            parts.append(f"for {on_one_line(str(item['by']), 40)}")
        return "  ".join(parts)
    except (ValueError, KeyError, TypeError, OverflowError):
        return f"(not a line of this log) {on_one_line(line, 100)}"


def _arguments(text: str) -> str:
    """The beginning of a call's arguments; a value is hidden if its name says that it is a credential."""
    try:
        value: Any = loads(text)
    except ValueError:  # cut, or not JSON at all
        return on_one_line(PAIR.sub(_pair, text), ARGUMENTS)
    return (
        arguments_on_one_line(value, ARGUMENTS)
        if isinstance(value, dict | list)
        else on_one_line(text, ARGUMENTS)
    )


def _pair(match: re.Match[str]) -> str:
    (value,) = without_credentials({match[1]: match[2]}).values()
    return match[0] if value == match[2] else f'"{match[1]}": "{value}"'
