"""Stdout is for results: what a tool, a module or a child process of theirs prints meanwhile goes to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def stdout_apart() -> Iterator[TextIO]:
    """Stdout for the caller alone, until the block ends; whoever else writes to it writes to stderr."""
    ours, shared = sys.stdout, sys.stderr
    if (
        ours is not sys.__stdout__ or shared is not sys.__stderr__
    ):  # a program that captures both: they are its own
        yield ours
        return
    ours.flush()
    kept = os.dup(ours.fileno())
    with open(os.dup(kept), "w", encoding=ours.encoding, errors=ours.errors, buffering=1) as alone:  # noqa: PTH123
        os.dup2(shared.fileno(), ours.fileno())
        sys.stdout = shared
        try:
            yield alone
        finally:
            sys.stdout = ours
            ours.flush()
            os.dup2(kept, ours.fileno())
            os.close(kept)
