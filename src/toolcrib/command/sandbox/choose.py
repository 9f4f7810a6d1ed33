"""The best sandbox that works on this machine, found by trying: bubblewrap, Landlock, seatbelt; none where all fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from toolcrib.command.sandbox.bubblewrap import Bubblewrap
from toolcrib.command.sandbox.interface import Sandbox, Strength
from toolcrib.command.sandbox.landlock import Landlock
from toolcrib.command.sandbox.level import Files, Level, Network, SandboxError
from toolcrib.command.sandbox.remedies import remedy
from toolcrib.command.sandbox.seatbelt import Seatbelt
from toolcrib.command.sandbox.unconfined import ExternalSandbox, NoSandbox
from toolcrib.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from toolcrib.command.sandbox.confining import BackendOptions


@dataclass(frozen=True, slots=True)
class SandboxBackend:
    """A row of the order in which back ends are tried.

    `make` takes a workspace, a level and `BackendOptions`. `platforms` are values of `sys.platform`. `fix` tells a
    person how to make it work, for a back end of which `remedy` knows nothing.
    """

    name: str
    make: Callable[..., Sandbox]
    platforms: tuple[str, ...]
    fix: str


ORDER = (
    SandboxBackend(
        Bubblewrap.name,
        Bubblewrap,
        ("linux",),
        "install bubblewrap and allow unprivileged user namespaces",
    ),
    SandboxBackend(
        Landlock.name,
        Landlock,
        ("linux",),
        "a kernel from 5.13 on with Landlock enabled (its name in /sys/kernel/security/lsm)",
    ),
    SandboxBackend(
        Seatbelt.name,
        Seatbelt,
        ("darwin",),
        "sandbox-exec is part of macOS; a sandbox around this process may forbid a second one inside",
    ),
)
"""The back ends in the order in which they are tried."""


def choose(
    workspace: str | os.PathLike[str],
    level: Level | None = None,
    *,
    external: str = "",
    order: Sequence[SandboxBackend] = ORDER,
    trials: Path | None = None,
    **options: Unpack[BackendOptions],
) -> Sandbox:
    """The first of `order` that confines commands here.

    `external` says in words that the operator has a sandbox around this process. `trials` names a file in which to keep
    for a day, on Linux, that a back end held, so that later processes need not try it. Gives a NoSandbox where the
    level asks for none, and where nothing works; the latter is not `wanted` and says why. Raises SandboxError for an
    allowlist of hosts that no working back end can keep.
    """
    wanted = level or Level()
    if wanted.files is Files.OFF:
        return NoSandbox()
    if external:
        return ExternalSandbox(external, wanted)
    reasons: list[str] = []
    better: list[str] = []  # the reasons, each with how to make its back end work
    fixes: list[str] = []
    for backend in order:
        if sys.platform not in backend.platforms:
            continue
        if problem := why_not_working(backend, trials):
            reasons.append(f"{backend.name}: {problem}")
            fix = remedy(backend.name, problem, backend.fix)
            fixes += [fix] if fix else []
            better.append(f"{reasons[-1]}. To use it: {fix}" if fix else reasons[-1])
            continue
        try:
            return backend.make(workspace, wanted, **{**options, "why_not_better": tuple(better)})
        except SandboxError as refused:
            reasons.append(f"{backend.name}: {refused}")
            better.append(reasons[-1])
    if wanted.network is Network.ALLOWLIST:
        raise SandboxError(
            "no sandbox that works here can keep to an allowlist of hosts. " + "; ".join(reasons)
        )
    if sys.platform == "win32":
        reasons.append("there is no sandbox for Windows")
    return NoSandbox(wanted=False, why_not_better=reasons, fix="; or ".join(fixes))


def warnings(sandbox: Sandbox) -> list[str]:
    """What a person should know before commands run, a line each; nothing where everything holds that can.

    >>> print(*warnings(NoSandbox()))
    NOTHING limits commands, as was asked for: whatever is allowed can do all that you can
    """
    report, network = sandbox.report(), sandbox.level.network
    if isinstance(sandbox, NoSandbox) and sandbox.wanted:
        return ["NOTHING limits commands, as was asked for: whatever is allowed can do all that you can"]
    if not report.confines:
        lines = ["NOTHING limits commands, because no sandbox works here: each of them is asked about"]
        lines += [f"nothing better: {reason}" for reason in report.why_not_better]
        return lines + ([f"fix: {report.fix}"] if report.fix else [])
    if isinstance(sandbox, ExternalSandbox):
        return list(report.gaps[:1])
    partly = [name for name, strength in report.strengths() if strength is not Strength.ENFORCED]
    lines = []
    if network is Network.ON:
        partly.remove("network")
        lines.append("the network is on: commands may speak to everybody, and to services of this machine")
    if partly:
        weak = f"{report.backend} keeps only in part: {', '.join(partly)} (toolcrib doctor says more)"
        lines.insert(0, weak)
    return lines


def why_not_contained(sandbox: Sandbox) -> str:
    """Why commands could do more than change the workspace; "" where the sandbox keeps them in it, without network.

    >>> why_not_contained(NoSandbox())
    'no sandbox confines commands'
    """
    report, level = sandbox.report(), sandbox.level
    if not report.confines:
        return "no sandbox confines commands"
    if isinstance(sandbox, ExternalSandbox):
        return "the sandbox around this program was declared and not checked"
    if level.network is not Network.OFF:
        return "commands may use the network"
    if not Level().covers(level):
        return "commands may reach files outside the workspace"
    needed = ("writes", "network", "protected files")
    partly = [
        name for name, strength in report.strengths() if name in needed and strength is not Strength.ENFORCED
    ]
    return f"{report.backend} keeps only in part: {', '.join(partly)}" if partly else ""


_tried: dict[SandboxBackend, str] = {}


def why_not_working(backend: SandboxBackend, trials: Path | None = None) -> str:
    """Why a back end is not to be used here, or "" if it held when it was tried. Tried once in a process."""
    problem = _tried.get(backend)
    if problem is None:
        problem = _tried[backend] = _why_not_working(backend, trials)
    return problem


def _why_not_working(backend: SandboxBackend, trials: Path | None) -> str:
    def trial() -> str:
        from toolcrib.command.sandbox.probe import probe

        return "; ".join(probe(lambda workspace, home: backend.make(workspace, home=home)))

    if trials is None:
        return trial()
    from toolcrib.command.sandbox.kept_trials import unless_held

    return unless_held(trials, backend.name, trial)
