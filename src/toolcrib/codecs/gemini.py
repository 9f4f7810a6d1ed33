"""Gemini generateContent, of the Gemini API and of Vertex: writes requests. `gemini_answer.py` reads the answers.

Source: https://ai.google.dev/api/generate-content; thought signatures and results with media:
https://ai.google.dev/gemini-api/docs/thought-signatures, https://ai.google.dev/gemini-api/docs/function-calling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.gemini_answer import GeminiDecoder, read_error, read_response
from toolcrib.codecs.pairing import (
    EMPTY_FAILURE,
    EMPTY_TURN,
    MISSING_IDS,
    Answered,
    ConversationStep,
    IdRule,
    write,
)
from toolcrib.codecs.tool_names import our_names, wire_names
from toolcrib.codecs.wire_json import arguments_object, as_dict, as_list, own_extras, own_item
from toolcrib.content import Audio, File, Image, Json, Media, Part, Text
from toolcrib.merged_fields import merged
from toolcrib.messages import Reasoning, Request, Response
from toolcrib.schema import to_dialect
from toolcrib.spec import ToolSpec

IDS = IdRule(re.compile(r"[A-Za-z0-9_.:-]{1,128}"))
# Models before Gemini 3 refuse media inside a result (400), and ask for no signature on calls.
BEFORE_3 = re.compile(r"gemini-[12]\b|gemma")
# Stands for the signature of a call that another model made; Gemini 3 refuses a step without any (400).
UNSIGNED = "skip_thought_signature_validator"
IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
# Bytes without a type are refused, so what was not named is taken for the usual.
USUAL_TYPES: dict[type[Media], str] = {Image: "image/png", Audio: "audio/wav", File: "application/pdf"}


class GeminiCodec:
    """The generateContent format. The URL, not the body, names the model and says whether the answer streams.

    `provider` is the key of the extras (signatures, server-side tools), which go back to the same provider
    alone; `dialect` is that of the tools' schemas.

    >>> from toolcrib.messages import Message
    >>> GeminiCodec().request(Request([Message.user("Hi")]), model="gemini-3-pro", stream=False)
    {'contents': [{'role': 'user', 'parts': [{'text': 'Hi'}]}]}
    """

    name = "gemini"
    features = Features(
        tool_choice=frozenset({"auto", "none", "required", "one", "set"}),
        images=True,
        files=True,
        audio=True,
        media_in_results=True,
        reasoning=True,
        items=True,
        partial_arguments=True,
        call_ids=False,
        logprobs=True,
    )

    def __init__(self, provider: str = "gemini", *, dialect: str | None = None) -> None:
        self.provider = provider
        self.dialect = dialect or "gemini"

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST …/models/MODEL:generateContent`, or of `…:streamGenerateContent`."""
        names = wire_names(request)
        with_data = frozenset(spec.name for spec in request.tools if spec.tells_output)
        since_3 = not BEFORE_3.search(model)
        made = partial(_Writer, self.provider, names, with_data, since_3=since_3)
        written = write(request, self, IDS, made, settings=(names, with_data, since_3))
        writer, turns = written.writer, list(written.writer.wire)
        system = [part for message in written.head for part in writer.texts(message.parts)]
        if not turns or turns[0]["role"] == "model":
            turns.insert(0, {"role": "user", "parts": [{"text": EMPTY_TURN}]})
        body: dict[str, Any] = {"contents": written.wire(turns)}
        if system:
            body["systemInstruction"] = {"parts": system}
        body |= self._tools(request, names)
        if config := _generation_config(request):
            body["generationConfig"] = config
        return merged(body, own_extras(request, self.provider), joined_tools)

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        return read_response(body, self.provider, our_names(request), _callable_names(request))

    def decoder(self, request: Request | None = None) -> GeminiDecoder:
        """A fresh decoder for one streamed answer."""
        return GeminiDecoder(self.provider, our_names(request), _callable_names(request))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _tools(self, request: Request, names: dict[str, str]) -> dict[str, Any]:
        choice = request.tool_choice
        declared = {spec.name for spec in request.tools}
        allowed = [names.get(name, name) for name in dict.fromkeys(choice.names) if name in declared]
        if not declared or (choice.names and not allowed):
            return {}
        declarations = [
            {
                "name": names.get(spec.name, spec.name),
                **({"description": spec.description} if spec.description else {}),
                "parametersJsonSchema": spec.in_dialect(self.dialect),
                **_response_schema(spec),
                **own_extras(spec, self.provider),
            }
            for spec in request.tools
        ]
        body: dict[str, Any] = {"tools": [{"functionDeclarations": declarations}]}
        # AUTO takes no set of names; VALIDATED is AUTO that does, with calls held to their schemas.
        free = "VALIDATED" if allowed else "AUTO"
        mode = {"auto": free, "none": "NONE", "required": "ANY"}[choice.mode]
        if mode == "AUTO":
            return body
        config: dict[str, Any] = {"mode": mode}
        if allowed and mode != "NONE":
            config["allowedFunctionNames"] = allowed
        return {**body, "toolConfig": {"functionCallingConfig": config}}


def _response_schema(spec: ToolSpec) -> dict[str, Any]:
    """What a result of the tool looks like, for a tool whose author said it."""
    if not spec.tells_output or spec.output_schema is None:
        return {}
    inner = {key: value for key, value in spec.output_schema.items() if key != "$defs"}
    schema: dict[str, Any] = {"type": "object", "properties": {"output": inner}}
    lowered, _ = to_dialect({**schema, "$defs": spec.output_schema.get("$defs", {})}, "gemini")
    return {"responseJsonSchema": lowered}


class _Writer:
    """Neutral messages to wire contents: alternating turns of user and model. The results of a turn's calls stand at
    the start of the user turn after it.
    """

    def __init__(
        self, provider: str, names: dict[str, str], with_data: frozenset[str], *, since_3: bool
    ) -> None:
        self.wire: list[dict[str, Any]] = []
        self._provider = provider
        self._with_data = with_data  # the tools whose results the model knows as data
        self._names = names
        self._since_3 = since_3

    def add(self, step: ConversationStep) -> None:
        if step.message.role == "assistant":
            _append(self.wire, "model", self._model(step))
        else:
            _append(self.wire, "user", self._user(step))
        _append(self.wire, "user", [self._result(answer) for answer in step.answers])
        _append(self.wire, "user", self._following(step.answers))

    def texts(self, parts: Iterable[Any]) -> list[dict[str, Any]]:
        """Parts as text, and own items; media are reduced to their labels."""
        wire: list[dict[str, Any]] = []
        for part in parts:
            text = part.as_text() if isinstance(part, Text | Json | Media) else ""
            item = {"text": text} if text else own_item(part, self._provider)
            wire += [item] if item else []
        return wire

    def _parts(self, parts: Iterable[Any]) -> list[dict[str, Any]]:
        """Text, media and this provider's own parts."""
        wire: list[dict[str, Any]] = []
        for part in parts:
            if (item := own_item(part, self._provider)) is not None:
                wire.append(item)
            elif isinstance(part, Text | Json | Media):
                own = own_extras(part, self._provider)
                held = _media(part) if isinstance(part, Media) else None
                if held is not None or part.as_text() or own:
                    wire.append({**(held or {"text": part.as_text()}), **own})
        return wire

    def _user(self, step: ConversationStep) -> list[dict[str, Any]]:
        parts = self._parts(step.parts)
        if step.message.role == "system" and parts:  # instructions in the middle have no place of their own
            return [{"text": "<system>"}, *parts, {"text": "</system>"}]
        return parts

    def _model(self, step: ConversationStep) -> list[dict[str, Any]]:
        wire: list[dict[str, Any]] = []
        answers = iter(step.answers)
        unsigned = self._since_3 and not any(
            "thoughtSignature" in own_extras(answer.call, self._provider) for answer in step.answers
        )
        for part in step.parts:
            if isinstance(part, ToolCall):
                wire.append(self._call(next(answers), stand_in=unsigned))
                unsigned = False
            elif isinstance(part, Reasoning):
                if own := own_extras(part, self._provider):  # another's thinking is not shown to this model
                    wire.append({"text": part.text, **own})
            else:
                wire.extend(self._parts([part]))
        return wire

    def _call(self, answer: Answered, *, stand_in: bool) -> dict[str, Any]:
        own = dict(own_extras(answer.call, self._provider))
        call = {
            **_id(answer),
            "name": self._names.get(answer.call.name, answer.call.name),
            "args": arguments_object(answer.call.arguments),
            **as_dict(own.pop("functionCall", None)),
        }
        return {"functionCall": call, **({"thoughtSignature": UNSIGNED} if stand_in else {}), **own}

    def _result(self, answer: Answered) -> dict[str, Any]:
        parts = answer.result.parts
        text = "\n".join(part.as_text() for part in parts if not self._carried(part))
        wire: dict[str, Any] = {
            **_id(answer),
            "name": self._names.get(answer.call.name, answer.call.name),
            "response": {"error": text or EMPTY_FAILURE}
            if answer.is_error
            else {"output": self._output(answer, text)},
        }
        if carried := [held for part in parts if (held := self._carried(part))]:
            wire["parts"] = carried
        return {"functionResponse": {**wire, **own_extras(answer.result, self._provider)}}

    def _output(self, answer: Answered, text: str) -> Any:
        """The data of a result, if the model was told its schema and the text is complete JSON; else the text."""
        if answer.call.name not in self._with_data:
            return text
        try:
            return json.loads(text)
        except ValueError:
            return text

    def _carried(self, part: Part) -> dict[str, Any] | None:
        """The media that the model takes inside a result."""
        if not self._since_3 or not isinstance(part, Media) or part.media_type not in IN_RESULTS:
            return None
        return _media(part) if part.data else None

    def _following(self, answers: list[Answered]) -> list[dict[str, Any]]:
        """The media that a result cannot carry, which follow in the user's turn."""
        wire: list[dict[str, Any]] = []
        for answer in answers:
            parts = answer.result.parts
            others = [part for part in parts if isinstance(part, Media) and not self._carried(part)]
            if media := [held for part in others if (held := _media(part))]:
                wire += [{"text": f"From the result of {answer.call.name}:"}, *media]
        return wire


def joined_tools(ours: list[Any], theirs: list[Any]) -> list[Any]:
    """One list of tools with all functions in a single entry: the API refuses several such entries."""
    functions: list[Any] = []
    rest: list[Any] = []
    for tool in [*ours, *theirs]:
        functions += as_list(as_dict(tool).get("functionDeclarations"))
        other = (
            {k: v for k, v in tool.items() if k != "functionDeclarations"} if isinstance(tool, dict) else tool
        )
        rest += [other] if other else []
    return [*([{"functionDeclarations": functions}] if functions else []), *rest]


def _generation_config(request: Request) -> dict[str, Any]:
    wants_logprobs = request.logprobs or request.top_logprobs is not None
    config = {
        "maxOutputTokens": request.max_tokens,
        "temperature": request.temperature,
        "stopSequences": list(request.stop) or None,
        "responseLogprobs": True if wants_logprobs else None,
        "logprobs": request.top_logprobs,
    }
    return {name: value for name, value in config.items() if value is not None}


def _append(turns: list[dict[str, Any]], role: str, parts: list[dict[str, Any]]) -> None:
    if not parts:
        return
    if turns and turns[-1]["role"] == role:
        turns[-1]["parts"].extend(parts)
    else:
        turns.append({"role": role, "parts": list(parts)})


def _id(answer: Answered) -> dict[str, Any]:
    """The id field of a call that came with an id; without ids, results are matched by name and order."""
    return {"id": answer.id} if answer.call.id not in MISSING_IDS else {}


def _media(part: Media) -> dict[str, Any] | None:
    """Media bytes or a URL in the wire format; None where the part has neither."""
    kind = part.media_type
    if part.data:
        return {
            "inlineData": {"mimeType": kind or USUAL_TYPES.get(type(part), "image/png"), "data": part.data}
        }
    if part.url:
        return {"fileData": {**({"mimeType": kind} if kind else {}), "fileUri": part.url}}
    return None


def _callable_names(request: Request | None) -> frozenset[str]:
    """The wire names of the tools that the answer may call."""
    if request is None:
        return frozenset()
    names = wire_names(request)
    return frozenset(names.get(spec.name, spec.name) for spec in request.tools)
