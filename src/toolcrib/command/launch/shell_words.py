"""The shells that run a command which has no plan, and the options that they get."""

from __future__ import annotations

import shutil
from typing import Literal

ShellKind = Literal["bash", "sh", "zsh", "pwsh"]
SHELL_PATH = "/bin:/usr/bin:/usr/local/bin:/opt/homebrew/bin"
# With these options no shell reads a file of settings, which a command could have written.
SHELL_OPTIONS: dict[ShellKind, tuple[str, ...]] = {
    "bash": ("-c",),
    "sh": ("-c",),
    "zsh": ("-f", "-c"),
    "pwsh": ("-NoProfile", "-NonInteractive", "-Command"),
}


def shell_words(kind: ShellKind) -> tuple[str, ...]:
    """The words to put before a script: the shell's program and its options. Empty where the shell is not installed.

    Where there is no bash, `/bin/sh` stands in for it.
    """
    program = shutil.which(kind, path=SHELL_PATH)
    if program is None and kind == "bash":
        program = "/bin/sh"
    return (program, *SHELL_OPTIONS[kind]) if program is not None else ()
