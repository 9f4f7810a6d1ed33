"""The options of a Toolbox as a type, for whoever hands them on, such as Agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar

from toolcrib.call import CallKey
from toolcrib.events import Event
from toolcrib.facts import MaxOutput
from toolcrib.middleware import ExecuteStep, PrepareStep
from toolcrib.toolbox.approvals import ApprovalStorage
from toolcrib.toolbox.policy import Approver, Policy
from toolcrib.toolbox.report import Record
from toolcrib.toolbox.reviewer import Reviewer
from toolcrib.toolbox.runs import Limiter
from toolcrib.toolbox.tool_list import ToolList
from toolcrib.toolset import ToolLike

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import TypeVar as DefaultingTypeVar

    from toolcrib.audit import AuditLog
    from toolcrib.rules.limits import Limit
    from toolcrib.secrets import SecretStore

    Deps = DefaultingTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")

__all__ = ["AutonomyName", "CallOptions", "Deps", "ToolboxOptions"]

AutonomyName = Literal["read_only", "supervised", "sandboxed", "full"]


class ToolboxOptions(TypedDict, Generic[Deps], total=False):
    """The options of a Toolbox; the docstring of `Toolbox` says what each is."""

    autonomy: AutonomyName
    policy: Policy | None
    approver: Approver | None
    reviewer: Reviewer | None
    answer_timeout: float | None
    approvals: ApprovalStorage | None
    audit: AuditLog | None
    secrets: SecretStore | None
    limits: Limiter | Iterable[Limit] | None
    project: Path | None
    deps: Deps | None
    timeout: float
    max_output: MaxOutput
    overflow: Path | None
    on_event: Callable[[Event], Any] | None
    around_prepare: Iterable[PrepareStep]
    around_execute: Iterable[ExecuteStep]
    override: bool
    builtin: Iterable[ToolLike]
    tracer: Any
    meter: Any
    record_content: bool
    grace: float
    clock: Callable[[], float]
    timer: Callable[[], float]
    random: Callable[[], float]


class CallOptions(TypedDict, Generic[Deps], total=False):
    """The options of a call; the docstrings of `Toolbox.call` and `Toolbox.execute` say what each is."""

    key: CallKey | None
    tool_list: ToolList | None
    deps: Deps | None
    timeout: float | None
    record: Record | None
