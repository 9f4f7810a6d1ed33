"""The entry point: runs a command line and turns every way in which it can end into an exit code and a message.

The exit codes stand in `console`.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from toolcrib.cli import collector
from toolcrib.cli.console import (
    DEBUG,
    INTERRUPTED,
    NOT_DONE,
    READER_GONE,
    Problem,
    debugging,
    lose_no_text,
    say,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Without `arguments` the process is ours, and `sys.argv` holds the command line. With `arguments` the command
    runs inside another program: it reads and writes that program's `sys.stdin`, `sys.stdout` and `sys.stderr`, and
    what it changes in the process is put back.
    """
    if arguments is None:
        collector.own_process()
        return _exit_code(sys.argv[1:], discard=_discard_output)
    from toolcrib.cli.in_process import process_state_restored

    with process_state_restored():
        return _exit_code(list(arguments), discard=lambda: None)  # stdout is the program's


def _exit_code(arguments: list[str], discard: Callable[[], None]) -> int:
    """Run a command line. `discard` is called where nothing more can be written to stdout."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed by the program that started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - for as long as we run
    lose_no_text()
    try:
        code = _run(arguments)
        sys.stdout.flush()  # raises here, not when Python ends, if the reader of our output has gone
        return code
    except Problem as problem:
        _say_at_end(f"toolcrib: {problem.message}", interrupted=problem.code == INTERRUPTED)
        return problem.code
    except KeyboardInterrupt:
        _say_at_end("toolcrib: interrupted", interrupted=True)
        return INTERRUPTED
    except BrokenPipeError:
        discard()
        return READER_GONE
    except Exception as problem:
        if debugging():
            raise
        if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
            say(f"toolcrib: {problem.filename or 'the output'} cannot be written: {problem.strerror}")
            if problem.filename is None:
                discard()
            return NOT_DONE
        say(
            f"toolcrib: this should not have happened: {type(problem).__name__}: {problem}\n"
            f"Run it again with {DEBUG}=1 to see where, and please report it."
        )
        return NOT_DONE


def _discard_output() -> None:
    """Connect stdout to /dev/null: at exit Python writes what is still buffered, and would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    from toolcrib.cli.command_group import root_group

    try:
        code = root_group()(arguments, standalone_mode=False, prog_name="toolcrib")
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Typer ends the process itself then, with code 1
            raise ended.__context__ from None
        raise
    except Exception as raised:
        # Typer's own exceptions stand for a wrong command line, and know how to print themselves.
        problem: Any = raised
        show, code = getattr(problem, "show", None), getattr(problem, "exit_code", None)
        if show is None or not isinstance(code, int):
            raise
        if isinstance(getattr(problem, "message", None), str):
            problem.message = problem.message.removeprefix("Value error, ")  # what the parser of values adds
        show()
        return code
    return code if isinstance(code, int) else 0


def _say_at_end(text: str, *, interrupted: bool) -> None:
    """Print the last message; after Ctrl-C on a new line, because the terminal has just echoed ^C."""
    say("\n" * (interrupted and sys.stderr.isatty()) + text)
