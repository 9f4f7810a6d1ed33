"""Calls that a server could not read: it answers with an error, or with a stop reason, in place of the call.

Such an answer becomes a call that is never run: the model is told what was wrong and goes on, and the failure counts
like any other. The same request sent again often fails the same way, and an error would end the run.
"""

from __future__ import annotations

import re
from typing import Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import PERMANENT_STATUS, RETRYABLE_STATUS, ModelError
from toolcrib.codecs.tool_names import wire_names
from toolcrib.codecs.wire_json import as_dict, as_str
from toolcrib.dataclass import replace
from toolcrib.messages import Message, Request, Response

__all__ = ["answer_to", "is_malformed", "unread_call", "with_unread_call"]

# Groq's codes, https://console.groq.com/docs/errors; both come with the status 400.
CODES: Final = frozenset({"tool_use_failed", "output_parse_failed"})
# What servers say of a call that they could not read, and in which part of it they repeat what the model wrote.
SENTENCES: Final = (
    re.compile(r"failed to (?:call a function|generate tool[_ ]calls?)"),  # Groq; Cerebras
    re.compile(r"tool call validation failed"),  # Groq
    re.compile(r"error parsing tool call(?:: raw='(?P<written>.*?)'(?:, err=|$))?", re.DOTALL),  # Ollama
    re.compile(r"invalid sequence as part of tooluse"),  # Bedrock
    re.compile(r"failed to parse input at pos \d+(?:: (?P<written>.*))?", re.DOTALL),  # llama.cpp
    re.compile(
        r"failed to parse tool calls?(?! arguments)"
    ),  # LM Studio; of llama.cpp it is about the history
    re.compile(r"validation error for list\[function-wrap"),  # vLLM, for a call that is required
)
STOP: Final = re.compile(r"malformed_(?:function_call|tool_use|tool_call)|unexpected_tool_call")
LONGEST_REASON: Final = 500
UNREAD: Final = "the server says: {}; write the call again, with one complete JSON object of arguments"


def unread_call(words: str, written: str = "") -> ToolCall:
    """The call that stands for what a server could not read."""
    return ToolCall("", written, problem=UNREAD.format(words[:LONGEST_REASON].rstrip(". ")))


def is_malformed(stop: str) -> bool:
    """Whether a stop reason says that the server could not read a call."""
    return STOP.search(stop.lower()) is not None


def with_unread_call(error: ModelError, body: Any) -> ModelError:
    """The error, with the call that its body says the server could not read, if it says so."""
    if error.status in PERMANENT_STATUS - {422} or error.status in RETRYABLE_STATUS:
        return error
    fields = as_dict(as_dict(body).get("error")) or as_dict(body)
    lower = error.message.lower()
    found = next((match for sentence in SENTENCES if (match := sentence.search(lower))), None)
    written = fields.get("failed_generation")
    if found is None and not isinstance(written, str) and as_str(fields.get("code")) not in CODES:
        return error
    words = error.message
    if found is not None and not isinstance(written, str) and "written" in found.re.groupindex:
        start, end = found.span("written")
        written = error.message[start:end] if start >= 0 else ""
        words = error.message[: start if start >= 0 else None].removesuffix(" raw='")
    error.unread = unread_call(words.rstrip(": "), as_str(written))
    return error


def answer_to(error: ModelError, request: Request) -> Response | None:
    """The answer that stands for an unreadable call, named after the first tool in what the model wrote; None for any
    other error.
    """
    if error.unread is None or not request.tools:
        return None
    call, names = error.unread, wire_names(request)
    text = f"{call.arguments} {call.problem}"
    places = [(place, spec.name) for spec in request.tools if (place := _place(names, spec.name, text)) >= 0]
    parts = (
        [part for part in error.partial.message.parts if not isinstance(part, ToolCall)]
        if error.partial
        else []
    )
    answer = Message("assistant", [*parts, replace(call, name=min(places)[1] if places else "")])
    response = Response(answer) if error.partial is None else replace(error.partial, message=answer)
    return replace(response, stop_reason="tool_calls")


def _place(names: dict[str, str], name: str, text: str) -> int:
    found = re.search(rf"(?<![\w-]){re.escape(names.get(name, name))}(?![\w-])", text)
    return -1 if found is None else found.start()
