# ruff: noqa: PTH110, PTH120 - paths are text and descriptors here
"""macOS: `sandbox-exec` with a profile of ours.

Not run by our own tests, which have no Mac: the profile is tested as text, and `choose` tries it before it is used.
Processes that leave their group outlive a command here; there is no namespace and no subreaper.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from toolcrib.command.sandbox.explain import explained
from toolcrib.command.sandbox.interface import (
    Denial,
    Files,
    Launch,
    Level,
    Limits,
    Network,
    SandboxError,
    SandboxReport,
    Strength,
)
from toolcrib.command.sandbox.narrow import narrowed
from toolcrib.command.sandbox.places import View, opened, rooms, taken, view_of
from toolcrib.command.sandbox.protect import Protection
from toolcrib.command.sandbox.repositories import Repositories
from toolcrib.command.sandbox.scratch import Scratch
from toolcrib.errors import listed

NAME = "seatbelt"
FIX = "sandbox-exec is part of macOS; a sandbox around this process may forbid a second one inside"
PROGRAM = "/usr/bin/sandbox-exec"
MACH_SERVICES = (
    "com.apple.system.opendirectoryd.libinfo", "com.apple.system.logger", "com.apple.system.notification_center",
    "com.apple.cfprefsd.daemon", "com.apple.cfprefsd.agent", "com.apple.trustd.agent",
    "com.apple.SystemConfiguration.configd",
)  # fmt: skip
DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/dtracehelper",
    "/dev/ptmx",
)


class Seatbelt:
    """Commands confined by macOS's own sandbox. The parameters are `Bubblewrap`'s."""

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        level: Level | None = None,
        *,
        readable: Sequence[str | os.PathLike[str]] = (),
        protected: Sequence[str] | None = None,
        limits: Limits | None = None,
        unix_sockets: bool = False,
        home: str | None = None,
        why_not_better: Sequence[str] = (),
    ) -> None:
        self.level = _kept(level or Level())
        self.workspace = os.path.realpath(workspace)
        if self.workspace == "/":
            raise SandboxError("the workspace is /, so there is nothing outside it to protect")
        self.home = home
        self.readable = tuple(os.fspath(path) for path in listed("readable", readable))
        self.protected = None if protected is None else listed("protected", protected)
        self.limits = limits or Limits()
        self.unix_sockets = unix_sockets
        self.why_not_better = tuple(why_not_better)
        self.scratch = Scratch()
        self.repositories = Repositories()

    def at(self, level: Level) -> Seatbelt:
        other = copy(self)
        other.level = _kept(level)
        return other

    def view(self, level: Level | None = None) -> View:
        view = view_of(
            self.workspace,
            home=self.home,
            readable=self.readable,
            **({} if self.protected is None else {"protected": self.protected}),
        )
        level = level or self.level
        return taken(opened(view, level.writable, level.readable), level)

    def launch(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], level: Level | None = None
    ) -> Launch:
        level = narrowed(self.level, level)
        if not os.path.exists(PROGRAM):
            raise SandboxError("sandbox-exec is there on macOS only")
        view = self.view(level)
        temporary = self.scratch.path()
        text = profile(view, level, temporary, unix_sockets=self.unix_sockets)
        launch = Launch([PROGRAM, "-p", text, "--", *argv], {**env, "TMPDIR": temporary}, cwd)
        launch.closing += self.repositories.watch(rooms(view, level))
        if level.files is Files.WORKSPACE_WRITE:
            launch.closing.append(Protection(view.workspace, view.watched).restore)
        return launch

    def explain(self, returncode: int | None, output: str, launch: Launch) -> Denial | None:
        return explained(returncode, output, launch, self.view, self.level, conceals=False)

    def report(self) -> SandboxReport:
        gaps = (
            "processes that leave their group outlive a command",
            "processes, memory and disk are not limited",
            "Apple calls sandbox-exec deprecated",
        )
        enforced = Strength.ENFORCED
        network = Strength.NONE if self.level.network is Network.ON else enforced
        return SandboxReport(
            NAME,
            enforced,
            enforced,
            network,
            Strength.PARTIAL,
            enforced,
            gaps,
            self.why_not_better,
            withholds=True,
        )


def _kept(level: Level) -> Level:
    if level.files is Files.OFF:
        raise SandboxError("seatbelt confines; for no sandbox at all use NoSandbox")
    if level.network is Network.ALLOWLIST:
        raise SandboxError("seatbelt cannot keep to an allowlist of hosts here; bubblewrap, on Linux, can")
    return level


def profile(view: View, level: Level, temporary: str, *, unix_sockets: bool = False) -> str:
    """The profile as text; where several rules match, the last one counts."""
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork process-exec)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow ipc-posix-sem)",
        "(allow pseudo-tty)",
        f"(allow mach-lookup {' '.join(f'(global-name {quoted(name)})' for name in MACH_SERVICES)})",
        "(allow file-read*)",
        _rule("deny file-read*", view.hidden),
        # The way to what is shown below something hidden: to pass, not to list.
        _rule("allow file-read-metadata", view.hidden),
        _rule("allow file-read*", (*view.shown, view.workspace, temporary)),
        _rule("deny file-read*", (path for path in view.hidden if path.startswith(view.workspace + "/"))),
        _rule("allow file-write* file-ioctl", DEVICES, kind="literal"),
        _rule("allow file-write*", (temporary, *(path for path in level.writable if path in view.shown))),
    ]
    if level.files is Files.WORKSPACE_WRITE:
        lines.append(_rule("allow file-write*", (view.workspace,)))
        lines.append(_rule("deny file-write*", view.protected))
        # A folder above something protected is not to be renamed away with it.
        above = dict.fromkeys(os.path.dirname(path) for path in (*view.protected, *view.withheld))
        lines.append(
            _rule("deny file-write-unlink", (path for path in above if path != view.workspace), "literal")
        )
    lines += [_rule("deny file-read* file-write*", view.withheld), _rule("deny file-write*", view.kept)]
    if level.network is Network.ON:
        lines.append("(allow network* system-socket)")
        if not unix_sockets:
            lines.append("(deny network-outbound (remote unix-socket))")
            lines.append('(allow network-outbound (literal "/private/var/run/mDNSResponder"))')
    elif unix_sockets:
        lines.append("(allow network* (local unix-socket) (remote unix-socket))")
    return "\n".join(line for line in lines if line)


def _rule(action: str, paths: Iterable[str], kind: str = "subpath") -> str:
    named = " ".join(f"({kind} {quoted(path)})" for path in paths)
    return f"({action} {named})" if named else ""


def quoted(text: str) -> str:
    """A string of the profile's language. Raises SandboxError for what cannot stand in one."""
    if "\0" in text or "\n" in text or "\r" in text:
        raise SandboxError("a path with a line break cannot be written into a profile")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
