"""Sandboxes for commands: back ends behind one interface, chosen by trying what they promise."""

from __future__ import annotations

from toolcrib.command.sandbox.bubblewrap import Bubblewrap
from toolcrib.command.sandbox.choose import choose, warnings
from toolcrib.command.sandbox.environment import environment
from toolcrib.command.sandbox.external import ExternalSandbox
from toolcrib.command.sandbox.interface import (
    Denial,
    Files,
    Launch,
    Level,
    Limits,
    Network,
    Permission,
    Sandbox,
    SandboxError,
    SandboxReport,
    Strength,
)
from toolcrib.command.sandbox.kernel import hide_own_process
from toolcrib.command.sandbox.landlock import Landlock
from toolcrib.command.sandbox.none import NoSandbox
from toolcrib.command.sandbox.seatbelt import Seatbelt

__all__ = [
    "Bubblewrap",
    "Denial",
    "ExternalSandbox",
    "Files",
    "Landlock",
    "Launch",
    "Level",
    "Limits",
    "Network",
    "NoSandbox",
    "Permission",
    "Sandbox",
    "SandboxError",
    "SandboxReport",
    "Seatbelt",
    "Strength",
    "choose",
    "environment",
    "hide_own_process",
    "warnings",
]
