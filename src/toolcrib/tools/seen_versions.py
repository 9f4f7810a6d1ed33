"""Which version of each file a run has read, so that it does not overwrite what it never saw."""

from __future__ import annotations

import threading
from collections import OrderedDict

MAX_FILES = 10_000  # over all runs; the oldest are forgotten


class SeenVersions:
    """The versions of one backend's files as each run last read or wrote them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, run: str, path: str, version: str) -> None:
        """Records that a run has read or written this version of the file to which a path leads."""
        if not run:  # a tool that is called by itself
            return
        with self._lock:
            self._versions[run, path] = version
            self._versions.move_to_end((run, path))
            if len(self._versions) > MAX_FILES:
                self._versions.popitem(last=False)

    def version(self, run: str, path: str) -> str | None:
        """The version that the run last read or wrote; None if it did neither."""
        with self._lock:
            return self._versions.get((run, path))
