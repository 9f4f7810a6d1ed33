"""From a ToolCall to a ToolResult: the registry, and the path that a call takes through it."""

from __future__ import annotations

from toolcrib.toolbox.box import Toolbox
from toolcrib.toolbox.policy import Approver, Autonomy, AutonomyPolicy, Case, Decision, Policy, Verb
from toolcrib.toolbox.registry import Offer
from toolcrib.toolbox.stats import ToolStats

__all__ = [
    "Approver",
    "Autonomy",
    "AutonomyPolicy",
    "Case",
    "Decision",
    "Offer",
    "Policy",
    "ToolStats",
    "Toolbox",
    "Verb",
]
