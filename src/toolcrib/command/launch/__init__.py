"""Runs a judged command in a sandbox: a proved plan program by program without a shell, anything else by bash.

`run_command` chooses between the two. A plan is run by `plan_runner` on a `SandboxedHost`, a script as one `process`.
Both bound the output and end everything that the command started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.command.launch.denied_paths import DeniedPathsInSandbox
    from toolcrib.command.launch.environment import SAFE_ENV_VARS, command_environment
    from toolcrib.command.launch.output import BoundedOutput
    from toolcrib.command.launch.plan_host import PlanHost, PlanProcess
    from toolcrib.command.launch.plan_runner import run_plan
    from toolcrib.command.launch.process import ProcessOutcome
    from toolcrib.command.launch.run_command import CommandLine, Finished, OpenFolder, run_command
    from toolcrib.command.launch.shell_words import ShellKind, shell_words

__all__ = [
    "SAFE_ENV_VARS",
    "BoundedOutput",
    "CommandLine",
    "DeniedPathsInSandbox",
    "Finished",
    "OpenFolder",
    "PlanHost",
    "PlanProcess",
    "ProcessOutcome",
    "ShellKind",
    "command_environment",
    "run_command",
    "run_plan",
    "shell_words",
]

__getattr__ = lazy_names(
    __name__,
    {
        "denied_paths": ("DeniedPathsInSandbox",),
        "environment": (
            "SAFE_ENV_VARS",
            "command_environment",
        ),
        "output": ("BoundedOutput",),
        "plan_host": (
            "PlanHost",
            "PlanProcess",
        ),
        "plan_runner": ("run_plan",),
        "process": ("ProcessOutcome",),
        "run_command": (
            "CommandLine",
            "Finished",
            "OpenFolder",
            "run_command",
        ),
        "shell_words": (
            "ShellKind",
            "shell_words",
        ),
    },
)
