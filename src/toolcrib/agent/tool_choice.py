"""What a turn asks of the model, and the tools that it may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.messages import Request, ToolChoice

if TYPE_CHECKING:
    from toolcrib.agent.settings import AgentSettings
    from toolcrib.messages import Message
    from toolcrib.toolbox import ToolList

__all__ = ["choice_of", "request_of"]


def request_of(
    settings: AgentSettings, messages: list[Message], tool_list: ToolList, *, chosen: bool, may_call: bool
) -> Request:
    """The request of a turn; `chosen` says that a required tool was called before."""
    choice = choice_of(settings.tool_choice, tool_list, chosen=chosen) if may_call else ToolChoice("none")
    return Request(
        messages=messages,
        tools=tool_list.specs,
        tool_choice=choice,
        parallel_calls=settings.parallel_calls,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        stop=settings.stop,
        logit_bias=settings.logit_bias,
        logprobs=settings.logprobs,
        top_logprobs=settings.top_logprobs,
    )


def choice_of(choice: ToolChoice, tool_list: ToolList, *, chosen: bool) -> ToolChoice:
    """The tool choice of a turn. A required tool is required until it was `chosen`: else the model could never answer.

    ValueError where none of the required tools is in the list.
    """
    if not choice.names:
        return choice
    if choice.mode == "required" and chosen:
        return ToolChoice()
    offered = [spec.name for spec in tool_list.specs]
    if not any(name in offered for name in choice.names):
        names = " or ".join(map(repr, choice.names))
        raise ValueError(
            f"tool_choice asks for {names}, which is not offered; tools are {', '.join(offered)}"
        )
    return choice
