"""How the servers of Chat Completions differ: one row each. A server without a row gets the careful `OTHERS`."""

from __future__ import annotations

import re
from typing import Any

from toolcrib.codecs.pairing import EMPTY_TURN, IdRule
from toolcrib.dataclass import dataclass

ANY_ID = IdRule(re.compile(r"[\x21-\x7e]{1,256}"))
OPENAI_ID = IdRule(re.compile(r"[\x21-\x7e]{1,40}"))
MISTRAL_ID = IdRule(re.compile("[A-Za-z0-9]{9}"), "", 9)
ALL_BUT_SETS = frozenset({"auto", "none", "required", "one"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServer:
    """How one server's Chat Completions differ from the others'.

    `choices` are the kinds of `tool_choice` that the server obeys, `required` its word for "required".
    Reasoning is sent back as it came; `no_thinking` is sent with calls that came without reasoning (from
    another provider, say) where the server insists on the field. `strict_order`: see `in_strict_order`.
    """

    dialect: str = "conservative"
    ids: IdRule = ANY_ID
    max_tokens: str = "max_tokens"
    stream_usage: bool = True
    choices: frozenset[str] = ALL_BUT_SETS
    required: str = "required"
    no_thinking: str | None = None
    logit_bias: bool = True
    logprobs: bool = True
    strict_order: bool = False


# https://platform.openai.com/docs/api-reference/chat/create; ids of more than 40 characters are refused.
OPENAI = ChatServer(
    dialect="openai", ids=OPENAI_ID, max_tokens="max_completion_tokens", choices=ALL_BUT_SETS | {"set"}
)

SERVERS = {
    "openai": OPENAI,
    # https://learn.microsoft.com/azure/ai-foundry/openai/latest: the same API below /openai/v1
    "azure": OPENAI,
    # https://docs.mistral.ai/api: ids are nine letters or digits, "any" is its word for a call that has to
    # come, usage comes unasked, and fields that it does not know (it has no log-probabilities) are a 422
    "mistral": ChatServer(
        ids=MISTRAL_ID,
        stream_usage=False,
        required="any",
        logit_bias=False,
        logprobs=False,
        strict_order=True,
    ),
    # https://api-docs.deepseek.com/guides/thinking_mode: a turn with calls is a 400 without its thinking,
    # from then on; in other turns it is ignored (only the deepseek-reasoner of 2025 refused it). An empty
    # one is taken (theopenco/llmgateway#2093). The reference lists no logit_bias.
    "deepseek": ChatServer(no_thinking="", logit_bias=False),
    # "thinking is enabled but reasoning_content is missing in assistant tool call message": an empty one is
    # missing too, a space is not (theopenco/llmgateway#2093, earendil-works/pi#4178); tokens are limited by
    # max_completion_tokens (https://platform.kimi.ai/docs/api/chat)
    "moonshot": ChatServer(max_tokens="max_completion_tokens", no_thinking=" "),
    # https://console.groq.com/docs/openai: logprobs, top_logprobs and logit_bias are a 400
    "groq": ChatServer(logit_bias=False, logprobs=False),
    # https://docs.x.ai/docs/api-reference: logit_bias is listed as unsupported
    "xai": ChatServer(logit_bias=False),
    # https://docs.ollama.com/api/openai-compatibility: neither tool_choice nor logit_bias is heeded
    "ollama": ChatServer(dialect="ollama", choices=frozenset({"auto"}), logit_bias=False),
}
OTHERS = ChatServer()

RESULTS_SEEN = "I have the results."


def in_strict_order(before: str, message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message in the order of roles that Mistral requires (its `mistral_common` refuses any other), after one of the
    role `before`.

    An assistant message separates results from a user message; system messages stand before the first answer,
    later ones become user messages.
    """
    if message["role"] == "system" and before in ("assistant", "tool"):
        message = {**message, "role": "user", "content": _marked(message["content"])}
    if message["role"] == "user" and before == "tool":
        return [{"role": "assistant", "content": RESULTS_SEEN}, message]
    return [message]


def strict_end(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages to add at the end: the last may not be the assistant's, unless it is to be continued (`prefix`)."""
    last = messages[-1] if messages else {}
    ends_with_answer = last.get("role") == "assistant" and not last.get("prefix")
    return [{"role": "user", "content": EMPTY_TURN}] if ends_with_answer else []


def _marked(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return f"<system>\n{content}\n</system>"
    return [{"type": "text", "text": "<system>"}, *content, {"type": "text", "text": "</system>"}]
