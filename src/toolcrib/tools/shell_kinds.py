"""`shell` for other shells than bash: the same tool, which tells the model what to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.effect import Effect
from toolcrib.facts import MaxOutput
from toolcrib.tools.shell import Shell
from toolcrib.tools.shell_params import MAX_TIMEOUT, ShellResult

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.command.launch import ShellKind
    from toolcrib.context import Context
    from toolcrib.tools.backends import Backend


class OtherShell(
    Shell,
    name="shell",
    effect=Effect.DESTRUCTIVE,
    secrets=("command", "env"),
    title="Shell",
    category="shell",
    timeout=MAX_TIMEOUT + 30.0,
    approval_ignores=("timeout", "description"),
    max_output=MaxOutput(),
    output_schema=ShellResult,
):
    __doc__ = Shell.__doc__

    async def dynamic_description(self, ctx: Context[Any]) -> str:
        return f"{Shell.spec.description}\n\nCommands are written for {self.kind}, not for bash."


def shell_of_kind(kind: ShellKind, files: Backend, **options: Any) -> Shell:
    """The tool `shell` for a kind of shell; `options` are those of `Shell`."""
    make = Shell if kind == "bash" else OtherShell
    return make(files, kind=kind, **options)
