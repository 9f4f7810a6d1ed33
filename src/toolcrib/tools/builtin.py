"""The built-in tools, made for one workspace."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from toolcrib.tool import Tool
from toolcrib.tools.delete_file import DeleteFile
from toolcrib.tools.edit_tools import edit_tools
from toolcrib.tools.glob import GlobFiles
from toolcrib.tools.grep import Grep
from toolcrib.tools.list_dir import ListDir
from toolcrib.tools.move_file import MoveFile
from toolcrib.tools.process import Process
from toolcrib.tools.process_list import ProcessList
from toolcrib.tools.process_write import ProcessWrite
from toolcrib.tools.python import Python
from toolcrib.tools.read_file import ReadFile
from toolcrib.tools.shell_kinds import shell_of_kind
from toolcrib.tools.workspace import Workspace
from toolcrib.tools.write_file import WriteFile

if TYPE_CHECKING:
    from toolcrib.command.launch import ShellKind
    from toolcrib.command.sandbox import Level, Sandbox
    from toolcrib.net import NetGuard

SEARCH = (ListDir, GlobFiles, Grep)


def workspace_tools(
    workspace: Workspace,
    *,
    sandbox: Sandbox | None = None,
    level: Level | None = None,
    shell_kind: ShellKind = "bash",
    model: str = "",
    patches: bool | None = None,
    refuse_broken_syntax: bool = False,
) -> list[Tool[Any, Any]]:
    """All built-in tools that need nothing but a workspace, which they share and cannot leave.

    Commands run in `sandbox`, or in the best one that works here at `level`; when that level is read-only, the
    tools that write are neither listed nor run. If commands may use the network and httpx2 is installed,
    `fetch` is included and reaches the same hosts. `workspace.level` can be changed later. Raises ValueError
    when both `sandbox` and `level` are given.

    `model` is the name of the model, such as "openai:gpt-5.1"; by it, or by `patches`, `apply_patch` takes the place of
    `edit_file` and `multi_edit`. The other options are those of `shell_of_kind` and `EditFile`.

    >>> tools = [tool.facts.name for tool in workspace_tools(Workspace("."))]
    >>> " ".join(tools[:6])
    'read_file write_file edit_file multi_edit delete_file move_file'
    >>> " ".join(tools[6:])
    'list_dir glob grep shell process process_write process_list python'
    """
    if sandbox is not None and level is not None:
        raise ValueError("give a sandbox, which was made for a level, or a level, not both")
    if sandbox is not None or level is not None:
        workspace.level = level if sandbox is None else sandbox.level
    edits = edit_tools(workspace, model, patches=patches, refuse_broken_syntax=refuse_broken_syntax)
    search = (make(workspace) for make in SEARCH)
    tools = [
        ReadFile(workspace),
        WriteFile(workspace),
        *edits,
        DeleteFile(workspace),
        MoveFile(workspace),
        *search,
    ]
    if _guard_at(workspace.level) is not None and find_spec("httpx2") is not None:
        from toolcrib.tools.fetch import Fetch

        tools.append(Fetch(lambda: _guard_at(workspace.level)))
    shell = shell_of_kind(shell_kind, workspace, sandbox=sandbox)
    background = (Process(workspace), ProcessWrite(workspace), ProcessList())
    return [*tools, shell, *background, Python(workspace, sandbox=sandbox)]


@lru_cache(16)
def _guard_at(level: Level | None) -> NetGuard | None:
    """The network guard for the hosts that commands may reach; None for no network."""
    from toolcrib.command.sandbox import Network

    if level is None or level.network is Network.OFF:
        return None
    from toolcrib.command.sandbox.egress import allowlist_guard
    from toolcrib.net import NetGuard

    return allowlist_guard(level.hosts) if level.network is Network.ALLOWLIST else NetGuard()
