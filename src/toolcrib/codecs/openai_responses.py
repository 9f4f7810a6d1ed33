"""OpenAI Responses, also spoken by Azure, xAI, LM Studio, vLLM, Ollama and others: writes requests.

`openai_responses_input.py` writes the conversation; `openai_responses_answer.py` reads whole answers and
`openai_responses_stream.py` streamed ones. Source: https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.openai_chat_answer import read_error
from toolcrib.codecs.openai_responses_answer import read_response
from toolcrib.codecs.openai_responses_input import (
    EMPTY_ITEM,
    InputWriter,
    leading_instructions,
    with_results_of_before,
)
from toolcrib.codecs.openai_responses_native import PLAIN_TYPES, is_native, native_names
from toolcrib.codecs.openai_responses_stream import ResponsesDecoder
from toolcrib.codecs.pairing import CONTINUES, IdRule, write
from toolcrib.codecs.strictness import strictness
from toolcrib.codecs.tool_names import our_names, wire_names
from toolcrib.codecs.wire_json import as_list, own_extras
from toolcrib.dataclass import dataclass, replace
from toolcrib.merged_fields import merged
from toolcrib.messages import Message, Request, Response
from toolcrib.spec import ToolSpec

IDS = IdRule(re.compile(r"[\x21-\x7e]{1,64}"))
# Only models that think can give their thinking out encrypted; the others refuse to be asked.
THINKS = re.compile(r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*-chat)")
THOUGHTS = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
STRICT_DIALECT = "openai-strict"
BEGINS = (*CONTINUES, "prompt")


@dataclass(frozen=True, slots=True)
class ResponsesServer:
    """How one server's Responses differ from the others'."""

    dialect: str = "conservative"
    instructions: bool = False  # not every server takes the field (0xPlaygrounds/rig#1344); all take an item
    allowed_tools: bool = False
    encrypts: bool = False


SERVERS = {
    "openai": ResponsesServer("openai", instructions=True, allowed_tools=True, encrypts=True),
    "xai": ResponsesServer(encrypts=True),
    "ollama": ResponsesServer("ollama"),
}
OTHERS = ResponsesServer()


class OpenAIResponsesCodec:
    """The Responses format.

    `provider` names the server: it selects the row of `SERVERS` (else a careful default) and is the key of the
    extras. `dialect` overrides the row's schema dialect. With `store` false in a request's extras nothing is
    sent that the server would have to look up, and thinking is asked for in a form that can be sent back;
    `previous_response_id` needs no more than the messages that are new.

    >>> from toolcrib.messages import Message
    >>> OpenAIResponsesCodec().request(Request([Message.user("Hi")]), model="gpt-5", stream=False)
    {'model': 'gpt-5', 'input': [{'role': 'user', 'content': 'Hi'}]}
    """

    name = "openai_responses"
    features = Features(
        tool_choice=frozenset({"auto", "none", "required", "one", "set"}),
        parallel_switch=True,
        images=True,
        files=True,
        media_in_results=True,
        reasoning=True,
        items=True,
        partial_arguments=True,
        stop=False,
        logprobs=True,
    )

    def __init__(self, provider: str = "openai", *, dialect: str | None = None) -> None:
        self.provider = provider
        self.server = SERVERS.get(provider, OTHERS)
        self.dialect = dialect or self.server.dialect

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST /responses`."""
        own = own_extras(request, self.provider)
        names = wire_names(request, native_names(request, self.provider))
        body: dict[str, Any] = {"model": model, **self._input(request, own, names)}
        body |= self._tools(request, own, names)
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.top_logprobs is not None:
            body["top_logprobs"] = request.top_logprobs
        if stream:
            body["stream"] = True
        body = merged(body, own)
        asked = as_list(own.get("include"))
        if missing := [name for name in self._included(request, own, model) if name not in asked]:
            body["include"] = [*asked, *missing]
        return body

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        return read_response(body, self.provider, our_names(request, native_names(request, self.provider)))

    def decoder(self, request: Request | None = None) -> ResponsesDecoder:
        """A fresh decoder for one streamed answer."""
        return ResponsesDecoder(self.provider, our_names(request, native_names(request, self.provider)))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _input(self, request: Request, own: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
        fields, stored = dict[str, Any](), own.get("store") is not False
        if any(own.get(name) for name in CONTINUES):
            request = replace(request, messages=with_results_of_before(request.messages, self.provider))

        def without_instructions(head: list[Message]) -> list[Message]:
            if not self.server.instructions or "instructions" in own:
                return head
            text, rest = leading_instructions(head, self.provider)
            fields.update({"instructions": text} if text else {})
            return rest

        made = partial(InputWriter, self.provider, names, stored=stored)
        written = write(request, self, IDS, made, settings=(names, stored), head=without_instructions)
        items = [*written.head_wire, *written.writer.wire]
        if not items and not any(own.get(name) for name in BEGINS):
            items = [EMPTY_ITEM]
        return {**fields, "input": written.wire(items)}

    def _included(self, request: Request, own: dict[str, Any], model: str) -> list[str]:
        """The `include` field: what the answer has to contain beyond the default."""
        thinks = "reasoning" in own or THINKS.match(model) is not None
        stateless = own.get("store") is False and self.server.encrypts and thinks
        wanted = request.logprobs or request.top_logprobs is not None
        return [*([THOUGHTS] if stateless else ()), *([LOGPROBS] if wanted else ())]

    def _tools(self, request: Request, own: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
        choice = request.tool_choice
        wanted = frozenset(choice.names)
        narrowed = bool(wanted) and not self.server.allowed_tools
        specs = [spec for spec in request.tools if not narrowed or spec.name in wanted]
        tools = [self._tool(spec, names) for spec in specs]
        if not tools and not own.get("tools"):
            return {}
        body: dict[str, Any] = {"tools": tools} if tools else {}
        kinds = {spec.name: tool["type"] for spec, tool in zip(specs, tools, strict=True)}
        refs = [_reference(kinds.get(name, "function"), names.get(name, name)) for name in choice.names]
        if choice.mode == "none" or not refs:
            if choice.mode != "auto":
                body["tool_choice"] = choice.mode
        elif choice.mode == "required" and len(refs) == 1:
            body["tool_choice"] = refs[0]
        elif not narrowed:
            body["tool_choice"] = {"type": "allowed_tools", "mode": choice.mode, "tools": refs}
        elif choice.mode == "required":
            body["tool_choice"] = "required"
        if request.parallel_calls is not None:
            body["parallel_tool_calls"] = request.parallel_calls
        return body

    def _tool(self, spec: ToolSpec, names: dict[str, str]) -> dict[str, Any]:
        """A tool's declaration. `strict` is always sent, because its default differs between clients and servers."""
        own = dict(spec.extras.get(self.provider, {}))
        if is_native(own):  # the provider knows its name, description and parameters
            return own
        tool: dict[str, Any] = {
            "type": "function",
            "name": names.get(spec.name, spec.name),
            "description": spec.description,
        }
        if own.get("type", "function") == "function":
            dialect, strict = strictness(spec, self.dialect, own, STRICT_DIALECT)
            tool |= {"parameters": spec.in_dialect(dialect), "strict": strict}
            # From OpenAI's own reference; other servers of the format may refuse a key that they do not know.
            if spec.tells_output and self.provider == "openai":
                tool["output_schema"] = spec.output_schema
        return {**tool, **own}


def _reference(kind: str, name: str) -> dict[str, Any]:
    """How a choice names a tool."""
    return {"type": kind, "name": name} if kind in PLAIN_TYPES else {"type": kind}
