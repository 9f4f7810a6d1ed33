"""JSON data as it may be shown on a terminal; `toolcrib.visible` says what of a text is spelled out."""

from __future__ import annotations

import json
from typing import Any

from toolcrib.visible import UNSHOWN as UNSHOWN
from toolcrib.visible import on_one_line as on_one_line
from toolcrib.visible import shown as shown
from toolcrib.visible import without_credentials


def value_on_one_line(value: Any, limit: int = 0) -> str:
    """JSON data on one line; strings are quoted."""
    return on_one_line(json.dumps(value, ensure_ascii=False, default=str), limit)


def arguments_on_one_line(arguments: Any, limit: int = 40) -> str:
    """Arguments as `name="value"` pairs, each value cut; values that are credentials by their name are hidden."""
    if not isinstance(arguments, dict):
        return value_on_one_line(arguments, limit)
    return "  ".join(
        f"{on_one_line(str(name))}={_cut_value(without_credentials(value, str(name)), limit)}"
        for name, value in arguments.items()
    )


def _cut_value(value: Any, limit: int) -> str:
    """A value cut before it is written out: a card that is redrawn must not read a whole file each time."""
    return value_on_one_line(value[: limit * 2] if isinstance(value, str) else value, limit)
