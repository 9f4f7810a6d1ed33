"""toolcrib: typed Python tools for any language model.

Names are loaded when they are first used, so that importing the package costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.agent import Agent, Budget, Outcome, Reason, TranscriptFile
    from toolcrib.call import ToolCall
    from toolcrib.content import Audio, File, Image, Text
    from toolcrib.context import Context
    from toolcrib.effect import Effect
    from toolcrib.errors import ErrorCode, ToolDefinitionError, ToolError
    from toolcrib.function import tool
    from toolcrib.messages import Message
    from toolcrib.models import resolve_model
    from toolcrib.question import Answer, Question, Verdict
    from toolcrib.repair import repair
    from toolcrib.result import ToolResult
    from toolcrib.retry import Retry
    from toolcrib.schema import to_dialect
    from toolcrib.tool import Tool
    from toolcrib.toolbox import Toolbox
    from toolcrib.toolset import ToolFactory, Toolset

__version__ = "0.1.0"

_HOMES = {
    "agent": ("Agent", "Budget", "Outcome", "Reason", "TranscriptFile"),
    "call": ("ToolCall",),
    "content": ("Audio", "File", "Image", "Text"),
    "context": ("Context",),
    "effect": ("Effect",),
    "errors": ("ErrorCode", "ToolDefinitionError", "ToolError"),
    "function": ("tool",),
    "messages": ("Message",),
    "models": ("resolve_model",),
    "question": ("Answer", "Question", "Verdict"),
    "repair": ("repair",),
    "result": ("ToolResult",),
    "retry": ("Retry",),
    "schema": ("to_dialect",),
    "tool": ("Tool",),
    "toolbox": ("Toolbox",),
    "toolset": ("ToolFactory", "Toolset"),
}
__all__ = [
    "Agent",
    "Answer",
    "Audio",
    "Budget",
    "Context",
    "Effect",
    "ErrorCode",
    "File",
    "Image",
    "Message",
    "Outcome",
    "Question",
    "Reason",
    "Retry",
    "Text",
    "Tool",
    "ToolCall",
    "ToolDefinitionError",
    "ToolError",
    "ToolFactory",
    "ToolResult",
    "Toolbox",
    "Toolset",
    "TranscriptFile",
    "Verdict",
    "repair",
    "resolve_model",
    "to_dialect",
    "tool",
]


__getattr__ = lazy_names(__name__, _HOMES)
