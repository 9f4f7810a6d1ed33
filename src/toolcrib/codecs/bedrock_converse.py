"""Bedrock Converse: writes requests. `bedrock_converse_answer.py` reads the answers.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

from toolcrib.codecs.bedrock_converse_answer import read_error, read_response
from toolcrib.codecs.bedrock_converse_stream import ConverseDecoder
from toolcrib.codecs.bedrock_media import Documents, media_block
from toolcrib.codecs.cache_breakpoints import CacheLifetime, mark_converse
from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.other_names import OtherNames, names_in_answer, names_in_request
from toolcrib.codecs.pairing import (
    EMPTY_ANSWER,
    EMPTY_FAILURE,
    EMPTY_TURN,
    Answered,
    ConversationStep,
    IdRule,
    write,
)
from toolcrib.codecs.strictness import strictness
from toolcrib.codecs.wire_json import (
    arguments_object,
    as_dict,
    as_list,
    json_object,
    own_extras,
    own_item,
)
from toolcrib.content import Json, Media, Text
from toolcrib.merged_fields import merged
from toolcrib.messages import Message, Opaque, Reasoning, Request, Response
from toolcrib.spec import ToolSpec

IDS = IdRule(re.compile("[a-zA-Z0-9_.:-]{1,64}"), "tooluse_")
# Models that refuse a conversation with thinking of theirs that bears no signature; DeepSeek R1 never signs.
SIGNATURE_NEEDED = re.compile(r"anthropic\.|deepseek\.r1")
# Claude's, whose grammar Bedrock uses for strict tools.
STRICT_DIALECT = "anthropic-strict"
DOCUMENT_ALONE = "See the document."  # a message with a document is refused without a text
NO_OUTPUT = "The tool gave no output."
NOT_NOW = "Cannot be called now."
Place = Literal["system", "user", "assistant", "result"]


class BedrockConverseCodec:
    """The Converse format; the body goes to `/model/{id}/converse`, streamed to `/model/{id}/converse-stream`.

    `provider` is the key of the extras, which go back to the same provider alone. A `cachePoint` among the
    extras of a message, part, call, result or tool follows it as a block of its own; without one, `cache` says how
    long the service keeps what it read (None: no cache points). A request's extras
    (`additionalModelRequestFields`, `guardrailConfig`, ...) go into the body as they are; `inferenceConfig`,
    `toolConfig.tools` and `system` join ours.

    >>> from toolcrib.messages import Message
    >>> body = BedrockConverseCodec().request(Request([Message.user("Hi")]), model="m", stream=False)
    >>> body["messages"]
    [{'role': 'user', 'content': [{'text': 'Hi'}]}]
    """

    name = "bedrock_converse"
    features = Features(
        tool_choice=frozenset({"auto", "required", "one"}),
        images=True,
        files=True,
        audio=True,
        media_in_results=True,
        reasoning=True,
        items=True,
        partial_arguments=True,
    )

    def __init__(
        self, provider: str = "bedrock", *, dialect: str | None = None, cache: CacheLifetime | None = None
    ) -> None:
        self.provider = provider
        self.cache: CacheLifetime | None = cache
        self.dialect = dialect or "bedrock"

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST /model/{id}/converse`, and of `converse-stream`: model and kind are in the address."""
        names = names_in_request(request, self.dialect)
        unsigned = not SIGNATURE_NEEDED.search(model)
        made = partial(_Writer, self.provider, names, unsigned=unsigned)
        written = write(request, self, IDS, made, settings=(names, unsigned))
        writer, turns = written.writer, written.wire(written.writer.turns())
        system = [block for message in written.head for block in writer.system(message)]
        body: dict[str, Any] = {"system": system} if system else {}
        body["messages"] = turns
        if inference := _inference(request):
            body["inferenceConfig"] = inference
        if tools := self._tools(request, names, writer.called):
            body["toolConfig"] = tools
        body = _with_own(body, own_extras(request, self.provider))
        unmarked = None if writer.has_marks else turns
        return mark_converse(body, self.cache, unmarked)

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        return read_response(body, self.provider, names_in_answer(request, self.dialect))

    def decoder(self, request: Request | None = None) -> ConverseDecoder:
        """A fresh decoder for one streamed answer."""
        return ConverseDecoder(self.provider, names_in_answer(request, self.dialect))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _tools(self, request: Request, names: OtherNames, called: Iterable[str]) -> dict[str, Any]:
        """Tool declarations and tool choice. A choice that the format cannot express is met by declaring fewer
        tools.
        """
        choice = request.tool_choice
        offered = [] if choice.mode == "none" else request.tools
        wanted = [spec for spec in offered if spec.name in choice.names]
        one = wanted[0].name if choice.mode == "required" and len(wanted) == 1 else ""
        specs = wanted if choice.names and not one else offered
        tools = [block for spec in specs for block in self._tool(spec, names)]
        if not tools:
            theirs = as_dict(own_extras(request, self.provider).get("toolConfig")).get("tools")
            # A conversation that holds calls is refused unless tools are declared, even if none may be called.
            tools = [] if theirs else [_placeholder(names.tool(name)) for name in called]
            return {"tools": tools} if tools else {}
        if choice.mode != "required":
            return {"tools": tools}
        return {"tools": tools, "toolChoice": {"tool": {"name": names.tool(one)}} if one else {"any": {}}}

    def _tool(self, spec: ToolSpec, names: OtherNames) -> list[dict[str, Any]]:
        own = dict(spec.extras.get(self.provider, {}))
        mark = own.pop("cachePoint", None)
        dialect, strict = strictness(spec, self.dialect, own, STRICT_DIALECT)
        declared: dict[str, Any] = {"name": names.tool(spec.name)}
        if spec.description.strip():
            declared["description"] = spec.description
        declared["inputSchema"] = {"json": names.schema(spec, dialect)}
        if strict:
            declared["strict"] = True
        return [{"toolSpec": {**declared, **own}}, *([{"cachePoint": mark}] if mark else [])]


class _Writer:
    """Neutral messages to wire messages: alternating turns of user and assistant. Results stand at the start of the
    user turn that follows their calls.
    """

    def __init__(self, provider: str, names: OtherNames, *, unsigned: bool) -> None:
        self.wire: list[dict[str, Any]] = []
        self.called: dict[str, None] = {}  # the names of the tools that were called
        self.has_marks = False  # whether the conversation has cache marks of its own
        self._provider = provider
        self._names = names
        self._unsigned = unsigned
        self._documents = Documents()

    def add(self, step: ConversationStep) -> None:
        role = "assistant" if step.message.role == "assistant" else "user"
        blocks = self._assistant(step) if role == "assistant" else self._user(step.message, step.parts)
        if blocks:
            self._append(role, [*blocks, *self._mark(step.message)])
        if step.answers:
            self.called |= dict.fromkeys(answer.call.name for answer in step.answers)
            results = [self._result(answer) for answer in step.answers]
            # A message of results has no turn of its own: its mark follows the last of them.
            results[-1] = results[-1][:1] + (results[-1][1:] or self._mark(step.results))
            self._append("user", [block for blocks in results for block in blocks])

    def turns(self) -> list[dict[str, Any]]:
        """The turns as a request has them, whose last one may not end in thinking or white space."""
        turns = list(self.wire)
        if not turns or turns[0]["role"] == "assistant":
            turns.insert(0, {"role": "user", "content": [{"text": EMPTY_TURN}]})
        turns[-1] = _without_blank_end(self._ended(turns[-1]))
        return turns

    def _append(self, role: str, blocks: list[dict[str, Any]]) -> None:
        self.has_marks = self.has_marks or any("cachePoint" in block for block in blocks)
        if self.wire and self.wire[-1]["role"] == role:
            self.wire[-1]["content"].extend(blocks)
            return
        if self.wire:
            self.wire[-1] = self._ended(self.wire[-1])
        self.wire.append({"role": role, "content": list(blocks)})

    def _ended(self, turn: dict[str, Any]) -> dict[str, Any]:
        """A turn that has a text where the service asks for one."""
        content = list(turn["content"])
        kinds = {kind for block in content for kind in block}
        if "document" in kinds and "text" not in kinds:
            content.append({"text": DOCUMENT_ALONE})
        if "reasoningContent" in content[-1] and not self._unsigned:
            content.append({"text": EMPTY_ANSWER})  # Claude refuses a turn that ends in thinking
        return {**turn, "content": content}

    def system(self, message: Message) -> list[dict[str, Any]]:
        blocks = self._blocks(message.parts, "system")
        return [*blocks, *self._mark(message)] if blocks else []

    def _user(self, message: Message, parts: Sequence[Any]) -> list[dict[str, Any]]:
        if message.role == "system":  # instructions in the middle have no place of their own
            blocks = self._blocks(parts, "system")
            return [{"text": "<system>"}, *blocks, {"text": "</system>"}] if blocks else []
        return self._blocks(parts, "user")

    def _assistant(self, step: ConversationStep) -> list[dict[str, Any]]:
        answers = iter(step.answers)
        blocks: list[dict[str, Any]] = []
        for part in step.parts:
            if isinstance(part, Text | Json | Media | Opaque):
                blocks += self._blocks([part], "assistant")
            elif isinstance(part, Reasoning):
                blocks += self._thought(part)
            else:
                blocks += self._call(next(answers))
        return blocks

    def _blocks(self, parts: Iterable[Any], place: Place) -> list[dict[str, Any]]:
        """Content blocks, without blank texts, which the service refuses."""
        blocks: list[dict[str, Any]] = []
        for part in parts:
            block = self._block(part, place)
            if block is not None:
                blocks += [block, *(self._mark(part) if place != "result" else ())]
        return blocks

    def _block(self, part: Any, place: Place) -> dict[str, Any] | None:
        own = own_extras(part, self._provider)
        if isinstance(part, Opaque):
            return own_item(part, self._provider)
        if isinstance(part, Media) and place in ("user", "result"):
            block = media_block(part, self._documents, own)
            if block is not None and not (place == "result" and "audio" in block):
                return block
        elif isinstance(part, Json) and place == "result":
            if (value := json_object(part.as_text())) is not None:  # no other value may stand there
                return {"json": value}
        elif isinstance(part, Text) and place == "assistant" and "citationsContent" in own:
            return {
                "citationsContent": {"content": [{"text": part.text}], **as_dict(own["citationsContent"])}
            }
        text = part.as_text() if isinstance(part, Text | Json | Media) else ""
        return {"text": text} if text.strip() else None

    def _thought(self, part: Reasoning) -> list[dict[str, Any]]:
        """A reasoning block of this provider as it came; none for another provider's."""
        own = own_extras(part, self._provider)
        said = own.get("reasoningText")
        if isinstance(said, dict):
            if not (self._unsigned or said.get("signature")):
                return []
            return [{"reasoningContent": {"reasoningText": {"text": part.text, **said}}}]
        return [{"reasoningContent": own}] if "redactedContent" in own else []

    def _call(self, answer: Answered) -> list[dict[str, Any]]:
        call = answer.call
        use = {
            "toolUseId": answer.id,
            "name": self._names.tool(call.name),
            "input": self._names.arguments(call.name, arguments_object(call.arguments)),
        }
        return [{"toolUse": use | self._rest(call)}, *self._mark(call)]

    def _result(self, answer: Answered) -> list[dict[str, Any]]:
        parts = answer.result.parts
        content = self._blocks(parts, "result") or [{"text": EMPTY_FAILURE if answer.is_error else NO_OUTPUT}]
        result: dict[str, Any] = {"toolUseId": answer.id, "content": content}
        if answer.is_error:
            result["status"] = "error"
        return [{"toolResult": result | self._rest(answer.result)}, *self._mark(answer.result)]

    def _rest(self, thing: Any) -> dict[str, Any]:
        return {k: v for k, v in own_extras(thing, self._provider).items() if k != "cachePoint"}

    def _mark(self, thing: Any) -> list[dict[str, Any]]:
        mark = own_extras(thing, self._provider).get("cachePoint")
        return [{"cachePoint": mark}] if mark else []


def _placeholder(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}}
    return {"toolSpec": {"name": name, "description": NOT_NOW, "inputSchema": {"json": schema}}}


def _inference(request: Request) -> dict[str, Any]:
    given = {
        "maxTokens": request.max_tokens,
        "temperature": request.temperature,
        "stopSequences": [stop for stop in request.stop if stop] or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _with_own(body: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """A body with a request's extras, whose instructions are added to ours."""
    if "system" in own:
        own = {**own, "system": [*as_list(body.get("system")), *as_list(own["system"])]}
    return merged(body, own)


def _without_blank_end(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn without white space at the end of an answer that is to be continued: the API refuses it."""
    *before, last = turn["content"]
    if turn["role"] != "assistant" or not isinstance(last.get("text"), str):
        return turn
    return {**turn, "content": [*before, {**last, "text": last["text"].rstrip()}]}
