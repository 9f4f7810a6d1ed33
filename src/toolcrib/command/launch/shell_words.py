"""The shells that run what is no plan."""

from __future__ import annotations

import shutil
from typing import Literal

ShellKind = Literal["bash", "sh", "zsh", "pwsh"]
SHELL_PATH = "/bin:/usr/bin:/usr/local/bin:/opt/homebrew/bin"
# None reads a file of settings, which a command could have written.
SHELL_OPTIONS: dict[ShellKind, tuple[str, ...]] = {
    "bash": ("-c",),
    "sh": ("-c",),
    "zsh": ("-f", "-c"),
    "pwsh": ("-NoProfile", "-NonInteractive", "-Command"),
}


def shell_words(kind: ShellKind) -> tuple[str, ...]:
    """The words before a script for a shell: its program and options; for bash those of sh where there is no bash.

    Empty where the shell is not installed.
    """
    program = shutil.which(kind, path=SHELL_PATH)
    if program is None and kind == "bash":
        program = "/bin/sh"
    return (program, *SHELL_OPTIONS[kind]) if program is not None else ()
