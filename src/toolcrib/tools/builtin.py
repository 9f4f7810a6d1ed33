"""The built-in tools, made for one workspace."""

from __future__ import annotations

from typing import Any

from toolcrib.tool import Tool
from toolcrib.tools.edit_file import EditFile
from toolcrib.tools.glob import GlobFiles
from toolcrib.tools.grep import Grep
from toolcrib.tools.list_dir import ListDir
from toolcrib.tools.read_file import ReadFile
from toolcrib.tools.shell import Shell
from toolcrib.tools.workspace import Workspace
from toolcrib.tools.write_file import WriteFile

CLASSES = (ReadFile, WriteFile, EditFile, ListDir, GlobFiles, Grep, Shell)


def workspace_tools(workspace: Workspace) -> list[Tool[Any, Any]]:
    """All built-in tools on one workspace, which they share and cannot leave.

    >>> [tool.facts.name for tool in workspace_tools(Workspace("."))]
    ['read_file', 'write_file', 'edit_file', 'list_dir', 'glob', 'grep', 'shell']
    """
    return [make(workspace) for make in CLASSES]
