"""`shell`: runs a command where the files are, to its end or in the background.

In a folder of this machine a command takes three steps, in the order of `shell_work.py`. It is *judged* before
anything runs: a command that was proved plain runs without asking where a sandbox holds, one that would destroy the
host never runs, and the policy decides on all others. It is *launched*: a proved one as its plan, without a shell, any
other one by bash. Everything that it started ends with it; only where a caller passed `NoSandbox` does a process that
detached itself stay. If it fails, that is *explained*: where the sandbox refused something, a person may allow it, and
the command runs again.

In the background the same command is judged and launched in the same way; `command/background/` keeps it, and the run
that it was started in ends it. What `shell` is told of a command, and how that is judged, stands in `shell_command.py`.

Where only commands reach the files, `remote_shell_work.py` judges a command by its text, and `command/remote/` runs it.

Every process of the machine can read a command line, so a reference to a secret becomes a variable of the environment.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from toolcrib.effect import Effect
from toolcrib.errors import as_tuple
from toolcrib.facts import MaxOutput
from toolcrib.result import ToolResult
from toolcrib.tool import Tool
from toolcrib.tools.command_place import commands_of
from toolcrib.tools.in_folder import folder_of
from toolcrib.tools.shell_params import MAX_TIMEOUT, ShellParams, ShellResult
from toolcrib.tools.workspace import Workspace

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.access import Access
    from toolcrib.command.launch import ShellKind
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.context import Context
    from toolcrib.question import Doubt, Preview
    from toolcrib.tools.backends import Backend
    from toolcrib.tools.remote_shell_work import RemoteShellWork
    from toolcrib.tools.shell_work import ShellWork


class Shell(
    Tool[ShellParams, ToolResult],
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
    """Run a command and give back what it prints, errors included, and its exit code if that is not 0.

    Each command runs in a shell of its own: cd and variables do not carry over, and there is no input. What
    it leaves running is stopped. For a server, a watcher or what takes more than 10 minutes set
    run_in_background: the command goes on until it ends, is stopped or the run is over; process reads what
    it prints, and process_write types into it. Commands may be confined by a sandbox, which is said when it
    refuses something. To read, search or change files use the tools for files.
    """

    def __init__(
        self,
        files: Backend,
        *,
        env: Mapping[str, str] | None = None,
        passthrough: Collection[str] = (),
        grace: float = 2.0,
        sandbox: Sandbox | None = None,
        kind: ShellKind = "bash",
    ) -> None:
        """`files` is the backend where commands run; of a `CompositeBackend`, its default one. Raises TypeError for one
        where no command runs.

        `env` is set for commands, `passthrough` names further variables of this process that they get. It may hold
        patterns (`NODE_*`), which match no name of a credential (`*_KEY`, `*_TOKEN`). `kind` is the shell that runs
        commands. Only what is written for bash or sh can be proved plain; for `zsh` and `pwsh` every command asks, and
        `shell_of_kind` gives a tool that tells the model which shell it is.

        Without a `sandbox`, the best one that works here is chosen at the first command
        (`toolcrib.command.sandbox.choose`: commands may write to the workspace, and there is no network). To go
        without a sandbox, pass `NoSandbox()`. A level that is set on the workspace counts in either case. What runs
        elsewhere is bounded by that place: `sandbox` and `passthrough` are for a folder of this machine.
        """
        self.place = commands_of(files)
        if (sandbox is not None or passthrough) and not isinstance(self.place, Workspace):
            raise TypeError(
                f"sandbox and passthrough are for commands of this machine, not for those of {files!r}"
            )
        self.sandbox = sandbox
        self.env = dict(env or {})
        self.passthrough = as_tuple("passthrough", passthrough)
        self.grace = grace
        self.kind: ShellKind = kind
        self._making = threading.Lock()
        self._made: ShellWork | RemoteShellWork | None = None

    @property
    def _work(self) -> ShellWork | RemoteShellWork:
        """Made by the first call, of whichever thread."""
        with self._making:
            if self._made is None:
                self._made = self._make_work()
            return self._made

    def _make_work(self) -> ShellWork | RemoteShellWork:
        if not isinstance(self.place, Workspace):
            from toolcrib.tools.remote_shell_work import RemoteShellWork

            return RemoteShellWork(
                self.place, env=self.env, grace=self.grace, kind=self.kind, effect=self.facts.effect
            )
        from toolcrib.tools.shell_work import ShellWork

        return ShellWork(
            self.place,
            sandbox=self.sandbox,
            env=self.env,
            passthrough=self.passthrough,
            grace=self.grace,
            kind=self.kind,
            effect=self.facts.effect,
        )

    def with_secrets(self, params: ShellParams, values: Mapping[str, str]) -> ShellParams:
        """The same params with the values of secrets, which only become a part of the command's environment."""
        made = params.model_copy()
        made._secrets = dict(values)
        return made

    def precheck(self, params: ShellParams) -> str | None:
        return self._work.precheck(params)

    def effect_for(self, params: ShellParams) -> Effect:
        return self._work.effect_for(params)

    def accesses(self, params: ShellParams) -> tuple[Access, ...]:
        return self._work.accesses(params)

    def base_folder(self) -> str:
        return folder_of(self.place)

    def doubt(self, params: ShellParams) -> Doubt | None:
        return self._work.doubt(params)

    def preview(self, params: ShellParams) -> Preview:
        """The exact command. An answer holds only for this folder, and for the present code that the command runs."""
        return self._work.preview(params)

    def unavailable(self) -> str | None:
        if not isinstance(self.place, Workspace):
            return None  # what that place can run shows when a command runs
        if sys.platform == "win32":
            return "commands are not run on Windows"
        from toolcrib.command.launch.shell_words import shell_words

        return None if shell_words(self.kind) else f"{self.kind} is not installed"

    async def execute(self, params: ShellParams, ctx: Context[Any]) -> ToolResult:
        return await self._work.execute(params, ctx)
