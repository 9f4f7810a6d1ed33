"""toolcrib: typed Python tools for any language model.

Names are loaded when they are first used, so that importing the package costs almost nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

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
    "toolcrib.agent": ("Agent", "Budget", "Outcome", "Reason", "TranscriptFile"),
    "toolcrib.call": ("ToolCall",),
    "toolcrib.content": ("Audio", "File", "Image", "Text"),
    "toolcrib.context": ("Context",),
    "toolcrib.effect": ("Effect",),
    "toolcrib.errors": ("ErrorCode", "ToolDefinitionError", "ToolError"),
    "toolcrib.function": ("tool",),
    "toolcrib.messages": ("Message",),
    "toolcrib.models": ("resolve_model",),
    "toolcrib.question": ("Answer", "Question", "Verdict"),
    "toolcrib.repair": ("repair",),
    "toolcrib.result": ("ToolResult",),
    "toolcrib.retry": ("Retry",),
    "toolcrib.schema": ("to_dialect",),
    "toolcrib.tool": ("Tool",),
    "toolcrib.toolbox": ("Toolbox",),
    "toolcrib.toolset": ("ToolFactory", "Toolset"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """Importing a submodule binds it to its package; `tool` and `repair` must stay the functions they are."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOME_OF):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
