"""From a ToolCall to a ToolResult: the registry, and the path that a call takes through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names
from toolcrib.middleware import ExecuteStep, NextExecute, NextPrepare, PrepareStep

if TYPE_CHECKING:
    from toolcrib.toolbox.approval import Approval
    from toolcrib.toolbox.approvals import ApprovalStorage
    from toolcrib.toolbox.box import Toolbox
    from toolcrib.toolbox.options import AutonomyName, ToolboxOptions
    from toolcrib.toolbox.policy import (
        Approver,
        Autonomy,
        AutonomyPolicy,
        Decision,
        Policy,
        PolicyRequest,
        Verb,
    )
    from toolcrib.toolbox.report import Record
    from toolcrib.toolbox.reviewer import Review, Reviewer, ReviewRequest
    from toolcrib.toolbox.runs import Limiter, Provenance
    from toolcrib.toolbox.stats import ToolStats
    from toolcrib.toolbox.tool_list import ToolList


__all__ = [
    "Approval",
    "ApprovalStorage",
    "Approver",
    "Autonomy",
    "AutonomyName",
    "AutonomyPolicy",
    "Decision",
    "ExecuteStep",
    "Limiter",
    "NextExecute",
    "NextPrepare",
    "Policy",
    "PolicyRequest",
    "PrepareStep",
    "Provenance",
    "Record",
    "Review",
    "ReviewRequest",
    "Reviewer",
    "ToolList",
    "ToolStats",
    "Toolbox",
    "ToolboxOptions",
    "Verb",
]

__getattr__ = lazy_names(
    __name__,
    {
        "approval": ("Approval",),
        "approvals": ("ApprovalStorage",),
        "box": ("Toolbox",),
        "options": (
            "AutonomyName",
            "ToolboxOptions",
        ),
        "policy": (
            "Approver",
            "Autonomy",
            "AutonomyPolicy",
            "Decision",
            "Policy",
            "PolicyRequest",
            "Verb",
        ),
        "report": ("Record",),
        "reviewer": ("Review", "ReviewRequest", "Reviewer"),
        "runs": (
            "Limiter",
            "Provenance",
        ),
        "stats": ("ToolStats",),
        "tool_list": ("ToolList",),
    },
)
