"""Stdout is for results: what a tool, a module or a child process of theirs prints meanwhile goes to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def stdout_apart() -> Generator[TextIO]:
    """Stdout for the caller alone until the block ends; what others write to it goes to stderr.

    On a terminal nothing is changed: nobody parses what stands there.
    """
    ours: TextIO = sys.stdout
    others: TextIO = sys.stderr
    if (
        ours.isatty() or ours is not sys.__stdout__ or others is not sys.__stderr__
    ):  # captured in this process
        yield ours
        return
    ours.flush()
    with os.fdopen(
        os.dup(ours.fileno()), "w", encoding=ours.encoding, errors=ours.errors, buffering=1
    ) as alone:
        os.dup2(others.fileno(), ours.fileno())
        sys.stdout = others
        try:
            yield alone
        finally:
            sys.stdout = ours
            ours.flush()  # what somebody kept a reference for goes to stderr too
            os.dup2(alone.fileno(), ours.fileno())
