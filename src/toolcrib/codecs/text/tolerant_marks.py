"""The tags that announce calls to the tolerant reader."""

from __future__ import annotations

from itertools import product
from typing import Final

from toolcrib.codecs.text.scanner import Markers

NAMESPACES: Final = ("", "minimax:", "antml:", "seed:", "steptml:")
WRAPPERS: Final = (
    *("tool_call", "tool_calls", "toolcall", "toolcalls", "tool-call", "tool-calls", "tool_use"),
    *("function_call", "function_calls", "function-call", "function-calls", "functioncall", "functioncalls"),
    "invoke",
)
TAG_NAMES: Final = tuple(space + name for space, name in product(NAMESPACES, WRAPPERS))
OPENERS: Final = tuple(f"<{name}" for name in TAG_NAMES)
BRACKET: Final = "[TOOL_CALL]"
FUNCTION: Final = "<function="
CLOSERS: Final = (*(f"</{name}>" for name in TAG_NAMES), "</function>", "</arg_value>", "[/TOOL_CALL]")
STOPS: Final = (*OPENERS, *CLOSERS)

TOOLS: Final = "<tools"
OPENER_MARKS: Final = Markers((*OPENERS, BRACKET, FUNCTION), ignore_case=True)
CLOSER_MARKS: Final = Markers(CLOSERS, ignore_case=True)
END_MARKS: Final = Markers((*CLOSERS, *OPENERS, BRACKET), ignore_case=True)

FENCES: Final = frozenset(WRAPPERS)  # code fences of these languages hold calls
