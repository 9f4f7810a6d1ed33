"""Running a command inside another program's process: what the command changed in the process is put back."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path

from toolcrib.command.sandbox.process.kernel import LIBC, SET_DUMPABLE, prctl
from toolcrib.plugins import comes_from

GET_DUMPABLE = 3


@contextmanager
def process_state_restored() -> Generator[None]:
    """Restores streams, log handlers, warning filters, import finders, and the protection from other processes.

    Modules that the command imported from the current folder (`--from`) are forgotten, so that the next command
    reads its own.
    """
    streams = sys.stdout, sys.stderr
    errors = [(one, one.errors) for one in (*streams, sys.stdin) if isinstance(one, TextIOWrapper)]
    log = logging.getLogger("toolcrib")
    handlers, propagate = list(log.handlers), log.propagate
    finders, modules, folder = list(sys.meta_path), set(sys.modules), Path.cwd()
    dumpable = LIBC.prctl(GET_DUMPABLE) if sys.platform == "linux" else 1
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.stdout, sys.stderr = streams
        for stream, handling in errors:
            if not stream.closed:
                with suppress(
                    OSError
                ):  # it is flushed first, and the disk may be full: the program will hear of it
                    stream.reconfigure(errors=handling)
        log.handlers[:], log.propagate = handlers, propagate
        sys.meta_path[:] = finders
        new = set(sys.modules) - modules
        specs = {name: getattr(sys.modules[name], "__spec__", None) for name in new if "." not in name}
        ours = {name for name, spec in specs.items() if comes_from(folder, name, spec)}
        for name in new:
            if name.partition(".")[0] in ours:
                del sys.modules[name]
        if sys.platform == "linux" and dumpable == 1:
            prctl(SET_DUMPABLE, dumpable)
