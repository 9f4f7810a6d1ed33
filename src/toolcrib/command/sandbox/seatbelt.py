"""macOS: `sandbox-exec` with a profile of ours.

Not run by our own tests, for want of a Mac: the profile is tested as text, and `choose` tries it before it is used.
Processes that leave their group outlive a command here; there is no namespace and no subreaper.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from toolcrib.command.sandbox.confining import ConfiningSandbox
from toolcrib.command.sandbox.files.file_view import FileView
from toolcrib.command.sandbox.files.protected_files import ProtectedFiles
from toolcrib.command.sandbox.files.secret_files import SEARCHED
from toolcrib.command.sandbox.interface import Launch, SandboxReport, Strength
from toolcrib.command.sandbox.level import Files, Level, Network, SandboxError

PROGRAM = "/usr/bin/sandbox-exec"
MACH_SERVICES = (
    "com.apple.system.opendirectoryd.libinfo", "com.apple.system.logger", "com.apple.system.notification_center",
    "com.apple.cfprefsd.daemon", "com.apple.cfprefsd.agent", "com.apple.trustd.agent",
    "com.apple.SystemConfiguration.configd",
)  # fmt: skip
DEVICES = (
    "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/dtracehelper", "/dev/ptmx",
)  # fmt: skip


class Seatbelt(ConfiningSandbox):
    """Commands confined by macOS's own sandbox."""

    name = "seatbelt"

    def check_available(self) -> None:
        if not os.path.exists(PROGRAM):
            raise SandboxError("sandbox-exec is there on macOS only")

    def confine(self, launch: Launch, view: FileView, level: Level) -> None:
        temporary = self.scratch.path()
        text = profile(view, level, temporary, unix_sockets=self.unix_sockets)
        launch.argv = [PROGRAM, "-p", text, "--", *launch.argv]
        launch.env["TMPDIR"] = temporary
        if level.files is Files.WORKSPACE_WRITE:
            watched = (*view.links, *view.watched)
            protected = ProtectedFiles(view.workspace, watched, self.repositories.running)
            launch.on_close.append(protected.restore)

    def report(self) -> SandboxReport:
        enforced = Strength.ENFORCED
        return SandboxReport(
            self.name,
            fs_write=enforced,
            fs_read=enforced,
            network=Strength.NONE if self.level.network is Network.ON else enforced,
            processes=Strength.PARTIAL,
            protected_paths=enforced,
            known_gaps=(
                "processes that leave their group outlive a command",
                "processes, memory and disk are not limited",
                SEARCHED,
                "Apple calls sandbox-exec deprecated",
            ),
            why_not_better=self.why_not_better,
            hides_denied_paths=True,
        )


def profile(view: FileView, level: Level, temporary: str, *, unix_sockets: bool = False) -> str:
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
        # Folders on the way to something shown below them may be passed through, not listed.
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
        above = dict.fromkeys(os.path.dirname(path) for path in (*view.protected, *view.denied))
        lines.append(
            _rule("deny file-write-unlink", (path for path in above if path != view.workspace), "literal")
        )
    lines += [_rule("deny file-read* file-write*", view.denied), _rule("deny file-write*", view.read_only)]
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
