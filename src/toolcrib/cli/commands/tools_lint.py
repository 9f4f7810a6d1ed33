"""`toolcrib tools lint`: what models will stumble over in the schemas of tools."""

from __future__ import annotations

from json import dumps

from toolcrib.cli.console import DONE, NOT_DONE, out, say
from toolcrib.cli.dependencies import load_factory
from toolcrib.cli.loaded_tools import load_assembly, load_tools
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import AsJson, ToolsToUse
from toolcrib.schema import lint
from toolcrib.visible import counted, escape_invisible


def command(tools: ToolsToUse, json: AsJson = False) -> int:
    """For example short descriptions and undocumented parameters. The exit code is 1 if anything is found."""
    loaded = load_tools(
        load_assembly(tools.references, tools.workspace, mcp=ServersWanted(tools.mcp_files)),
        load_factory(tools.deps),
    )
    findings = [finding for tool in loaded if tool.spec is not None for finding in lint(tool.spec)]
    if json:
        rows = [
            {"tool": item.tool, "path": item.path, "code": item.code, "message": item.message}
            for item in findings
        ]
        out(dumps(rows, ensure_ascii=False, indent=2))
    else:
        for item in findings:
            out(escape_invisible(f"{item.tool}{item.path}: {item.code}: {item.message}"))
        say(f"{counted(len(loaded), 'tool')}, {counted(len(findings), 'finding')}")
    return NOT_DONE if findings else DONE
