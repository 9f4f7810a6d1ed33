"""The entry point: runs a command and turns every way out into an exit code and words for a person.

| exit code | meaning |
| --------- | ------- |
| 0 | done: the run finished, the call succeeded, the tools are fine |
| 1 | not done: a limit, a pause, a failed call, broken tools |
| 2 | the command was not understood, or what it needs is missing |
| 128 + n | ended by signal n: 130 for Ctrl-C |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

DEBUG = "TOOLCRIB_DEBUG"
INTERRUPTED = 130


class Problem(Exception):
    """Ends a command with words for a person: what was expected, what came, and the next step."""

    def __init__(self, message: str, *, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (`sys.argv` by default) and give its exit code."""
    if sys.platform == "win32":
        print("toolcrib runs on Linux and macOS; on Windows, use it inside WSL.", file=sys.stderr)  # noqa: T201
        return 2
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - for as long as we run
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()  # a reader that is gone is met here, not when Python ends
        return code
    except Problem as problem:
        _say(f"toolcrib: {problem.message}", after_echo=problem.code == INTERRUPTED)
        return problem.code
    except KeyboardInterrupt:
        _say("toolcrib: interrupted", after_echo=True)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output is gone; what is still buffered must not raise once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as problem:
        if debugging():
            raise
        _say(
            f"toolcrib: this should not have happened: {type(problem).__name__}: {problem}\n"
            f"Run it again with {DEBUG}=1 to see where, and please report it."
        )
        return 1


def debugging() -> bool:
    """Whether the person asked for tracebacks."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def quiet_logging() -> None:
    """The commands say what went wrong themselves; the log's tracebacks are for whoever asks for them."""
    import logging

    log = logging.getLogger("toolcrib")
    if debugging():
        logging.basicConfig(level=logging.INFO)
    elif not log.handlers:
        log.addHandler(logging.NullHandler())
        log.propagate = False


def _run(arguments: list[str]) -> int:
    from toolcrib.cli.app import app

    try:
        code = app(arguments, standalone_mode=False, prog_name="toolcrib")
    except Exception as problem:
        # A wrong command line: Typer's own exceptions know how to show themselves.
        show, code = getattr(problem, "show", None), getattr(problem, "exit_code", None)
        if show is None or not isinstance(code, int):
            raise
        show()
        return code
    return code if isinstance(code, int) else 0


def _say(text: str, *, after_echo: bool = False) -> None:
    """Tell the person; a terminal has just echoed ^C on the line that it was in."""
    print("\n" * (after_echo and sys.stderr.isatty()) + text, file=sys.stderr)  # noqa: T201
