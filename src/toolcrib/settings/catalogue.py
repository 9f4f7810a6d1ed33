"""The built-in tools, each with the group that it belongs to and whether it is on unless a setting says otherwise."""

from __future__ import annotations

from toolcrib.dataclass import dataclass

__all__ = ["CATALOGUE", "DELEGATION", "GROUPS", "BuiltIn"]

GROUPS = {
    "files": "Read and change files of the workspace.",
    "search": "Find files, and text in them.",
    "commands": "Run commands and Python code, also in the background.",
    "web": "Read pages of the web, as far as commands may use the network.",
    "memory": "Remember short texts for later runs.",
    "planning": "Show the plan of the work, and ask the user.",
    "skills": "Read the instructions of skill folders.",
    "delegation": "Hand tasks to other agents.",
    "batch": "Make several calls in one.",
}


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in tool, and whether it is `on` by default. One that stands `alone` is not switched on with its group."""

    name: str
    group: str
    on: bool = True
    alone: bool = False


OFF = {"new_task", "task_check", "task_cancel", "task_message"}
ALONE = {"task_rows", "memory"}
CATALOGUE = tuple(
    BuiltIn(name, group, on=name not in OFF | ALONE | {"batch"}, alone=name in ALONE)
    for group, names in {
        "files": "read_file write_file edit_file multi_edit apply_patch delete_file move_file",
        "search": "list_dir glob grep",
        "commands": "shell process process_write process_list python",
        "web": "fetch",
        "memory": "memory_store memory_recall memory_forget memory",
        "planning": "todo_write ask_user",
        "skills": "skill",
        "delegation": "new_task task_check task_cancel task_message task_rows",
        "batch": "batch",
    }.items()
    for name in names.split()
)
DELEGATION = frozenset(row.name for row in CATALOGUE if row.group == "delegation")
