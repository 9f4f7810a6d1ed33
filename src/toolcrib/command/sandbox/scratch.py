# ruff: noqa: PTH101, PTH112, PTH114, PTH120 - paths are text and descriptors here
"""A folder for temporary files that commands of one sandbox share, and nobody else sees."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from typing import Any

from toolcrib.command.sandbox import claim

PREFIX = "toolcrib-scratch-"


class Scratch:
    """Made when first needed, removed with the sandbox that it belongs to.

    What processes left behind that could not clean up is removed when the next one is made.
    """

    __slots__ = ("__weakref__", "_lock", "_path", "_remove")

    def __init__(self) -> None:
        self._path = ""
        self._lock = threading.Lock()
        self._remove: Callable[[], Any] | None = None

    def path(self) -> str:
        with self._lock:
            if not self._path or not os.path.isdir(self._path):
                place = os.path.realpath(tempfile.gettempdir())
                claim.swept(place, PREFIX, emptied)
                self._path, held = claim.made(place, PREFIX)
                self._remove = weakref.finalize(self, _given_back, self._path, held)
            return self._path

    def kept(self, launch: object) -> None:
        """Does nothing; what holds on to it holds on to the folder."""

    def close(self) -> None:
        if self._remove is not None:
            self._remove()


def emptied(path: str) -> None:
    """Remove a folder with all in it, also where a command took its own rights away."""

    def again(step: Callable[..., Any], name: str, problem: object) -> None:
        try:
            os.chmod(os.path.dirname(name), 0o700)
            if os.path.isdir(name) and not os.path.islink(name):
                os.chmod(name, 0o700)
                shutil.rmtree(name, ignore_errors=True)
            else:
                step(name)
        except OSError:
            pass

    shutil.rmtree(path, onerror=again)


def _given_back(path: str, held: int) -> None:
    emptied(path)
    os.close(held)
