"""Tools with which a model hands tasks to other agents: `new_task` and what goes with it."""

from __future__ import annotations

from toolcrib.agent.delegation.delegates import Delegate
from toolcrib.agent.delegation.delegation_tools import delegation_tools
from toolcrib.agent.delegation.task_rows import RowResult

__all__ = ["Delegate", "RowResult", "delegation_tools"]
