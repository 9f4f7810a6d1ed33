"""The best sandbox that works here, found by trying: bubblewrap, Landlock, seatbelt; none where all fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from toolcrib.command.sandbox import bubblewrap, landlock, seatbelt
from toolcrib.command.sandbox.external import ExternalSandbox
from toolcrib.command.sandbox.interface import Files, Level, Limits, Network, Sandbox, SandboxError, Strength
from toolcrib.command.sandbox.none import NoSandbox

if TYPE_CHECKING:
    from toolcrib.command.sandbox.egress import Resolver


@dataclass(frozen=True, slots=True)
class Backend:
    """A row of the order that is tried. `platforms` are values of `sys.platform`."""

    name: str
    make: Callable[..., Sandbox]
    platforms: tuple[str, ...]
    fix: str


ORDER = (
    Backend(bubblewrap.NAME, bubblewrap.Bubblewrap, ("linux",), bubblewrap.FIX),
    Backend(landlock.NAME, landlock.Landlock, ("linux",), landlock.FIX),
    Backend(seatbelt.NAME, seatbelt.Seatbelt, ("darwin",), seatbelt.FIX),
)
WINDOWS = "there is no sandbox for Windows"


def choose(
    workspace: str | os.PathLike[str],
    level: Level | None = None,
    *,
    external: str = "",
    order: Sequence[Backend] = ORDER,
    readable: Sequence[str | os.PathLike[str]] = (),
    protected: Sequence[str] | None = None,
    limits: Limits | None = None,
    unix_sockets: bool = False,
    resolve: Resolver | None = None,
) -> Sandbox:
    """The first of `order` that holds here; `external` says in words that the operator has one around us.

    Where nothing holds, or the level names the loud word for none, a NoSandbox; the former says why, and that it
    was not wanted. Raises SandboxError where an allowlist of hosts was asked for and what works has none.
    """
    wanted = level or Level()
    if wanted.files is Files.OFF:
        return NoSandbox()
    if external:
        return ExternalSandbox(external, wanted)
    reasons: list[str] = []
    fixes: list[str] = []
    options = {
        "readable": readable,
        "protected": protected,
        "limits": limits,
        "unix_sockets": unix_sockets,
    }
    for backend in order:
        if sys.platform not in backend.platforms:
            continue
        problem = unfit(backend)
        if problem:
            reasons.append(f"{backend.name}: {problem}")
            fixes.append(backend.fix)
            continue
        more = {"resolve": resolve} if backend.name == bubblewrap.NAME else {}
        try:
            return backend.make(workspace, wanted, why_not_better=tuple(reasons), **options, **more)
        except SandboxError as refused:
            reasons.append(f"{backend.name}: {refused}")
    if wanted.network is Network.ALLOWLIST:
        raise SandboxError(
            "no sandbox that works here can keep to an allowlist of hosts. " + "; ".join(reasons)
        )
    if sys.platform == "win32":
        reasons.append(WINDOWS)
    return NoSandbox(wanted=False, why_not_better=reasons, fix="; or ".join(fixes))


def warnings(sandbox: Sandbox) -> list[str]:
    """What a person should know before commands run, a line each; nothing where all holds that can.

    >>> print(*warnings(NoSandbox()))
    NOTHING limits commands, as was asked for: whatever is allowed can do all that you can
    """
    report, level = sandbox.report(), sandbox.level
    if isinstance(sandbox, NoSandbox) and sandbox.wanted:
        return ["NOTHING limits commands, as was asked for: whatever is allowed can do all that you can"]
    if not report.confines:
        said = ["NOTHING limits commands, for no sandbox works here: each of them is asked about"]
        said += [f"nothing better: {reason}" for reason in report.why_not_better]
        return said + ([f"fix: {report.fix}"] if report.fix else [])
    if isinstance(sandbox, ExternalSandbox):
        return list(report.gaps[:1])
    partly = [name for name, strength in report.kept() if strength is not Strength.ENFORCED]
    if level.network is Network.ON:
        partly.remove("network")
    said = [f"{report.backend} keeps only in part: {', '.join(partly)} (toolcrib doctor says more)"] * bool(
        partly
    )
    if level.network is Network.ON:
        said.append("the network is on: commands may speak to everybody, and to services of this machine")
    return said


@cache
def unfit(backend: Backend) -> str:
    """Why a back end is not to be used here, in its own words; "" if it held. Tried once in a process."""
    from toolcrib.command.sandbox.canary import failings

    return "; ".join(failings(lambda workspace, home: backend.make(workspace, home=home)))
