"""The tools that a turn may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.messages import ToolChoice

if TYPE_CHECKING:
    from toolcrib.toolbox import ToolList

__all__ = ["choice_of"]


def choice_of(choice: ToolChoice, tool_list: ToolList, *, chosen: bool) -> ToolChoice:
    """What a turn may call. A required tool is required once, until it was `chosen`: else the model could never answer.

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
