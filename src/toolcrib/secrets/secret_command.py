"""Secrets that a program prints, such as a password manager."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Sequence

from toolcrib.errors import as_tuple
from toolcrib.secrets.stores import MAX_VALUE, SecretError, valid_name

__all__ = ["SecretCommand"]


class SecretCommand:
    """A program that prints a value, such as `["pass", "show", "{name}"]`: no shell, `{name}` replaced in each word.

    `names` are the names that it knows. After `deadline` seconds the program and its children are killed. A line break
    at the end of what it prints is dropped.
    """

    def __init__(self, argv: Sequence[str], names: Collection[str], *, deadline: float = 10.0) -> None:
        if isinstance(argv, str) or not argv:
            raise TypeError(f"argv must be a list of words, got {argv!r}")
        self._argv = tuple(argv)
        self._names = frozenset(map(valid_name, as_tuple("names", names)))
        self._deadline = deadline

    def names(self) -> Collection[str]:
        return sorted(self._names)

    def get(self, name: str) -> str | None:
        if name not in self._names:
            return None
        program = self._argv[0]
        try:
            child = subprocess.Popen(
                [word.replace("{name}", name) for word in self._argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as problem:
            raise SecretError(f"{program} cannot be started: {problem.strerror}") from None
        try:
            printed = _printed(child, time.monotonic() + self._deadline)
        finally:
            _kill(child)
        if printed is None:
            raise SecretError(f"{program} gave no value within {self._deadline:g} s")
        if len(printed) > MAX_VALUE:
            raise SecretError(f"{program} gave more than {MAX_VALUE} bytes for {name!r}")
        if child.returncode != 0:
            raise SecretError(f"{program} gave no value for {name!r}: exit code {child.returncode}")
        try:
            return printed.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise SecretError(f"{program} gave no text for {name!r}") from None


def _printed(child: subprocess.Popen[bytes], until: float) -> bytes | None:
    """The output of a program up to its end, cut a little beyond the longest value; None when the time is up."""
    assert child.stdout is not None
    stdout, out = child.stdout, bytearray()

    def read() -> None:  # on a thread: a pipe cannot be waited for with a deadline everywhere
        with stdout:
            while len(out) <= MAX_VALUE and (data := os.read(stdout.fileno(), 65_536)):
                out.extend(data)

    reader = threading.Thread(target=read, name="toolcrib secret", daemon=True)
    reader.start()
    reader.join(max(0.0, until - time.monotonic()))
    if reader.is_alive():
        return None
    if len(out) <= MAX_VALUE:
        try:
            child.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
    return bytes(out)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the program, and where there are process groups the whole group, which may outlive its first process."""
    if sys.platform == "win32":
        child.kill()
    else:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    child.wait()
