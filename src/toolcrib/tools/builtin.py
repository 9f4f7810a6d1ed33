"""The built-in tools, made for one workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.tool import Tool
from toolcrib.tools.edit_file import EditFile
from toolcrib.tools.glob import GlobFiles
from toolcrib.tools.grep import Grep
from toolcrib.tools.list_dir import ListDir
from toolcrib.tools.read_file import ReadFile
from toolcrib.tools.shell import Shell
from toolcrib.tools.workspace import Workspace
from toolcrib.tools.write_file import WriteFile

if TYPE_CHECKING:
    from toolcrib.sandbox import Level, Sandbox

CLASSES = (ReadFile, WriteFile, EditFile, ListDir, GlobFiles, Grep, Shell)


def workspace_tools(
    workspace: Workspace, *, sandbox: Sandbox | None = None, level: Level | None = None
) -> list[Tool[Any, Any]]:
    """All built-in tools on one workspace, which they share and cannot leave.

    Commands run in `sandbox`, or in the best that works here at `level`; where that is read-only, the tools that
    write are neither offered nor run. `workspace.level` can be set to another later. ValueError for both.

    >>> [tool.facts.name for tool in workspace_tools(Workspace("."))]
    ['read_file', 'write_file', 'edit_file', 'list_dir', 'glob', 'grep', 'shell']
    """
    if sandbox is not None and level is not None:
        raise ValueError("give a sandbox, which was made for a level, or a level, not both")
    if sandbox is not None or level is not None:
        workspace.level = level if sandbox is None else sandbox.level
    files = [make(workspace) for make in CLASSES if make is not Shell]
    return [*files, Shell(workspace, sandbox=sandbox)]
