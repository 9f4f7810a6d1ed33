"""What a person adds to a sandbox that refused something: asked for where it was refused, remembered if they say so.

Neither autonomy nor a rule widens a sandbox. A command may have printed what looks like a refusal and is none, so
the question says what would be allowed, and only what is no way out (secrets, what other programs obey) is offered.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.access import Access, Reach
from toolcrib.command.launch.process import Outcome
from toolcrib.command.sandbox import Denial, Level, Permission, Sandbox, SandboxError
from toolcrib.errors import ToolError
from toolcrib.tools.shell_words import visible

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

MOST = 4  # permissions that are asked for in one call
PRINTED = 1_500  # bytes of what the command said, in the question
REACH = {"write": Reach.WRITE, "read": Reach.READ, "host": Reach.CONNECT, "network": Reach.CONNECT}
NETWORK = Permission("network")


class Wider:
    """The permissions that a person gave to one shell's commands, each beside one level; its toolbox keeps them."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._asked: dict[Permission, tuple[Access, ...]] = {}
        self._told: tuple[str, set[Permission]] = ("", set())

    async def held(self, ctx: Context[Any], sandbox: Sandbox) -> Sandbox:
        """The sandbox with all that a person allowed for good beside its level, before a command begins."""
        beside = _beside(sandbox.level)
        for patterns, when in ctx.remembered_approvals():
            more = _permission(patterns, beside)
            if more is None or sandbox.level.allows(more):
                continue
            try:
                wider = sandbox.at(sandbox.level.with_permission(more))
                reaches = self._asked.get(more) or self._reaches(more, more.target)
                await ctx.ask(*_step(more, beside), accesses=reaches, person_only=True, remembered_only=True)
            except (ToolError, SandboxError, ValueError):
                continue
            sandbox = wider
            self._tell(ctx, more, when)
        return sandbox

    def _tell(self, ctx: Context[Any], more: Permission, when: float) -> None:
        """Once in a run, of what was allowed before it."""
        if not when:
            return
        if self._told[0] != ctx.key.run:
            self._told = (ctx.key.run, set())
        if more not in self._told[1]:
            self._told[1].add(more)
            day = time.strftime("%Y-%m-%d", time.localtime(when))
            ctx.note(f"commands may also {visible(str(more))}, as you allowed on {day}")

    async def offered(
        self,
        ctx: Context[Any],
        sandbox: Sandbox,
        level: Level,
        denial: Denial,
        command: str,
        outcome: Outcome,
    ) -> Sandbox | None:
        """The sandbox with what it refused, if a person allows it; None where there is nothing to offer.

        `level` is that of the run, before anything was allowed beside it.

        Raises ToolError, in words for the model, where they do not, or nobody is there.
        """
        if denial.permission is None or sandbox.level.allows(denial.permission):
            return None
        for more in dict.fromkeys(
            (denial.permission, NETWORK if denial.kind == "network" else denial.permission)
        ):
            try:
                wider = sandbox.at(sandbox.level.with_permission(more))
            except SandboxError:  # it knows no list of hosts
                continue
            reaches = self._reaches(more, denial.permission.target, denial.target)
            if denial.exists:
                self._asked[more] = reaches
            shown = _shown(more, denial, command, outcome, sandbox)
            try:  # without asking about what is not there, in the words that a model hears where nobody is
                await ctx.ask(
                    *_step(more, _beside(level)),
                    accesses=reaches,
                    details=shown,
                    person_only=True,
                    remembered_only=not denial.exists,
                )
            except ToolError as refused:  # nor does it hear where a link leads
                raise ToolError(
                    refused.message.replace(str(more), str(replace(more, target=denial.target)))
                ) from None
            return wider
        return None

    def _reaches(self, more: Permission, meant: str, named: str = "") -> tuple[Access, ...]:
        """The same for rules; where the whole network is meant, also the host that was refused."""
        if more.kind not in ("read", "write"):
            hosts = (more.target or "*", meant)
            return tuple(Access(REACH[more.kind], host) for host in dict.fromkeys(hosts) if host)
        names = dict.fromkeys(
            (named or more.target, more.target)
        )  # a rule may mean a link or what it leads to
        return tuple(
            Access(REACH[more.kind], self._named(name), subtree=Path(more.target).is_dir()) for name in names
        )

    def _named(self, path: str) -> str:
        return str(Path(path).relative_to(self.root)) if Path(path).is_relative_to(self.root) else path


def _step(more: Permission, beside: str) -> tuple[str, list[str]]:
    """The question, in the same words for all commands: "always" is said of the permission, beside its level."""
    return f"let commands {more}", [f"{more.kind} {more.target}".strip(), beside]


def _beside(level: Level) -> str:
    """The level that a permission is added to: what was allowed beside one does not widen another."""
    hosts = f" ({', '.join(level.hosts)})" if level.hosts else ""
    opened = [*(f"write {path}" for path in level.writable), *(f"read {path}" for path in level.readable)]
    return ", ".join([f"beside: files {level.files}", f"network {level.network}{hosts}", *opened])


def _permission(patterns: tuple[str, ...], beside: str) -> Permission | None:
    """What was kept under such patterns, if that was allowed beside this level, and can still be given."""
    if len(patterns) != 2 or patterns[1] != beside:
        return None
    kind, _, target = patterns[0].partition(" ")
    if kind not in REACH or (kind in ("read", "write") and not Path(target).parent.is_dir()):
        return None
    return Permission(kind, target)


def _shown(more: Permission, denial: Denial, command: str, outcome: Outcome, sandbox: Sandbox) -> str:
    """What happened, and what a yes would mean."""
    level = sandbox.level
    hosts = f" ({', '.join(level.hosts)})" if level.hosts else ""
    lines = ["The command has run, at least in part, and would be run again from its start:"]
    lines += [f"  {visible(line)}" for line in command.split("\n")]
    lines += ["", visible(denial.message), "What it printed, at its end:"]
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
