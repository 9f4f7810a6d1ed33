"""What the tools for files have in common: the folder that their paths are relative to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.tools.backends.protocol import Backend

__all__ = ["InFolder", "folder_of"]


class InFolder:
    """A tool for the files of a backend."""

    backend: Backend

    def base_folder(self) -> str:
        """The root of a workspace; "" for files that are elsewhere. Of several backends, the default one counts."""
        return folder_of(self.backend.command_backend())


def folder_of(place: object) -> str:
    """The folder of this machine in which files are; "" where they are elsewhere."""
    from toolcrib.tools.workspace import Workspace

    return place.root.path if isinstance(place, Workspace) else ""
