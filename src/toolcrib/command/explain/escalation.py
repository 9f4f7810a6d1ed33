"""Permission escalation: a person is asked to allow what the sandbox refused, and the answer is remembered.

Neither autonomy nor a rule widens a sandbox; only a person does. A command may print something that looks like a
refusal and is none. So the question says what would be allowed, and nothing is offered that would be a way out of the
sandbox: secrets, and files that other programs obey.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from toolcrib.access import Access, Reach
from toolcrib.command.launch.process import ProcessOutcome
from toolcrib.command.sandbox import Denial, Level, Permission, Sandbox, SandboxError
from toolcrib.dataclass import replace
from toolcrib.errors import ToolError
from toolcrib.visible import spelled_out

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

MAX_PERMISSIONS = 4  # permissions that are asked for in one call
MAX_PRINTED = 1_500  # bytes of output in the question
REACH: dict[Literal["write", "read", "host", "network"], Reach] = {
    "write": Reach.WRITE,
    "read": Reach.READ,
    "host": Reach.CONNECT,
    "network": Reach.CONNECT,
}
WHOLE_NETWORK = Permission("network")


class PermissionEscalation:
    """Asks for permissions for the commands of one shell tool. The toolbox remembers them, each beside one level."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._asked: dict[Permission, tuple[Access, ...]] = {}
        self._noted: tuple[str, set[Permission]] = ("", set())

    async def remembered(self, ctx: Context[Any], sandbox: Sandbox) -> Sandbox:
        """The sandbox with every permission that a person allowed for good at its level."""
        beside = _beside(sandbox.level)
        for patterns, when in ctx.remembered_approvals():
            permission = _permission_of(patterns, beside)
            if permission is None or sandbox.level.allows(permission):
                continue
            try:
                wider = sandbox.at(sandbox.level.with_permission(permission))
                accesses = self._asked.get(permission) or self._accesses(permission, permission.target)
                question = _question(permission, beside)
                await ctx.ask(*question, accesses=accesses, person_only=True, remembered_only=True)
            except (ToolError, SandboxError, ValueError):
                continue
            sandbox = wider
            self._note(ctx, permission, when)
        return sandbox

    def _note(self, ctx: Context[Any], permission: Permission, when: float) -> None:
        """Tells the person once in a run that a permission from an earlier run is used."""
        if not when:
            return
        if self._noted[0] != ctx.key.run:
            self._noted = (ctx.key.run, set())
        if permission not in self._noted[1]:
            self._noted[1].add(permission)
            day = time.strftime("%Y-%m-%d", time.localtime(when))
            ctx.note(f"commands may also {spelled_out(str(permission))}, as you allowed on {day}")

    async def offer(
        self,
        ctx: Context[Any],
        sandbox: Sandbox,
        level: Level,
        denial: Denial,
        command: str,
        outcome: ProcessOutcome,
    ) -> Sandbox | None:
        """Asks a person to allow what was refused; returns the wider sandbox, or None if nothing can be offered.

        `level` is the one of the call, without what was allowed beside it. Raises ToolError, in words for the model, if
        the person refuses or nobody can be asked.
        """
        if denial.permission is None or sandbox.level.allows(denial.permission):
            return None
        candidates = [denial.permission, *([WHOLE_NETWORK] if denial.kind == "network" else [])]
        for permission in dict.fromkeys(candidates):
            try:
                wider = sandbox.at(sandbox.level.with_permission(permission))
            except SandboxError:  # this back end cannot keep an allowlist of hosts
                continue
            accesses = self._accesses(permission, denial.permission.target, denial.target)
            if denial.exists:
                self._asked[permission] = accesses
            try:
                # A person is not asked about a path that does not exist, and the model hears the same words as where
                # nobody can be asked.
                await ctx.ask(
                    *_question(permission, _beside(level)),
                    accesses=accesses,
                    details=_details(permission, denial, command, outcome, sandbox),
                    person_only=True,
                    remembered_only=not denial.exists,
                )
            except ToolError as refused:
                # The model is not told where a link leads.
                named = str(replace(permission, target=denial.target))
                raise ToolError(refused.message.replace(str(permission), named)) from None
            return wider
        return None

    def _accesses(self, permission: Permission, target: str, named: str = "") -> tuple[Access, ...]:
        """A permission as accesses that rules decide on.

        For the whole network this includes the host that was refused. For a path it includes the name by which the
        command called it, because a rule may be about a link or about what the link leads to.
        """
        reach = REACH[permission.kind]
        if permission.kind not in ("read", "write"):
            hosts = dict.fromkeys((*(permission.target or "*").split(", "), *target.split(", ")))
            return tuple(Access(reach, host) for host in hosts if host)
        names = dict.fromkeys((named or permission.target, permission.target))
        subtree = Path(permission.target).is_dir()
        return tuple(Access(reach, self._relative(name), subtree=subtree) for name in names)

    def _relative(self, path: str) -> str:
        return str(Path(path).relative_to(self.root)) if Path(path).is_relative_to(self.root) else path


def _question(permission: Permission, beside: str) -> tuple[str, list[str]]:
    """The question, the same for all commands: "always" is remembered for the permission, beside its level."""
    return f"let commands {permission}", [f"{permission.kind} {permission.target}".strip(), beside]


def _beside(level: Level) -> str:
    """The level to which a permission is added. A permission that was given beside one level widens no other."""
    opened = [*(f"write {path}" for path in level.writable), *(f"read {path}" for path in level.readable)]
    return ", ".join([f"beside: files {level.files}", f"network {level.network}{_hosts(level)}", *opened])


def _hosts(level: Level) -> str:
    return f" ({', '.join(level.hosts)})" if level.hosts else ""


def _permission_of(patterns: tuple[str, ...], beside: str) -> Permission | None:
    """The permission that was remembered under such patterns, if it was given beside this level and still applies."""
    if len(patterns) != 2 or patterns[1] != beside:
        return None
    word, _, target = patterns[0].partition(" ")
    for kind in REACH:
        if str(kind) == word and (kind in ("host", "network") or Path(target).parent.is_dir()):
            return Permission(kind, target)
    return None


def _details(
    permission: Permission, denial: Denial, command: str, outcome: ProcessOutcome, sandbox: Sandbox
) -> str:
    """For the person: what happened, and what a yes would mean."""
    level = sandbox.level
    printed = outcome.output.ending(MAX_PRINTED).strip().split("\n")[-8:]
    lines = [
        "The command has run, at least in part, and would be run again from its start:",
        *(f"  {spelled_out(line)}" for line in command.split("\n")),
        "",
        spelled_out(denial.message),
        "What it printed, at its end:",
        *(f"  {spelled_out(line)}" for line in printed),
        "",
        f"Allowed now: files {level.files}, network {level.network}{_hosts(level)}",
        f"With a yes also: {spelled_out(str(permission))}{_further(permission)}",
    ]
    return "\n".join(lines)


def _further(permission: Permission) -> str:
    """What a permission includes that its name does not show."""
    if permission.kind == "network":
        return ", services of this machine too; rules about hosts cannot be kept then"
    if permission.kind == "host":
        return " (ports 80 and 443)" if any(":" not in host for host in permission.target.split(", ")) else ""
    return ", with all below it" if Path(permission.target).is_dir() else ""
