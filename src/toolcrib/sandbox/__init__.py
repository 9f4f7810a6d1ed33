"""Sandboxes for commands: back ends behind one interface, chosen by trying what they promise."""

from __future__ import annotations

from toolcrib.sandbox.bubblewrap import Bubblewrap
from toolcrib.sandbox.environment import environment
from toolcrib.sandbox.interface import (
    Denial,
    Files,
    Launch,
    Level,
    Limits,
    Network,
    Sandbox,
    SandboxError,
    SandboxReport,
    Strength,
)
from toolcrib.sandbox.kernel import hide_own_process
from toolcrib.sandbox.landlock import Landlock
from toolcrib.sandbox.none import NoSandbox
