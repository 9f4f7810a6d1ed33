"""`toolcrib tools list`: all tools, a line each."""

from __future__ import annotations

import shutil
import sys
from json import dumps
from typing import Any

from toolcrib.cli.console import DONE, out
from toolcrib.cli.dependencies import load_factory
from toolcrib.cli.loaded_tools import LoadedTool, load_assembly, load_tools
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import AsJson, ToolsToUse
from toolcrib.visible import on_one_line

NARROWEST = 30  # columns of a description below which the line is split in two


def command(tools: ToolsToUse, json: AsJson = False) -> int:
    loaded = load_tools(
        load_assembly(tools.references, tools.workspace, mcp=ServersWanted(tools.mcp_files)),
        load_factory(tools.deps),
    )
    if json:
        _print_json(loaded)
    else:
        _print_lines(loaded)
    return DONE


def _print_lines(tools: list[LoadedTool]) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    names = max((len(tool.name) for tool in tools), default=0)
    sources = max((len(tool.source) for tool in tools), default=0)
    for tool in tools:
        head = f"{tool.name:<{names}}  {tool.effect:<11}  {tool.source:<{sources}}  "
        if len(head) + NARROWEST <= width:
            out(on_one_line(head + _first_sentence(tool), width))
        else:
            out(on_one_line(f"{tool.name}  ({tool.effect}, {tool.source})", width))
            out("  " + on_one_line(_first_sentence(tool), width - 2))


def _first_sentence(tool: LoadedTool) -> str:
    if tool.problem:
        return f"BROKEN: {tool.problem}"
    text = " ".join((tool.spec.description if tool.spec is not None else "").split())
    sentence, stop, _ = text.partition(". ")
    return sentence + stop.strip()


def _print_json(tools: list[LoadedTool]) -> None:
    out(dumps([_as_data(tool) for tool in tools], ensure_ascii=False, indent=2))


def _as_data(tool: LoadedTool) -> dict[str, Any]:
    spec = tool.spec
    return {
        "name": tool.name,
        "from": tool.source,
        "effect": tool.effect,
        "problem": tool.problem,
        "title": spec.title if spec is not None else "",
        "description": spec.description if spec is not None else "",
        "input_schema": spec.input_schema if spec is not None else None,
        "output_schema": spec.output_schema if spec is not None else None,
        "annotations": spec.annotations if spec is not None else {},
    }
