"""The built-in tools, made for one backend."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from toolcrib.tool import Tool
from toolcrib.tools.workspace import Workspace

if TYPE_CHECKING:
    from toolcrib.command.launch import ShellKind
    from toolcrib.command.sandbox import Level, Sandbox
    from toolcrib.net import NetGuard
    from toolcrib.tools.backends.protocol import Backend

# The classes of tools whose modules have their names
CLASSES = {
    "read_file": "ReadFile", "write_file": "WriteFile", "delete_file": "DeleteFile", "move_file": "MoveFile",
    "list_dir": "ListDir", "glob": "GlobFiles", "grep": "Grep", "process": "Process", "process_write": "ProcessWrite",
    "process_list": "ProcessList",
}  # fmt: skip
EDITS = ("edit_file", "multi_edit", "apply_patch")


def _any(name: str) -> bool:
    return True


def workspace_tools(
    files: Backend,
    *,
    sandbox: Sandbox | None = None,
    level: Level | None = None,
    shell_kind: ShellKind = "bash",
    passthrough: Collection[str] = (),
    model: str = "",
    patches: bool | None = None,
    refuse_broken_syntax: bool = False,
    wanted: Callable[[str], bool] = _any,
) -> list[Tool[Any, Any]]:
    """All built-in tools that need nothing but the files of a workspace or another backend, to which they are confined.

    Commands run in `sandbox`, or in the best one that works here at `level`; when that level is read-only, the
    tools that write are neither listed nor run. If commands may use the network and httpx2 is installed,
    `fetch` is included and reaches the same hosts. `workspace.level` can be changed later. Raises ValueError
    when both `sandbox` and `level` are given, or one of them where no command runs in a folder of this machine.

    Over a `CommandBackend` commands run where its files are, without `python`; where no command runs, as over a
    `MemoryBackend`, there are the tools for files alone.

    `model` is the name of the model, such as "openai:gpt-5.1"; by it, or by `patches`, `apply_patch` takes the place of
    `edit_file` and `multi_edit`. Tools whose names are not `wanted` are not even imported. The other options are
    those of `shell_of_kind` and `EditFile`.

    >>> tools = [tool.facts.name for tool in workspace_tools(Workspace("."))]
    >>> " ".join(tools[:6])
    'read_file write_file edit_file multi_edit delete_file move_file'
    >>> " ".join(tools[6:])
    'list_dir glob grep shell process process_write process_list python'
    """
    if sandbox is not None and level is not None:
        raise ValueError("give a sandbox, which was made for a level, or a level, not both")
    place = files.command_backend()
    workspace = place if isinstance(place, Workspace) else None
    if sandbox is not None or level is not None:
        if workspace is None:
            raise ValueError(
                f"a sandbox and its level are for commands in a folder of this machine, not for {files!r}"
            )
        workspace.level = level if sandbox is None else sandbox.level

    def made(*names: str, **options: Any) -> Iterator[Tool[Any, Any]]:
        for name in filter(wanted, names):
            make = getattr(import_module(f".{name}", __package__), CLASSES[name])
            yield make(files, **options)

    tools = [*made("read_file", "write_file")]
    if any(map(wanted, EDITS)):
        from toolcrib.tools.edit_tools import edit_tools

        edits = edit_tools(files, model, patches=patches, refuse_broken_syntax=refuse_broken_syntax)
        tools += [tool for tool in edits if wanted(tool.facts.name)]
    tools += made("delete_file", "move_file", "list_dir", "glob", "grep")
    if workspace is not None and wanted("fetch") and _may_fetch(workspace):
        from toolcrib.tools.fetch import Fetch

        tools.append(Fetch(lambda: _guard_at(workspace.level)))
    if place is None:
        return tools
    if wanted("shell"):
        from toolcrib.tools.shell_kinds import shell_of_kind

        tools.append(shell_of_kind(shell_kind, files, sandbox=sandbox, passthrough=passthrough))
    tools += made("process", "process_write", "process_list")
    if workspace is not None and wanted("python"):
        from toolcrib.tools.python import Python

        tools.append(Python(workspace, sandbox=sandbox, passthrough=passthrough))
    return tools


def _may_fetch(workspace: Workspace) -> bool:
    return _guard_at(workspace.level) is not None and find_spec("httpx2") is not None


@lru_cache(16)
def _guard_at(level: Level | None) -> NetGuard | None:
    """The network guard for the hosts that commands may reach; None for no network."""
    from toolcrib.command.sandbox import Network

    if level is None or level.network is Network.OFF:
        return None
    from toolcrib.command.sandbox.egress import allowlist_guard
    from toolcrib.net import NetGuard

    return allowlist_guard(level.hosts) if level.network is Network.ALLOWLIST else NetGuard()
