"""How JSON data, numbers and times are worded on a terminal; `toolcrib.visible` escapes control characters."""

from __future__ import annotations

import json
import time
from typing import Any

from toolcrib.credentials import without_credentials
from toolcrib.visible import on_one_line

DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}  # by the first sign of a line


def local_minute(seconds: float) -> str:
    """A time, to the minute, where the person is."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def value_on_one_line(value: Any, limit: int = 0) -> str:
    """JSON data on one line; strings are quoted."""
    return on_one_line(json.dumps(value, ensure_ascii=False, default=str), limit)


def arguments_as_pairs(arguments: Any, limit: int = 40) -> str:
    """Arguments as `name="value"` pairs, each value cut; a value is hidden if its name says that it is a credential."""
    if not isinstance(arguments, dict):
        return value_on_one_line(arguments, limit)
    return "  ".join(
        f"{on_one_line(str(name))}={_cut_value(without_credentials(value, str(name)), limit)}"
        for name, value in arguments.items()
    )


def _cut_value(value: Any, limit: int) -> str:
    """A value, cut before it is formatted: a card that is redrawn must not read a whole file each time."""
    return value_on_one_line(value[: limit * 2] if isinstance(value, str) else value, limit)
