"""The settings of an agent, as each of its runs reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.agent.clear_results import ClearOldResults
from toolcrib.agent.outcome import Budget
from toolcrib.dataclass import dataclass, field
from toolcrib.messages import ToolChoice
from toolcrib.models.model import Model
from toolcrib.toolbox import Toolbox

if TYPE_CHECKING:
    from toolcrib.agent.completion_tool import CompletionTool
    from toolcrib.checkpoints import Checkpoints

__all__ = ["AgentSettings", "Instructions"]

Instructions = str | Callable[[], str | Awaitable[str]]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What `Agent(...)` was given, checked. Its docstring says what each setting means."""

    name: str
    model: Model
    toolbox: Toolbox[Any]
    instructions: Instructions
    max_turns: int
    max_failures: int
    budget: Budget
    conversation_budget: Budget
    max_tokens: int | None
    temperature: float | None
    tool_choice: ToolChoice
    parallel_calls: bool | None
    stats_hint: bool
    early_start: bool
    completion_tool: bool
    context: ClearOldResults | None
    checkpoints: Checkpoints | None
    suspends: bool  # a run ends at a question, and goes on by `Agent.resume`
    stop: tuple[str, ...] = ()
    logit_bias: Mapping[str, float] | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    completion: CompletionTool | None = None  # what a typed run answers with; None for text
    agent: object = field(default_factory=object)  # the same in all copies of the settings
