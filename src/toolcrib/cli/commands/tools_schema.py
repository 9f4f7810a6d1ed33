"""`toolcrib tools schema`: the input schema of a tool, as a provider is sent it."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from toolcrib.cli.console import DONE, Problem, out, say
from toolcrib.cli.dependencies import load_factory
from toolcrib.cli.loaded_tools import load_assembly, load_tool
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import ToolName, ToolsToUse
from toolcrib.schema import DIALECTS, to_dialect

Dialect = Annotated[
    str | None,
    typer.Option("--dialect", "-d", metavar="DIALECT", help="openai, openai-strict, anthropic, gemini, …"),
]


def command(name: ToolName, tools: ToolsToUse, dialect: Dialect = None) -> int:
    """With --dialect, as a provider is sent it; stderr tells what the dialect cannot express."""
    if dialect is not None and dialect not in DIALECTS:
        raise Problem(f"there is no schema dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    _, spec = load_tool(
        load_assembly(tools.references, tools.workspace, mcp=ServersWanted(tools.mcp_files)),
        name,
        load_factory(tools.deps),
    )
    schema: Any = spec.input_schema
    if dialect is not None:
        schema, losses = to_dialect(schema, dialect)
        for loss in losses:
            say(f"{dialect}: {loss.path or '(root)'}: {loss.keyword}: {loss.detail}")
    out(json.dumps(schema, ensure_ascii=False, indent=2))
    return DONE
