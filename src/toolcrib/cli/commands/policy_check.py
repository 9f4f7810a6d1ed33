"""`toolcrib policy check`: whether the rules do what their own examples say."""

from __future__ import annotations

from toolcrib.cli.console import DONE, out
from toolcrib.cli.loaded_tools import load_assembly
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import ToolSelection
from toolcrib.cli.policy_options import RulesFile
from toolcrib.cli.rule_checks import unmatched_lines, untried_examples
from toolcrib.cli.sandbox_options import SandboxOptions
from toolcrib.cli.settings_in_effect import rules_summary
from toolcrib.cli.user_files import config_folder, rules_file
from toolcrib.visible import counted, on_one_line

OPTION_FOR_ARGUMENT = "--policy"


def command(tools: ToolSelection, sandbox: SandboxOptions, policy: RulesFile = None) -> int:
    """An example is not tried if its tool does not exist here: load your own tools with --from, and fetch with
    --allow-host. A rule about a tool or server that does not exist gives a warning.
    """
    file = rules_file(policy)
    if file is None:
        out(f"no rules: {config_folder() / 'policy.toml'} does not exist")
        return DONE
    assembly = load_assembly(
        tools.references, tools.workspace, sandbox.chosen(tools.workspace), mcp=ServersWanted(tools.mcp_files)
    )
    box = assembly.toolbox(autonomy="full")
    untried = untried_examples(file, box)
    for line in unmatched_lines(file, box):
        out(f"warning: {line}")
    for number, text in untried:
        out(f"not tried, because there is no such tool now: line {number}: {on_one_line(text, 120)}")
    parts = [rules_summary(file), counted(len(file.examples), "example")]
    if untried:
        parts.append(f"{len(untried)} not tried")
    elif file.examples:
        parts.append("all decided as they say")
    out(f"{file.path}: {', '.join(parts)}")
    return DONE
