"""A command that a background process runs on this machine, in a sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable

from toolcrib.command.background.process_input import ProcessInput
from toolcrib.command.launch import (
    BoundedOutput,
    CommandLine,
    Finished,
    OpenFolder,
    ProcessOutcome,
    run_command,
)
from toolcrib.command.sandbox import Sandbox, SandboxError
from toolcrib.dataclass import replace


class LocalCommand:
    """A judged command line in a sandbox and an open folder, of which it keeps a copy until its end.

    `input` is None for a plan, which reads nothing. `finished` is set at the end.
    """

    def __init__(self, line: CommandLine, sandbox: Sandbox, folder: OpenFolder) -> None:
        self.line = line
        self.sandbox = sandbox
        self.timeout = line.timeout
        self.terminal = line.terminal
        plan = line.judgement.verdict == "plain" and line.judgement.plan is not None
        self.input = None if plan else ProcessInput()
        self.finished: Finished | None = None
        self._folder = OpenFolder(os.dup(folder.descriptor), folder.path)

    async def run(self, output: BoundedOutput, on_output: Callable[[BoundedOutput], None]) -> ProcessOutcome:
        """Runs it to its end. Raises OSError if it cannot be started or confined."""
        line = self.line
        if self.input is not None:
            line = replace(line, stdin=self.input.for_process, on_start=self.input.close_reading_end)
        try:
            self.finished = await run_command(line, self.sandbox, self._folder, on_output, output)
        except SandboxError as refused:
            raise OSError(f"it could not be confined: {refused}") from None
        except OSError as refused:
            raise OSError(f"it could not be started: {refused.strerror}") from None
        finally:
            os.close(self._folder.descriptor)
            if self.input is not None:
                self.input.close()
        return self.finished.outcome
