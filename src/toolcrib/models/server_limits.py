"""What a server says that it cannot do: take tools, or stream. The model goes on without it."""

from __future__ import annotations

import re
from typing import Final, Literal

from toolcrib.codecs.codec import RETRYABLE_STATUS, ModelError

__all__ = ["Lacking", "lacking_in"]

Lacking = Literal["", "tools", "streaming"]

CALLING: Final = r"(?:(?<!parallel )(?<!custom )(?:tool|function)[ _-]?(?:use|calls?|calling))"
TOOLS: Final = rf"(?:\btools\b(?![ _]choice)|{CALLING})"
# "is not supported with this model", and not: "... with structured output".
FOR_THIS_MODEL: Final = r"(?! (?:when|while|together|alongside|(?:in|with|for) (?!this|the|model|your)))"
STREAMING: Final = re.compile(
    r"(?:tool use|tools) in streaming mode"  # Llama, Mistral on Bedrock
    r"|unsupported for streaming|streaming is not supported (?:for|with|by) (?:this|the) model"
)
NO_TOOLS: Final = re.compile(
    rf"do(?:es)?(?: not|n['’]t) (?:currently )?support (?:the )?{TOOLS}{FOR_THIS_MODEL}"
    rf"|{TOOLS}['\"`]? (?:is|are) (?:currently )?(?:not (?:currently )?(?:supported|enabled)|unsupported|disabled)"
    rf"{FOR_THIS_MODEL}"
    r"|function calling not support"  # Novita
    r"|requires --enable-auto-tool-choice"  # vLLM
    r"|no endpoints found that support tool use"  # OpenRouter
    r"|tools param requires --jinja"  # llama.cpp
    r"|unsupported tool_call_parser: none"
    r"|unrecognized request argument supplied: (?:tools|functions)\b"  # older models on Azure
)
OTHER_REASONS: Final = RETRYABLE_STATUS | {401, 402, 403}


def lacking_in(error: ModelError) -> Lacking:
    """What the server of a request with tools lacks, by the words of its error; "" if it is something else.

    >>> lacking_in(ModelError("registry.ollama.ai/library/gemma:2b does not support tools", status=400))
    'tools'
    """
    if error.status in OTHER_REASONS:
        return ""
    words = error.message.lower()
    if STREAMING.search(words):
        return "streaming"
    return "tools" if NO_TOOLS.search(words) else ""
