"""The console: what every command prints with, and how it ends early. Imports nothing of the command line.

Results go to stdout through `out`, everything else goes to stderr through `say`. A command that cannot go on
raises `Problem`; `main` prints its message and exits with its code.

| exit code | constant | meaning |
| --------- | -------- | ------- |
| 0 | `DONE` | the run finished, the call succeeded, the tools are fine |
| 1 | `NOT_DONE` | a limit, a pause, a failed call, broken tools |
| 2 | `MISUSED` | the command line was not understood, or something that the command needs is missing |
| 128 + n | | ended by signal n: 130 (`INTERRUPTED`) for Ctrl-C |
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, TextIO

from toolcrib.visible import escape_invisible

DONE, NOT_DONE, MISUSED, INTERRUPTED = 0, 1, 2, 130
READER_GONE = 141  # as a shell reports SIGPIPE
ESCAPED = "toolcrib.escaped"  # how a stream writes a character that its encoding has not
UNABLE = ("strict", "surrogateescape", "backslashreplace")  # what Python chooses; a person may choose another
DEBUG = "TOOLCRIB_DEBUG"  # the environment variable that asks for tracebacks


class Problem(Exception):
    """Ends a command with a message for a person: what was expected, what came, and what to do next."""

    def __init__(self, message: str, *, code: int = MISUSED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def out(text: str = "") -> None:
    """Print a result on stdout."""
    print(text)  # noqa: T201


def say(text: str) -> None:
    """Tell the person something beside the result, on stderr; what it names may hold characters that nobody sees."""
    print(escape_invisible(text), file=sys.stderr)  # noqa: T201


def lose_no_text() -> None:
    """Let stdout and stderr take every character: one that their encoding has not is written as JSON escapes it.

    What a tool did is done by then, so its result must not be lost for a character. Within JSON the escape means the
    character. Bytes on stdin that its encoding has not are kept as half surrogate pairs, for who reads it to refuse.
    """
    for stream, errors in ((sys.stdout, ESCAPED), (sys.stderr, ESCAPED), (sys.stdin, "surrogateescape")):
        if isinstance(stream, TextIOWrapper) and stream.errors in UNABLE:
            stream.reconfigure(errors=errors)


def as_printed(text: str, stream: IO[str]) -> str:
    """The text as a stream will show it, whose encoding may not have all its characters."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text if text.isascii() else text.encode(encoding, ESCAPED).decode(encoding)


def _escaped(problem: UnicodeError) -> tuple[str, int]:
    assert isinstance(problem, UnicodeEncodeError)
    units = problem.object[problem.start : problem.end].encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(f"\\u{code:04x}" for code in codes), problem.end


codecs.register_error(ESCAPED, _escaped)


def debugging() -> bool:
    """Whether the person asked for tracebacks."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def quiet_logging() -> None:
    """Silence the library's log, because the commands say themselves what went wrong; debugging prints the log."""
    import logging

    log = logging.getLogger("toolcrib")
    if debugging():
        logging.basicConfig(level=logging.INFO)
    elif not log.handlers:
        log.addHandler(logging.NullHandler())
        log.propagate = False


def person_can_be_asked() -> bool:
    """Whether a person can be asked: there is a terminal to read from and one to show the question on."""
    return sys.stdin is not None and sys.stdin.isatty() and asking_stream() is not None


def asking_stream() -> TextIO | None:
    """Where a question is shown: stdout if that is a terminal, else stderr if that is one."""
    return next(
        (stream for stream in (sys.stdout, sys.stderr) if stream is not None and stream.isatty()), None
    )


@contextmanager
def stdout_reserved() -> Generator[TextIO]:
    """Yields stdout for our own results; what anything else prints on stdout until the block ends goes to stderr.

    Tools, imported modules and child processes may print. On a terminal nothing is redirected, because no program
    reads the output there. Where stdout is not the process's own (a test captures it), only `sys.stdout` is
    replaced, not the descriptor.
    """
    ours, others = sys.stdout, sys.stderr
    of_the_process = sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__
    if ours.isatty():
        yield ours
    elif of_the_process:
        yield from _descriptor_reserved(ours, others)
    else:
        sys.stdout = others
        try:
            yield ours
        finally:
            sys.stdout = ours


def _descriptor_reserved(ours: TextIO, others: TextIO) -> Generator[TextIO]:
    ours.flush()
    copy = os.dup(ours.fileno())
    with os.fdopen(copy, "w", encoding=ours.encoding, errors=ours.errors, buffering=1) as reserved:
        os.dup2(others.fileno(), ours.fileno())
        sys.stdout = others
        try:
            yield reserved
        finally:
            sys.stdout = ours
            ours.flush()  # code that kept a reference to stdout has written to it: that goes to stderr too
            os.dup2(reserved.fileno(), ours.fileno())
