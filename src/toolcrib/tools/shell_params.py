"""The parameters of the tool `shell`, and its result as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, PrivateAttr

from toolcrib.dataclass import dataclass

if TYPE_CHECKING:
    import re

    from toolcrib.command.launch import ProcessOutcome

DEFAULT_TIMEOUT = 120
MAX_TIMEOUT = 600


class ShellParams(BaseModel):
    command: str = Field(description="The command line, for bash if no other shell is named.")
    timeout: int | None = Field(
        None,
        ge=1,
        le=MAX_TIMEOUT,
        description=f"Seconds after which it is stopped. Without it {DEFAULT_TIMEOUT}, and in the background none.",
    )
    workdir: str = Field(".", description="Folder to run it in, relative to the workspace.")
    run_in_background: bool = Field(False, description="Go on at once, while it runs.")
    terminal: bool = Field(False, description="Run it in a terminal, for programs that want one.")
    description: str = Field("", description="What it is for, in a few words, for the person who watches.")
    env: dict[str, str] = Field(default_factory=dict, description="Variables that are set for it.")
    _secrets: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def seconds(self) -> int | None:
        """The timeout that counts."""
        if self.timeout is None and not self.run_in_background:
            return DEFAULT_TIMEOUT
        return self.timeout

    def value_of(self, reference: re.Match[str]) -> str:
        """The value of a secret that is referred to."""
        return self._secrets[reference[1]]


@dataclass(frozen=True, slots=True)
class ShellResult:
    """How a command ended, as data. Both `exit_code` and `signal` are None while it runs in the background.

    `signal` is the number of the signal that ended it; with the exit code 128 plus that number, as shells tell of the
    program that they ran. `process_id` names a process in the background.
    """

    exit_code: int | None
    signal: int | None
    seconds: float
    process_id: str | None = None

    @classmethod
    def of(cls, outcome: ProcessOutcome) -> ShellResult:
        from toolcrib.command.launch.process import code_and_signal

        return cls(*code_and_signal(outcome.code), round(outcome.seconds, 3))
