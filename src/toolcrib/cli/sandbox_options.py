"""The options of the sandbox that commands run in, and the sandbox that they ask for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.console import Problem
from toolcrib.command.sandbox.level import Files, Level, SandboxError
from toolcrib.dataclass import dataclass
from toolcrib.private_files import state_folder
from toolcrib.visible import escape_invisible

if TYPE_CHECKING:
    from toolcrib.command.sandbox import Sandbox


class NetworkSwitch(StrEnum):
    """Whether commands may use the network."""

    OFF = "off"
    ON = "on"


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What commands may change and reach. `network` is None where the option was left out."""

    sandbox: Annotated[
        Files,
        typer.Option(
            "--sandbox",
            help="What commands may change: nothing, the workspace, or everything that you can.",
        ),
    ] = Files.WORKSPACE_WRITE
    network: Annotated[
        NetworkSwitch | None,
        typer.Option("--network", help="Whether commands may use the network; off if left out."),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="HOST[:PORT]", help="A host that commands may reach; may be repeated."
        ),
    ] = None
    outer_sandbox: Annotated[
        str,
        typer.Option(
            "--outer-sandbox",
            metavar="WORDS",
            help="Describe the sandbox that toolcrib already runs in; it then makes none of its own.",
        ),
    ] = ""

    def level(self) -> Level:
        """The sandbox level that the options ask for. Raises Problem for options that contradict each other."""
        hosts = tuple(self.allow_host or ())
        if hosts and self.network:
            raise Problem(
                f"--allow-host lists the hosts that may be reached, and --network {self.network} contradicts it: "
                "leave one out"
            )
        level = Level.of(self.sandbox, "allowlist" if hosts else self.network or "off", hosts)
        try:
            if hosts:
                from toolcrib.command.sandbox.egress import guarded_resolver

                guarded_resolver(hosts)
        except ValueError as problem:
            raise Problem(f"--allow-host: {str(problem).removeprefix('hosts: ')}") from problem
        if level.files is Files.OFF and (self.network or hosts or self.outer_sandbox):
            raise Problem(f"--sandbox {level.files} limits nothing, not even the network: give it alone")
        return level

    def chosen(self, workspace: Path) -> Sandbox | None:
        """The sandbox that the options ask for; None where all were left out, so that the tools choose their own."""
        return None if self == SandboxOptions() else self.choose(workspace)

    def choose(self, workspace: Path, protected: Sequence[Path] = ()) -> Sandbox:
        """The best sandbox that works here at this level. Raises Problem where none can keep the level.

        `protected` are files in the workspace that commands must not change. Only bubblewrap is told of them: other
        sandboxes restore a protected file after a command, which would undo what this program writes there.
        """
        from toolcrib.command.sandbox import Bubblewrap, choose
        from toolcrib.command.sandbox.files.executed_files import PROTECTED
        from toolcrib.command.sandbox.files.paths import within

        try:
            made = choose(workspace, self.level(), external=self.outer_sandbox, trials=_trials())
        except (SandboxError, ValueError) as problem:
            raise Problem(f"sandbox: {problem}") from problem
        root, paths = os.path.realpath(workspace), [os.path.realpath(path) for path in protected]
        if isinstance(made, Bubblewrap):
            inside = [os.path.relpath(path, root) for path in paths if within(path, root)]
            made.protected = (*PROTECTED, *inside)
        return made


def _trials() -> Path | None:
    """The file in which the outcome of a trial is kept; None where there is no home."""
    try:
        return state_folder() / "sandbox-trials.json"
    except RuntimeError:
        return None


def sandbox_warnings(sandbox: Sandbox) -> list[str]:
    """What a person should know of a sandbox that is weak, missing or switched off, a line each; mostly nothing."""
    from toolcrib.command.sandbox import warnings

    return [escape_invisible(f"sandbox: {line}") for line in warnings(sandbox)]
