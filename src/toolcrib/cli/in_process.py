"""Running a command inside another program's process: what the command changed in the process is put back."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolcrib.command.sandbox.process.kernel import LIBC, SET_DUMPABLE, prctl

GET_DUMPABLE = 3


@contextmanager
def process_state_restored() -> Generator[None]:
    """Restores streams, log handlers, warning filters, import finders, and the protection from other processes.

    Modules that the command imported from the current folder (`--from`) are forgotten, so that the next command
    reads its own.
    """
    streams = sys.stdout, sys.stderr
    log = logging.getLogger("toolcrib")
    handlers, propagate = list(log.handlers), log.propagate
    finders, modules, folder = list(sys.meta_path), set(sys.modules), Path.cwd()
    dumpable = LIBC.prctl(GET_DUMPABLE) if sys.platform == "linux" else 1
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.stdout, sys.stderr = streams
        log.handlers[:], log.propagate = handlers, propagate
        sys.meta_path[:] = finders
        for name in set(sys.modules) - modules:
            if name.partition(".")[0] not in modules and _lies_in(folder, name.partition(".")[0]):
                del sys.modules[name]
        if sys.platform == "linux" and dumpable == 1:
            prctl(SET_DUMPABLE, dumpable)


def _lies_in(folder: Path, name: str) -> bool:
    """Whether a top-level module is a file or a package of that folder."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    places = [getattr(spec, "origin", None), *(getattr(spec, "submodule_search_locations", None) or ())]
    return any(os.fspath(folder / path) in places for path in (f"{name}.py", name, f"{name}/__init__.py"))
