"""The options of a Toolbox as a type, for whoever hands them on, such as Agent."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar

from toolcrib.call import CallKey
from toolcrib.errors import is_object_with
from toolcrib.events import Event
from toolcrib.facts import MaxOutput
from toolcrib.middleware import ExecuteStep, PrepareStep
from toolcrib.toolbox.approvals import ApprovalStorage
from toolcrib.toolbox.policy import Approver, Policy
from toolcrib.toolbox.report import Record
from toolcrib.toolbox.reviewer import Reviewer
from toolcrib.toolbox.runs import Limiter
from toolcrib.toolbox.tool_list import ToolList
from toolcrib.toolset import A_TOOLBOX, ToolLike

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import TypeVar as DefaultingTypeVar

    from toolcrib.audit import AuditLog
    from toolcrib.rules.limits import Limit
    from toolcrib.secrets import SecretStore

    Deps = DefaultingTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")

__all__ = ["AutonomyName", "CallOptions", "Deps", "ToolboxOptions", "check_options"]

OBJECTS = {  # by option: a method that its object has, and such an object
    "approvals": ("add", "ApprovalStore(path)"),
    "audit": ("decided", "AuditLog(path, key=key)"),
    "overflow": ("mkdir", "Path('outputs')"),
    "secrets": ("names", "Environment(names) or SecretFile(path)"),
}

AutonomyName = Literal["read_only", "supervised", "sandboxed", "full"]
"""How much may run unasked, the least first."""


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


def check_options(*, tools: Any, approver: Any, max_output: Any, **given: Any) -> None:
    """Raises TypeError for options of a Toolbox that cannot be what they should be, such as a path for an object."""
    if approver is not None and not callable(approver):
        raise TypeError(f"approver must be a function of a Question, sync or async, got {approver!r}")
    for name, value in given.items():
        method, example = OBJECTS[name]
        if value is not None and not is_object_with(value, method):
            shown = f"got {reprlib.repr(value)}"
            raise TypeError(f"{name} must be an object with {method}(...), such as {example}; {shown}")
    if not isinstance(max_output, MaxOutput):
        raise TypeError(
            f"max_output must be a MaxOutput, such as MaxOutput(bytes=50_000); got {max_output!r}"
        )
    if hasattr(tools, "call_turn"):
        raise TypeError(f"tools must be a list of tools; {A_TOOLBOX}")
    if not isinstance(tools, Iterable):
        got = "None: write [] for none" if tools is None else f"the single {tools!r}: write [{tools!r}]"
        raise TypeError(f"tools must be a list of tools; got {got}")
