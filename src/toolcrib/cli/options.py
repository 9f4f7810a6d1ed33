"""Options that several commands share.

A command takes a group of options as one parameter of the class below; each field of the class is an option.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.dataclass import dataclass

WorkspaceFolder = Annotated[
    Path,
    typer.Option(
        "--workspace", "-w", metavar="FOLDER", help="The folder that the tools work in and cannot leave."
    ),
]
McpFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--mcp", metavar="FILE", help="Use the MCP servers in this file, such as .mcp.json; may be repeated."
    ),
]
ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]
ServerName = Annotated[str, typer.Argument(metavar="NAME", help="The server's name.")]
ServerOfTools = Annotated[str, typer.Argument(metavar="SERVER", help="The server's name.")]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Such as openai:NAME or http://HOST/v1#NAME; fallbacks after commas.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """The tools to load besides the built-in ones, and the folder that they work in."""

    from_: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            "-f",
            metavar="MODULE[:ATTRIBUTE]",
            help="Load your own tools, from a module or its file; may be repeated.",
        ),
    ] = None
    workspace: WorkspaceFolder = Path()
    mcp: McpFiles = None

    @property
    def mcp_files(self) -> tuple[Path, ...]:
        """What `--mcp` names."""
        return tuple(map(Path, self.mcp or ()))

    @property
    def references(self) -> tuple[str, ...]:
        """What `--from` names."""
        return tuple(self.from_ or ())


@dataclass(frozen=True, slots=True)
class ToolsToUse(ToolSelection):
    """The tools to load, and the dependencies that they are handed."""

    deps: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A function that makes the dependencies of your tools; it may be async, or yield them and close them.",
        ),
    ] = None
