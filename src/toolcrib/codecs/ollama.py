"""Ollama's own chat format. Tool calls come whole, with their arguments as objects; older servers send no ids.

Source: https://docs.ollama.com/api/chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.ollama_answer import OllamaDecoder, read_error, read_response
from toolcrib.codecs.pairing import EMPTY_TURN, MISSING_IDS, Answered, ConversationStep, IdRule, write
from toolcrib.codecs.tool_names import our_names, wire_names
from toolcrib.codecs.wire_json import arguments_object, as_dict, own_extras
from toolcrib.content import Image, Json, Media, Text
from toolcrib.merged_fields import merged
from toolcrib.messages import Reasoning, Request, Response

ANY_ID = IdRule(re.compile(r"[\x21-\x7e]{1,256}"))
THINKING = "thinking"


class OllamaCodec:
    """The format of `POST /api/chat`.

    `provider` is the key of the extras: thinking, which goes back to the same provider alone, and `think`,
    `format`, `keep_alive` or `options` of a request (its `options` join ours). `dialect` is that of the
    schemas. The format has no `tool_choice`: a choice is met by sending fewer tools; "required" cannot be
    expressed.

    >>> from toolcrib.messages import Message
    >>> OllamaCodec().request(Request([Message.user("Hi")], max_tokens=9), model="qwen3", stream=False)
    {'model': 'qwen3', 'messages': [{'role': 'user', 'content': 'Hi'}], 'options': {'num_predict': 9}, 'stream': False}
    """

    name = "ollama"
    features = Features(tool_choice=frozenset({"auto"}), images=True, reasoning=True, logprobs=True)

    def __init__(self, provider: str = "ollama", *, dialect: str | None = None) -> None:
        self.provider = provider
        self.dialect = dialect or "ollama"

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST /api/chat`."""
        names = wire_names(request)
        made = partial(_Writer, self.provider, names)
        written = write(request, self, ANY_ID, made, settings=names, head=list)
        wire = [*written.head_wire, *written.writer.wire]
        own = own_extras(request, self.provider)
        body: dict[str, Any] = {
            "model": model,
            "messages": written.wire(wire or [{"role": "user", "content": EMPTY_TURN}]),
        }
        if tools := self._tools(request, names):
            body["tools"] = tools
        if options := _options(request):
            body["options"] = options
        if request.logprobs or request.top_logprobs is not None:
            body["logprobs"] = True
            if request.top_logprobs is not None:
                body["top_logprobs"] = request.top_logprobs
        return merged(body, own) | {"stream": stream}  # it streams where it is not told not to

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        return read_response(body, self.provider, our_names(request))

    def decoder(self, request: Request | None = None) -> OllamaDecoder:
        """A fresh decoder for one streamed answer."""
        return OllamaDecoder(self.provider, our_names(request))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _tools(self, request: Request, names: dict[str, str]) -> list[dict[str, Any]]:
        choice = request.tool_choice
        if choice.mode == "none":
            return []
        tools: list[dict[str, Any]] = []
        for spec in request.tools:
            if choice.names and spec.name not in choice.names:
                continue
            own = own_extras(spec, self.provider)
            function = {
                "name": names.get(spec.name, spec.name),
                "description": spec.description,
                "parameters": spec.in_dialect(self.dialect),
                **as_dict(own.get("function")),
            }
            tools.append({"type": "function", **own, "function": function})
        return tools


def _options(request: Request) -> dict[str, Any]:
    named: dict[str, Any] = {
        "num_predict": request.max_tokens,
        "temperature": request.temperature,
        "stop": list(request.stop) or None,
    }
    return {name: value for name, value in named.items() if value is not None}


class _Writer:
    """Neutral messages to wire messages."""

    def __init__(self, provider: str, names: dict[str, str]) -> None:
        self.wire: list[dict[str, Any]] = []
        self._provider = provider
        self._names = names

    def add(self, step: ConversationStep) -> None:
        if step.message.role != "assistant":
            role = "system" if step.message.role == "system" else "user"
            said = self._content(step.parts, images=role == "user")
            if said["content"] or "images" in said:
                self.wire.append({"role": role, **said, **own_extras(step.message, self._provider)})
            return
        if (assistant := self._assistant(step)) is not None:
            self.wire.append(assistant)
        self.wire.extend(self._answer(answer) for answer in step.answers)
        self.wire.extend(self._pictures_of(step.answers))

    def _assistant(self, step: ConversationStep) -> dict[str, Any] | None:
        own = own_extras(step.message, self._provider)
        message: dict[str, Any] = {"role": "assistant", **self._content(step.parts, images=False), **own}
        thought = "".join(
            part.text
            for part in step.parts
            if isinstance(part, Reasoning) and own_extras(part, self._provider).get("field") == THINKING
        )
        if thought:
            message[THINKING] = thought
        if step.answers:
            message["tool_calls"] = [self._call(answer) for answer in step.answers]
        return message if message.keys() - {"role", "content"} or message["content"] else None

    def _call(self, answer: Answered) -> dict[str, Any]:
        call = answer.call
        own = own_extras(call, self._provider)
        name = self._names.get(call.name, call.name)
        function = {"name": name, "arguments": arguments_object(call.arguments)}
        return {
            **_id("id", answer),
            **own,
            "function": {**as_dict(own.get("function")), **function},
        }

    def _answer(self, answer: Answered) -> dict[str, Any]:
        return {
            "role": "tool",
            "tool_name": self._names.get(answer.call.name, answer.call.name),
            **_id("tool_call_id", answer),
            "content": answer.text,
            **own_extras(answer.result, self._provider),
        }

    def _pictures_of(self, answers: list[Answered]) -> list[dict[str, Any]]:
        """The images of results as a user message: each model's template treats images in a result differently."""
        messages: list[dict[str, Any]] = []
        for answer in answers:
            parts = answer.result.parts
            pictures = [part.data for part in parts if isinstance(part, Image) and part.data]
            if pictures:
                words = f"From the result of {answer.call.name}:"
                messages.append({"role": "user", "content": words, "images": pictures})
        return messages

    def _content(self, parts: Iterable[Any], *, images: bool) -> dict[str, Any]:
        """Text and images; an image that is only a URL is replaced by its label."""
        texts: list[str] = []
        pictures: list[str] = []
        for part in parts:
            if images and isinstance(part, Image) and part.data:
                pictures.append(part.data)
            elif isinstance(part, Text | Json | Media):
                texts.append(part.as_text())
        content: dict[str, Any] = {"content": "\n".join(text for text in texts if text)}
        return {**content, "images": pictures} if pictures else content


def _id(field: str, answer: Answered) -> dict[str, str]:
    """The id field of a call that has an id; older servers have no ids and match results by name and order."""
    return {} if answer.call.id in MISSING_IDS else {field: answer.id}
