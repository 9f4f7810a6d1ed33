"""What a person adds to a sandbox that refused something: asked for where it was refused, remembered if they say so.

Neither autonomy nor a rule widens a sandbox. A command may have printed what looks like a refusal and is none, so
the question says what would be allowed, and only what is no way out (secrets, what other programs obey) is offered.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.access import Access, Reach
from toolcrib.errors import ToolError
from toolcrib.sandbox import Denial, Permission, Sandbox, SandboxError
from toolcrib.tools.process import Outcome
from toolcrib.tools.shell_words import visible

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

MOST = 4  # permissions that are asked for in one call
PRINTED = 1_500  # bytes of what the command said, in the question
REACH = {"write": Reach.WRITE, "read": Reach.READ, "host": Reach.CONNECT, "network": Reach.CONNECT}
NETWORK = Permission("network")


class Wider:
    """The permissions that one shell's commands were refused for want of; which of them hold, its toolbox knows."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._asked: dict[Permission, tuple[Access, ...]] = {}

    async def held(self, ctx: Context[Any], sandbox: Sandbox) -> Sandbox:
        """The sandbox with all that a person allowed for good."""
        for more, reaches in list(self._asked.items()):
            if sandbox.level.allows(more):
                continue
            try:
                await ctx.ask(*_step(more), reaches=reaches, person=True, known=True)
                sandbox = sandbox.at(sandbox.level.permitting(more))
            except (ToolError, SandboxError):
                continue
        return sandbox

    async def offered(
        self, ctx: Context[Any], sandbox: Sandbox, denial: Denial, command: str, outcome: Outcome
    ) -> Sandbox | None:
        """The sandbox with what it refused, if a person allows it; None where there is nothing to offer.

        Raises ToolError, in words for the model, where they do not, or nobody is there.
        """
        if denial.permission is None or sandbox.level.allows(denial.permission):
            return None
        for more in dict.fromkeys(
            (denial.permission, NETWORK if denial.kind == "network" else denial.permission)
        ):
            try:
                wider = sandbox.at(sandbox.level.permitting(more))
            except SandboxError:  # it knows no list of hosts
                continue
            reaches = self._reaches(more, denial)
            if denial.there:
                self._asked[more] = reaches
            shown = _shown(more, denial, command, outcome, sandbox)
            try:  # without asking about what is not there, in the words that a model hears where nobody is
                await ctx.ask(*_step(more), reaches=reaches, shown=shown, person=True, known=not denial.there)
            except ToolError as refused:  # nor does it hear where a link leads
                raise ToolError(
                    refused.message.replace(str(more), str(replace(more, target=denial.target)))
                ) from None
            return wider
        return None

    def _reaches(self, more: Permission, denial: Denial) -> tuple[Access, ...]:
        """The same for rules; where the whole network is meant, also the host that was refused."""
        if more.kind not in ("read", "write"):
            hosts = (more.target or "*", denial.permission.target if denial.permission else "")
            return tuple(Access(REACH[more.kind], host) for host in dict.fromkeys(hosts) if host)
        names = dict.fromkeys((denial.target, more.target))  # a rule may mean a link or what it leads to
        return tuple(
            Access(REACH[more.kind], self._named(name), subtree=Path(more.target).is_dir()) for name in names
        )

    def _named(self, path: str) -> str:
        return str(Path(path).relative_to(self.root)) if Path(path).is_relative_to(self.root) else path


def _step(more: Permission) -> tuple[str, list[str]]:
    """The question, the same words whichever command it is about: "always" is said of the permission."""
    return f"let commands {more}", [f"{more.kind} {more.target}".strip()]


def _shown(more: Permission, denial: Denial, command: str, outcome: Outcome, sandbox: Sandbox) -> str:
    """What happened, and what a yes would mean."""
    level = sandbox.level
    hosts = f" ({', '.join(level.hosts)})" if level.hosts else ""
    lines = ["The command has run, at least in part, and would be run again from its start:"]
    lines += [f"  {visible(line)}" for line in command.split("\n")]
    lines += ["", visible(denial.words), "What it printed, at its end:"]
    lines += [f"  {visible(line)}" for line in outcome.output.ending(PRINTED).strip().split("\n")[-8:]]
    lines += ["", f"Allowed now: files {level.files}, network {level.network}{hosts}"]
    lines.append(f"With a yes also: {visible(str(more))}{_much(more)}")
    return "\n".join(lines)


def _much(more: Permission) -> str:
    """What may not be seen at once to be part of a permission."""
    if more.kind == "network":
        return ", services of this machine too; rules about hosts cannot be kept then"
    if more.kind == "host":
        return "" if ":" in more.target else " (ports 80 and 443)"
    return ", with all below it" if Path(more.target).is_dir() else ""
