"""`toolcrib mcp remove`: an MCP server is taken out of the user's or the project's `toolcrib.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.commands.mcp_add import file_to_change
from toolcrib.cli.console import DONE, Problem, out
from toolcrib.cli.mcp_settings_text import without_server
from toolcrib.cli.options import ServerName, WorkspaceFolder
from toolcrib.private_files import replace_private_file
from toolcrib.text_file import read_text_file
from toolcrib.visible import on_one_line

Project = Annotated[bool, typer.Option("--project", help="Remove it from the project's settings.")]


def command(name: ServerName, project: Project = False, workspace: WorkspaceFolder = Path()) -> int:
    """Servers in .mcp.json and other programs' files are not changed."""
    path = file_to_change(workspace if project else None)
    try:
        made = without_server(read_text_file(path) if path.exists() else "", name)
        if made.strip():
            replace_private_file(path, made.encode())
        else:  # as it was before its first server was added
            path.unlink()
    except Problem as problem:
        raise Problem(
            f"{path}: {on_one_line(problem.message)}; `toolcrib mcp list` shows where servers are"
        ) from None
    except (OSError, ValueError) as problem:
        raise Problem(f"{path} cannot be changed: {getattr(problem, 'strerror', None) or problem}") from None
    out(on_one_line(f"{name} is removed from {path}"))
    return DONE
