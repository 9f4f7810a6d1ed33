"""Sandboxes for commands: back ends behind one interface, chosen by trying what they promise."""

from __future__ import annotations

from toolcrib.sandbox.bubblewrap import Bubblewrap
from toolcrib.sandbox.choose import choose, warnings
from toolcrib.sandbox.environment import environment
from toolcrib.sandbox.external import ExternalSandbox
from toolcrib.sandbox.interface import (
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
from toolcrib.sandbox.kernel import hide_own_process
from toolcrib.sandbox.landlock import Landlock
from toolcrib.sandbox.none import NoSandbox
from toolcrib.sandbox.seatbelt import Seatbelt

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
