"""The built-in tools, made for one workspace."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from toolcrib.tool import Tool
from toolcrib.tools.edit_file import EditFile
from toolcrib.tools.glob import GlobFiles
from toolcrib.tools.grep import Grep
from toolcrib.tools.list_dir import ListDir
from toolcrib.tools.process import Process
from toolcrib.tools.process_list import ProcessList
from toolcrib.tools.process_write import ProcessWrite
from toolcrib.tools.python import Python
from toolcrib.tools.read_file import ReadFile
from toolcrib.tools.shell import Shell
from toolcrib.tools.workspace import Workspace
from toolcrib.tools.write_file import WriteFile

if TYPE_CHECKING:
    from toolcrib.command.sandbox import Level, Sandbox
    from toolcrib.net import NetGuard

FILES = (ReadFile, WriteFile, EditFile, ListDir, GlobFiles, Grep)
CLASSES = (*FILES, Shell, Process, ProcessWrite, ProcessList, Python)


def workspace_tools(
    workspace: Workspace, *, sandbox: Sandbox | None = None, level: Level | None = None
) -> list[Tool[Any, Any]]:
    """All built-in tools for one workspace, which they share and cannot leave.

    Commands run in `sandbox`, or in the best one that works here at `level`; when that level is read-only, the
    tools that write are neither listed nor run. If commands may use the network and httpx2 is installed,
    `fetch` is included and reaches the same hosts. `workspace.level` can be changed later. Raises ValueError
    when both `sandbox` and `level` are given.

    >>> " ".join(tool.facts.name for tool in workspace_tools(Workspace(".")))
    'read_file write_file edit_file list_dir glob grep shell process process_write process_list python'
    """
    if sandbox is not None and level is not None:
        raise ValueError("give a sandbox, which was made for a level, or a level, not both")
    if sandbox is not None or level is not None:
        workspace.level = level if sandbox is None else sandbox.level
    tools: list[Tool[Any, Any]] = [make(workspace) for make in FILES]
    if _guard_at(workspace.level) is not None and find_spec("httpx2") is not None:
        from toolcrib.tools.fetch import Fetch

        tools.append(Fetch(lambda: _guard_at(workspace.level)))
    commands = (Shell(workspace, sandbox=sandbox), Process(workspace), ProcessWrite(workspace), ProcessList())
    return [*tools, *commands, Python(workspace, sandbox=sandbox)]


@lru_cache(16)
def _guard_at(level: Level | None) -> NetGuard | None:
    """The network guard for the hosts that commands may reach; None for no network."""
    from toolcrib.command.sandbox import Network

    if level is None or level.network is Network.OFF:
        return None
    from toolcrib.command.sandbox.egress import allowlist_guard
    from toolcrib.net import NetGuard

    return allowlist_guard(level.hosts) if level.network is Network.ALLOWLIST else NetGuard()
