"""Runs a command in a terminal (a pseudo-terminal) that is made inside of its sandbox.

The relay, `terminal_relay.py`, is started in the sandbox instead of the command. Outside there are only the pipes that
every command has, so no terminal of the host is ever in reach of a command.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from toolcrib.command.sandbox.files.own_files import python

RELAY = Path(__file__).with_name("terminal_relay.py")


def in_terminal(argv: Sequence[str]) -> list[str]:
    """The command behind the relay. Raises OSError where there is no Python interpreter that could run it."""
    if not python():
        raise OSError(errno.ENOSYS, "this program has no Python interpreter for a terminal")
    return [python(), "-I", "-S", "-c", relay_source(), *argv]


@cache
def relay_source() -> str:
    """The relay as text, for `python -c`."""
    # Handed over as text, because a sandbox may not show the file.
    return RELAY.read_text(encoding="utf-8")
