"""`toolcrib tools show`: what one tool declares."""

from __future__ import annotations

import json
from typing import Any

from toolcrib.cli.console import DONE, out
from toolcrib.cli.dependencies import load_factory
from toolcrib.cli.loaded_tools import LoadedTool, load_assembly, load_tool
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import ToolName, ToolsToUse
from toolcrib.schema import to_markdown
from toolcrib.spec import ToolSpec
from toolcrib.visible import counted, escape_invisible


def command(name: ToolName, tools: ToolsToUse) -> int:
    tool, spec = load_tool(
        load_assembly(tools.references, tools.workspace, mcp=ServersWanted(tools.mcp_files)),
        name,
        load_factory(tools.deps),
    )
    for line in _lines(tool, spec):
        out(escape_invisible(line))
    return DONE


def _lines(tool: LoadedTool, spec: ToolSpec) -> list[str]:
    lines = [spec.name + (f" ({spec.title})" if spec.title else ""), "", spec.description, ""]
    lines += [f"  {label:<11} {value}" for label, value in _facts(tool) if value]
    lines += ["", "Parameters:" + to_markdown([spec]).partition("\nParameters:")[2].rstrip()]
    if spec.output_schema is not None:
        lines += ["", "Result:", "  " + json.dumps(spec.output_schema, ensure_ascii=False)]
    return "\n".join(lines).split("\n")


def _facts(tool: LoadedTool) -> list[tuple[str, Any]]:
    """What is known of a tool, by label; an empty value is not shown."""
    facts = tool.facts
    if facts is None:
        return [("from", tool.source)]
    return [
        ("from", tool.source),
        ("effect", facts.effect.label),
        ("secrets", ", ".join(sorted(facts.secrets)) or "none"),
        ("open world", "yes" if facts.open_world else "no"),
        ("idempotent", "yes" if facts.idempotent else "no"),
        ("version", facts.version),
        ("category", facts.category),
        ("tags", ", ".join(facts.tags)),
        ("timeout", f"{facts.timeout:g} s" if facts.timeout is not None else ""),
        ("retry", f"up to {counted(facts.retry.attempts, 'attempt')}" if facts.retry is not None else ""),
        ("deferred", "yes" if facts.deferred else ""),
    ]
