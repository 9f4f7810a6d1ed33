"""What the tools for files have in common: the folder of their paths, and when those that change files ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcrib.access import Access
    from toolcrib.question import Doubt
    from toolcrib.tools.backends.protocol import Backend

__all__ = ["ChangesFiles", "InFolder", "folder_of"]


class InFolder:
    """A tool for the files of a backend."""

    backend: Backend

    def base_folder(self) -> str:
        """The root of a workspace; "" for files that are elsewhere. Of several backends, the default one counts."""
        return folder_of(self.backend.command_backend())


class ChangesFiles(InFolder):
    """A tool that changes files of a backend.

    It is not offered where the backend is read-only, and asks before it changes what other programs obey.
    """

    def accesses(self, params: Any) -> tuple[Access, ...]:
        """What the call reads and changes."""
        raise NotImplementedError

    def unavailable(self) -> str | None:
        return self.backend.read_only

    def doubt(self, params: Any) -> Doubt | None:
        return self.backend.doubt(self.accesses(params))


def folder_of(place: object) -> str:
    """The folder of this machine in which files are; "" where they are elsewhere."""
    from toolcrib.tools.workspace import Workspace

    return place.root.path if isinstance(place, Workspace) else ""
