"""From a ToolCall to a ToolResult: the registry, and the path that a call takes through it."""

from __future__ import annotations

from toolcrib.toolbox.box import Toolbox
from toolcrib.toolbox.policy import Approver, Autonomy, AutonomyPolicy, Decision, Policy, PolicyRequest, Verb
from toolcrib.toolbox.stats import ToolStats
from toolcrib.toolbox.tool_list import ToolList

__all__ = [
    "Approver",
    "Autonomy",
    "AutonomyPolicy",
    "Decision",
    "Policy",
    "PolicyRequest",
    "ToolList",
    "ToolStats",
    "Toolbox",
    "Verb",
]
