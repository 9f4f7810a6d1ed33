"""The commands, in the order of `--help`, each with its summary. `COMMANDS["tools list"]` is `toolcrib tools list`.

Its module is `toolcrib.cli.commands.tools_list`, which is imported only when the command is called. The summary is
the first sentence of the command's own `--help`; the docstring of its function follows.
"""

from __future__ import annotations

GROUPS = {
    "": "Tools for language models: run an agent in a folder, call a tool by hand, check your own tools.",
    "tools": "Look at tools, check them, and call them by hand.",
    "mcp": "Use MCP servers, whose tools are then yours, and serve your own tools.",
    "schema": "See what servers make of a schema for an answer.",
    "config": "See and check the settings of toolcrib.toml.",
    "policy": "See what your rules decide, before anything runs.",
    "approvals": "List and revoke the approvals that you gave beyond a run.",
    "transcript": "Check the transcripts of runs, and mend those that were cut.",
    "secrets": "Store secrets for tools by name; no value is ever shown.",
    "audit": "Read and check the log of all decisions and calls.",
}

COMMANDS = {
    "run": "Let a model work on a task in a folder, with the tools.",
    "extract": "Read values of a type out of texts, pictures and documents, as JSON lines.",
    "undo": "Put the files of a folder back as they were before a run.",
    "demo": "Watch an agent repair a small broken project.",
    "doctor": "Check what is installed, what is configured, and what is missing.",
    "models": "List the providers that are configured, and how to name a model.",
    "trust": "Read the rules, settings, tools, skills and MCP servers of a project, and decide whether they count.",
    "tools list": "List all tools: yours, those of plugins, and the built-in ones.",
    "tools show": "Show what a tool declares, and which parameters it takes.",
    "tools check": "Compile every tool, and name those that are broken.",
    "tools lint": "Find what models are likely to misunderstand in your tools.",
    "tools schema": "Print a tool's input schema as JSON.",
    "tools call": "Call a tool by hand, along the same path as a model's call.",
    "mcp add": "Add an MCP server to your settings.",
    "mcp list": "List the MCP servers that count here, and what is known of each.",
    "mcp remove": "Remove an MCP server from your settings.",
    "mcp test": "Start MCP servers, list their tools anew, and say what is wrong with them.",
    "mcp login": "Log in to a remote MCP server.",
    "mcp logout": "Log out of a remote MCP server, and revoke its tokens.",
    "mcp tools": "List the tools of MCP servers, as far as they are known; starts nothing.",
    "mcp serve": "Serve tools as an MCP server, for Claude, Cursor, VS Code or another agent.",
    "mcp approve": "Read tools whose definition changed or is suspicious, and approve them.",
    "mcp call": "Call a tool of an MCP server by hand, by its name at the server.",
    "schema lower": "Show the fields that hold a server's answer to a schema, and what they guarantee.",
    "config show": "List the settings that count here, and where each comes from.",
    "config check": "Check your settings and the project's, and name all that is wrong.",
    "config schema": "Print the JSON Schema of toolcrib.toml, for editors.",
    "policy explain": "Say what would happen to a call, who decides it, and why.",
    "policy test": "Decide recorded calls again, and print what would change.",
    "policy check": "Check your rules against their own examples.",
    "approvals list": "List what you approved, for how long, who approved it and when.",
    "approvals revoke": "Revoke approvals.",
    "transcript check": "Say what is wrong with a transcript, line by line.",
    "transcript mend": "Write a valid transcript of what can be read of a broken one.",
    "secrets set": "Store a secret; its value is typed unseen, or read from stdin.",
    "secrets list": "List the names of the stored secrets.",
    "secrets remove": "Delete a secret.",
    "audit verify": "Check that nobody has changed the audit log.",
    "audit show": "Print the last lines of the audit log.",
}


def names_in(group: str) -> dict[str, str]:
    """The commands and groups directly in a group, each with its summary; "" is `toolcrib` itself.

    >>> list(names_in("approvals"))
    ['list', 'revoke']
    """
    rows = {**COMMANDS, **{name: text for name, text in GROUPS.items() if name}}
    return {
        path.rpartition(" ")[2]: summary for path, summary in rows.items() if path.rpartition(" ")[0] == group
    }
