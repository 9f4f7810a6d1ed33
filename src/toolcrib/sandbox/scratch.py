# ruff: noqa: PTH112 - paths are text and descriptors here
"""A folder for temporary files that commands of one sandbox share, and nobody else sees."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref


class Scratch:
    """Made when first needed, removed with the sandbox that it belongs to."""

    __slots__ = ("__weakref__", "_lock", "_path")

    def __init__(self) -> None:
        self._path = ""
        self._lock = threading.Lock()

    def path(self) -> str:
        with self._lock:
            if not self._path or not os.path.isdir(self._path):
                self._path = os.path.realpath(tempfile.mkdtemp(prefix="toolcrib-"))
                weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
            return self._path
