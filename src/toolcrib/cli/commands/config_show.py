"""`toolcrib config show`: the settings that count in a folder, and where each comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolcrib.cli.console import DONE, out
from toolcrib.cli.options import AsJson, WorkspaceFolder
from toolcrib.cli.tool_settings import settings_in_workspace
from toolcrib.settings.joined import SettingInEffect
from toolcrib.visible import escape_invisible, on_one_line

MAX_VALUE = 80  # characters of a value; --json gives all


def command(workspace: WorkspaceFolder = Path(), json: AsJson = False) -> int:
    """The settings are those of toolcrib.toml: your own, and the project's once you trusted it."""
    listed = settings_in_workspace(workspace).listed
    if json:
        from json import dumps

        rows = [{"key": one.key, "value": one.value, "from": one.source} for one in listed]
        out(dumps(rows, ensure_ascii=False, indent=2))
        return DONE
    keys = max(len(one.key) for one in listed)
    values = max(len(_shown(one)) for one in listed)
    for one in listed:
        out(escape_invisible(f"{one.key:<{keys}}  {_shown(one):<{values}}  {one.source}"))
    return DONE


def _shown(one: SettingInEffect) -> str:
    value: Any = one.value
    if isinstance(value, bool):
        return "true" if value else "false"
    text = ", ".join(value) or "none" if isinstance(value, tuple) else str(value)
    return on_one_line(text, MAX_VALUE)
