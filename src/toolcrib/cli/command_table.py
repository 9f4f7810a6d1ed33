"""The commands, in the order of `--help`, each with its summary. `COMMANDS["tools list"]` is `toolcrib tools list`.

Its module is `toolcrib.cli.commands.tools_list`, which is imported only when the command is called. The summary is
the first sentence of the command's own `--help`; the docstring of its function follows.
"""

from __future__ import annotations

GROUPS = {
    "": "Tools for language models: run an agent in a folder, call any tool by hand, check your own.",
    "tools": "Look at tools, check them, and call them by hand.",
    "policy": "See what your rules decide, before anything runs.",
    "approvals": "What you approved beyond a run.",
    "secrets": "Keep secrets for tools, by name: no value is ever shown.",
    "audit": "The log of every decision and call.",
}

COMMANDS = {
    "run": "Let a model work on a task with the tools, in a folder.",
    "demo": "Watch an agent repair a small broken project.",
    "doctor": "What is installed, what is configured, and what is missing.",
    "models": "Which providers are configured, and how to name a model.",
    "trust": "Read a project's own rules, and say whether they count.",
    "tools list": "All tools: yours, those of plugins, and the built-in ones.",
    "tools show": "What is known of one tool, and what it takes.",
    "tools check": "Compile every tool and name what is broken.",
    "tools lint": "Point out what models stumble over in your tools.",
    "tools schema": "A tool's input schema as JSON.",
    "tools call": "Call a tool by hand, along the same path as a model's call.",
    "policy explain": "Say what would become of a call, who decides it, and why.",
    "policy test": "Decide recorded calls anew, and print what would change.",
    "policy check": "Read the rules and try each on its own examples.",
    "approvals list": "What is remembered, for how long, by whom and since when.",
    "approvals revoke": "Forget approvals.",
    "secrets set": "Keep a value, which is typed unseen, or read from stdin.",
    "secrets list": "The names of what is kept, a line each.",
    "secrets remove": "Forget a value; the exit code is 1 if there is none of that name.",
    "audit verify": "Follow the chain of the log: what was changed shows.",
    "audit show": "Print the last lines: what ran or was refused, and why.",
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
