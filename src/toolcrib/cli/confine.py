"""The operator's hold on the sandbox: `--sandbox`, `--network`, `--allow-host` and `--outer-sandbox`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.cli.console import Problem
from toolcrib.cli.shown import shown

if TYPE_CHECKING:
    from toolcrib.command.sandbox import Level, Sandbox

DEFAULT = "workspace_write"


@dataclass(frozen=True, slots=True)
class Confinement:
    """What commands may do, in the words of the command line. `network` is "" where nothing was said of it."""

    files: str = DEFAULT
    network: str = ""
    hosts: tuple[str, ...] = ()
    outer: str = ""

    def level(self) -> Level:
        """Raises Problem for words that are none, or do not go together."""
        from toolcrib.command.sandbox import Files, Level
        from toolcrib.command.sandbox.egress import guarded

        if self.hosts and self.network:
            raise Problem(
                f"--allow-host lists the hosts that may be reached, and --network {self.network} says another thing: "
                "leave one out"
            )
        if self.network not in ("", "off", "on"):
            raise Problem(f"--network: expected off or on, got {self.network}")
        try:
            network = "allowlist" if self.hosts else self.network or "off"
            level = Level.of(self.files, network, self.hosts)
        except ValueError:
            raise Problem(f"--sandbox: expected {', '.join(Files)}; got {self.files}") from None
        try:
            guarded(self.hosts)
        except ValueError as problem:
            raise Problem(f"--allow-host: {str(problem).removeprefix('hosts: ')}") from problem
        if level.files is Files.OFF and (self.network or self.hosts or self.outer):
            raise Problem(f"--sandbox {level.files} limits nothing, the network neither: give it alone")
        return level

    def sandbox(self, workspace: Path, kept: Sequence[Path] = ()) -> Sandbox:
        """The best that works here at this level. Raises Problem where none can keep it.

        Of files in the workspace that are `kept`, bubblewrap keeps commands; others would put back what we write there.
        """
        from toolcrib.command.sandbox import Bubblewrap, SandboxError, choose
        from toolcrib.command.sandbox.files.known_paths import PROTECTED
        from toolcrib.command.sandbox.files.paths import within

        try:
            made = choose(workspace, self.level(), external=self.outer)
        except (SandboxError, ValueError) as problem:
            raise Problem(f"sandbox: {problem}") from problem
        root, paths = os.path.realpath(workspace), [os.path.realpath(path) for path in kept]
        if isinstance(made, Bubblewrap):
            inside = [os.path.relpath(path, root) for path in paths if within(path, root)]
            made.protected = (*PROTECTED, *inside)
        return made


def sandbox_lines(sandbox: Sandbox) -> list[str]:
    """What a person should know of a sandbox that is weak, missing or switched off, a line each; mostly nothing."""
    from toolcrib.command.sandbox import warnings

    return [shown(f"sandbox: {line}") for line in warnings(sandbox)]
