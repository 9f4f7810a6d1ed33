"""`toolcrib config schema`: the JSON Schema of toolcrib.toml, for editors."""

from __future__ import annotations

from json import dumps

from toolcrib.cli.console import DONE, out
from toolcrib.settings.model import ToolSettings


def command() -> int:
    """Editors with a TOML language server complete and check the file by it."""
    out(dumps(ToolSettings.model_json_schema(), ensure_ascii=False, indent=2))
    return DONE
