"""Files in memory: what an agent notes during a run, without a trace on the machine."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from toolcrib.tools.backends.flat import FlatBackend, StoredFile, stored_status
from toolcrib.tools.backends.protocol import FileStatus
from toolcrib.visible import counted

FORMAT = 1  # of what `saved` gives


class MemoryBackend(FlatBackend):
    """Files in memory, which last as long as this object: one made for a run lives in that run.

    `files` are there from the start, text as UTF-8. `saved` gives all files as JSON, beside a run that was
    suspended, and `MemoryBackend.restored` makes a backend of it.

    >>> backend = MemoryBackend({"notes.md": "- buy milk"})
    >>> backend.read("notes.md", 100)
    b'- buy milk'
    """

    def __init__(self, files: Mapping[str, str | bytes] = {}) -> None:
        super().__init__()
        self._files: dict[str, StoredFile] = {}
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            self._files[self.place(path).shown] = StoredFile(data, 0)

    def __repr__(self) -> str:
        return f"MemoryBackend({counted(len(self._files), 'file')})"

    def saved(self) -> dict[str, Any]:
        """All files as JSON."""
        files = {
            path: {"data": base64.b64encode(file.data).decode(), "modified": file.modified}
            for path, file in sorted(self._files.items())
        }
        return {"format": FORMAT, "files": files}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> MemoryBackend:
        """A backend with the files that `saved` gave. Raises ValueError for anything else."""
        if saved.get("format") != FORMAT:
            raise ValueError(f"saved files of format {saved.get('format')!r}; this version reads {FORMAT}")
        made = cls()
        for path, file in saved["files"].items():
            made._files[made.place(path).shown] = StoredFile(
                base64.b64decode(file["data"]), int(file["modified"])
            )
        return made

    def load(self, path: str) -> StoredFile | None:
        return self._files.get(path)

    def below(self, folder: str) -> list[tuple[str, FileStatus]]:
        prefix = "" if folder == "." else folder + "/"
        return [
            (path, stored_status(path, file)) for path, file in self._files.items() if path.startswith(prefix)
        ]

    def exclusively(self) -> AbstractContextManager[object]:
        return nullcontext()  # `apply` holds the lock

    def store(self, changes: dict[str, StoredFile | None]) -> None:
        files = dict(self._files)
        for path, file in changes.items():
            if file is None:
                del files[path]
            else:
                files[path] = file
        self._files = files  # in one step: a reader sees all changes or none
