"""Where the commands of a tool run: in a folder of this machine, or where only a transport reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.tools.backends.protocol import CommandRunner
from toolcrib.tools.backends.refusals import as_backend
from toolcrib.tools.workspace import Workspace

if TYPE_CHECKING:
    from toolcrib.tools.backends import Backend


def commands_of(files: Backend) -> Workspace | CommandRunner:
    """The backend where commands for these files run. Raises TypeError where no command runs."""
    place = as_backend(files).command_backend()
    if isinstance(place, Workspace | CommandRunner):
        return place
    raise TypeError(
        f"no commands run where the files of {files!r} are; give a Workspace, a CommandBackend, or a CompositeBackend"
        " whose default is one of them"
    )
