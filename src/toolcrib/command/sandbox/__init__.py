"""Sandboxes for commands: back ends behind one interface, chosen by trying whether they do what they promise.

`level` says what commands may do, `interface` what a back end is and hands out, `choose` which one is taken. `files/`
holds which files a command sees, `process/` what its process is put under before it starts.

To add a back end, write a module beside `landlock` with a subclass of `ConfiningSandbox` (in `confining`): a `name`, a
`confine` that changes a launch so that its command runs confined, and a `report` that says what that is worth. Then add
a row to `ORDER` in `choose`, which uses it where `probe` finds that it holds. `python -m pytest
tests/test_sandbox_escapes.py` tries 129 ways out of it once it is named in `tests/escape/driver.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.command.sandbox.bubblewrap import Bubblewrap
    from toolcrib.command.sandbox.choose import ORDER, SandboxBackend, choose, warnings, why_not_contained
    from toolcrib.command.sandbox.confining import ConfiningSandbox
    from toolcrib.command.sandbox.environment import environment
    from toolcrib.command.sandbox.files.file_view import FileView
    from toolcrib.command.sandbox.in_force import SandboxInForce
    from toolcrib.command.sandbox.interface import Denial, Launch, Sandbox, SandboxReport, Strength
    from toolcrib.command.sandbox.landlock import Landlock
    from toolcrib.command.sandbox.level import Files, Level, Limits, Network, Permission, SandboxError
    from toolcrib.command.sandbox.process.kernel import hide_own_process
    from toolcrib.command.sandbox.seatbelt import Seatbelt
    from toolcrib.command.sandbox.unconfined import ExternalSandbox, NoSandbox


__all__ = [
    "ORDER",
    "Bubblewrap",
    "ConfiningSandbox",
    "Denial",
    "ExternalSandbox",
    "FileView",
    "Files",
    "Landlock",
    "Launch",
    "Level",
    "Limits",
    "Network",
    "NoSandbox",
    "Permission",
    "Sandbox",
    "SandboxBackend",
    "SandboxError",
    "SandboxInForce",
    "SandboxReport",
    "Seatbelt",
    "Strength",
    "choose",
    "environment",
    "hide_own_process",
    "warnings",
    "why_not_contained",
]

__getattr__ = lazy_names(
    __name__,
    {
        "bubblewrap": ("Bubblewrap",),
        "choose": (
            "ORDER",
            "SandboxBackend",
            "choose",
            "warnings",
            "why_not_contained",
        ),
        "confining": ("ConfiningSandbox",),
        "environment": ("environment",),
        "files.file_view": ("FileView",),
        "in_force": ("SandboxInForce",),
        "interface": (
            "Denial",
            "Launch",
            "Sandbox",
            "SandboxReport",
            "Strength",
        ),
        "landlock": ("Landlock",),
        "level": (
            "Files",
            "Level",
            "Limits",
            "Network",
            "Permission",
            "SandboxError",
        ),
        "process.kernel": ("hide_own_process",),
        "seatbelt": ("Seatbelt",),
        "unconfined": (
            "ExternalSandbox",
            "NoSandbox",
        ),
    },
)
