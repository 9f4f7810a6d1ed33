"""The settings of an agent, as each of its runs reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from toolcrib.agent.clear_results import ClearOldResults
from toolcrib.agent.outcome import Budget
from toolcrib.dataclass import dataclass, field
from toolcrib.errors import is_object_with
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

    def __post_init__(self) -> None:
        given: Any = self.instructions
        if not isinstance(given, str) and not callable(given):
            raise TypeError(f"instructions are a text, or a function that gives one, got {given!r}")
        if callable(given) and _wants_arguments(given):
            raise TypeError(f"instructions must be a function without parameters, got {given!r}")
        if not isinstance(self.budget, Budget):
            raise TypeError(
                f"budget must be a Budget, as in Budget(cost=0.50, seconds=600), got {self.budget!r}"
            )
        if not isinstance(self.conversation_budget, Budget) or self.conversation_budget.seconds is not None:
            raise TypeError(
                "conversation_budget must be a Budget of tokens, cost or calls (seconds are those of a run: "
                f"budget=Budget(seconds=...)), got {self.conversation_budget!r}"
            )
        for option, number in (("max_turns", self.max_turns), ("max_failures", self.max_failures)):
            if not isinstance(number, int) or number < 1:
                raise TypeError(f"{option} must be a whole number from 1, got {number!r}")
        choice = self.tool_choice
        if not self.completion_tool and choice.mode == "required" and not choice.names:
            raise TypeError("tool_choice='required' needs attempt_completion: without it no run could answer")
        if self.context is not None and not isinstance(self.context, ClearOldResults):
            raise TypeError(f"context must be a ClearOldResults, got {self.context!r}")
        if self.checkpoints is not None and not is_object_with(self.checkpoints, "begin_turn"):
            raise TypeError(f"checkpoints must be a Checkpoints of a workspace, got {self.checkpoints!r}")


def _wants_arguments(make: Callable[..., Any]) -> bool:
    """Whether a function cannot be called without arguments. False for a function whose signature is unknown."""
    try:
        signature(make).bind()
    except TypeError:
        return True
    except ValueError:  # a builtin without a signature
        pass
    return False
