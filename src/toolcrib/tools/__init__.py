"""The built-in tools: files, search, shell and web pages, confined to a workspace by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.command.launch import SAFE_ENV_VARS
    from toolcrib.tools.apply_patch import (
        ApplyPatch,
        ApplyPatchParams,
        FreeformApplyPatch,
        NativeApplyPatch,
    )
    from toolcrib.tools.ask_user import AskUser, AskUserParams
    from toolcrib.tools.batch import Batch, BatchedCall, BatchParams
    from toolcrib.tools.builtin import workspace_tools
    from toolcrib.tools.delete_file import DeleteFile, DeleteFileParams
    from toolcrib.tools.edit_file import EditFile, EditFileParams
    from toolcrib.tools.edit_tools import edit_tools, prefers_patches
    from toolcrib.tools.fetch import Fetch, FetchParams
    from toolcrib.tools.glob import GlobFiles, GlobParams
    from toolcrib.tools.grep import Grep
    from toolcrib.tools.grep_params import GrepParams, LinesAround
    from toolcrib.tools.list_dir import ListDir, ListDirParams
    from toolcrib.tools.move_file import MoveFile, MoveFileParams
    from toolcrib.tools.multi_edit import MultiEdit, MultiEditParams, OneEdit
    from toolcrib.tools.process import Process, ProcessParams, ProcessResult
    from toolcrib.tools.process_list import ListedProcess, ProcessList
    from toolcrib.tools.process_write import ProcessWrite, ProcessWriteParams
    from toolcrib.tools.python import Python
    from toolcrib.tools.python_params import PythonParams, PythonResult
    from toolcrib.tools.read_file import ReadFile, ReadFileParams
    from toolcrib.tools.shell import Shell
    from toolcrib.tools.shell_kinds import shell_of_kind
    from toolcrib.tools.shell_params import ShellParams, ShellResult
    from toolcrib.tools.todo_write import TodoStep, TodoWrite, TodoWriteParams
    from toolcrib.tools.workspace import Workspace
    from toolcrib.tools.write_file import WriteFile, WriteFileParams

__all__ = [
    "SAFE_ENV_VARS",
    "ApplyPatch",
    "ApplyPatchParams",
    "AskUser",
    "AskUserParams",
    "Batch",
    "BatchParams",
    "BatchedCall",
    "DeleteFile",
    "DeleteFileParams",
    "EditFile",
    "EditFileParams",
    "Fetch",
    "FetchParams",
    "FreeformApplyPatch",
    "GlobFiles",
    "GlobParams",
    "Grep",
    "GrepParams",
    "LinesAround",
    "ListDir",
    "ListDirParams",
    "ListedProcess",
    "MoveFile",
    "MoveFileParams",
    "MultiEdit",
    "MultiEditParams",
    "NativeApplyPatch",
    "OneEdit",
    "Process",
    "ProcessList",
    "ProcessParams",
    "ProcessResult",
    "ProcessWrite",
    "ProcessWriteParams",
    "Python",
    "PythonParams",
    "PythonResult",
    "ReadFile",
    "ReadFileParams",
    "Shell",
    "ShellParams",
    "ShellResult",
    "TodoStep",
    "TodoWrite",
    "TodoWriteParams",
    "Workspace",
    "WriteFile",
    "WriteFileParams",
    "edit_tools",
    "prefers_patches",
    "shell_of_kind",
    "workspace_tools",
]

__getattr__ = lazy_names(
    __name__,
    {
        ".command.launch.environment": ("SAFE_ENV_VARS",),
        "apply_patch": ("ApplyPatch", "ApplyPatchParams", "FreeformApplyPatch", "NativeApplyPatch"),
        "edit_tools": ("edit_tools", "prefers_patches"),
        "delete_file": ("DeleteFile", "DeleteFileParams"),
        "move_file": ("MoveFile", "MoveFileParams"),
        "multi_edit": ("MultiEdit", "MultiEditParams", "OneEdit"),
        "ask_user": ("AskUser", "AskUserParams"),
        "batch": ("Batch", "BatchParams", "BatchedCall"),
        "builtin": ("workspace_tools",),
        "edit_file": (
            "EditFile",
            "EditFileParams",
        ),
        "fetch": (
            "Fetch",
            "FetchParams",
        ),
        "glob": (
            "GlobFiles",
            "GlobParams",
        ),
        "grep": ("Grep",),
        "grep_params": (
            "GrepParams",
            "LinesAround",
        ),
        "list_dir": (
            "ListDir",
            "ListDirParams",
        ),
        "process": (
            "Process",
            "ProcessParams",
            "ProcessResult",
        ),
        "process_list": (
            "ListedProcess",
            "ProcessList",
        ),
        "process_write": (
            "ProcessWrite",
            "ProcessWriteParams",
        ),
        "python": ("Python",),
        "python_params": (
            "PythonParams",
            "PythonResult",
        ),
        "read_file": (
            "ReadFile",
            "ReadFileParams",
        ),
        "shell": ("Shell",),
        "shell_params": (
            "ShellParams",
            "ShellResult",
        ),
        "shell_kinds": ("shell_of_kind",),
        "todo_write": ("TodoStep", "TodoWrite", "TodoWriteParams"),
        "workspace": ("Workspace",),
        "write_file": (
            "WriteFile",
            "WriteFileParams",
        ),
    },
)
