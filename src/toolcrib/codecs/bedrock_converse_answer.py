"""Bedrock Converse: reads whole answers. `bedrock_converse_stream.py` assembles streamed ones."""

from __future__ import annotations

from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import ModelError, is_retryable, unread_error
from toolcrib.codecs.concatenated_calls import split_concatenated
from toolcrib.codecs.other_names import OtherNames
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.unread_calls import is_malformed, unread_call, with_unread_call
from toolcrib.codecs.wire_json import (
    arguments_as_written,
    as_count,
    as_dict,
    as_index,
    as_str,
    dicts,
    extras_for,
)
from toolcrib.content import Image, Text
from toolcrib.dataclass import replace
from toolcrib.messages import (
    Message,
    MessagePart,
    Opaque,
    Reasoning,
    Response,
    StopReason,
    Usage,
)

STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "end",  # becomes "tool_calls" where there are calls
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "filter",
    "content_filtered": "filter",
}
MALFORMED = frozenset({"malformed_model_output", "malformed_tool_use"})
MALFORMED_CALL = "the service says that this call was malformed; write it again"
# https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html and the errors of Converse and
# ConverseStream, without their ending; whether another try may help. Others go by their HTTP status.
ERRORS = {
    "throttling": True,
    "toomanyrequests": True,
    "internalserver": True,
    "internalfailure": True,
    "serviceunavailable": True,
    "modelstreamerror": True,
    "modelnotready": True,
    "modeltimeout": True,
    "requesttimeout": True,
    "validation": False,
    "accessdenied": False,
    "resourcenotfound": False,
    "servicequotaexceeded": False,
    "expiredtoken": False,
    "unrecognizedclient": False,
}
ERROR_ENDINGS = ("exception", "error", "fault")
SERVER_TOOL = "server_tool_use"
KEPT_FIELDS = ("additionalModelResponseFields", "trace")


def read_response(body: dict[str, Any], provider: str, names: OtherNames) -> Response:
    """Reads a whole answer."""
    message = as_dict(as_dict(body.get("output")).get("message"))
    if not isinstance(message.get("content"), list):
        raise read_error(body) if is_error(body) else _no_answer()
    blocks = dicts(message["content"])
    parts = [part for block in blocks for part in parts_of(block, None, provider, names)]
    return finished(response_of(parts, body, provider))


def parts_of(block: dict[str, Any], arguments: Any, provider: str, names: OtherNames) -> list[MessagePart]:
    """One content block as neutral parts: a single part, or several calls when their arguments were concatenated."""
    part = _part_of(block, arguments, provider, names)
    return [*split_concatenated(part)] if isinstance(part, ToolCall) else [part]


def _part_of(block: dict[str, Any], arguments: Any, provider: str, names: OtherNames) -> MessagePart:
    """One content block as a neutral part; the block's other fields go into the extras."""
    if isinstance(block.get("text"), str):
        return Text(block["text"])
    if isinstance(cited := block.get("citationsContent"), dict):
        text = "".join(as_str(piece.get("text")) for piece in dicts(cited.get("content")))
        own = dict(cited)
        if own.get("content") == [{"text": text}]:
            del own["content"]
        return Text(text, {provider: {"citationsContent": own}})
    if isinstance(thought := block.get("reasoningContent"), dict):
        if isinstance(said := thought.get("reasoningText"), dict):
            own = {name: value for name, value in said.items() if name != "text"}
            return Reasoning(as_str(said.get("text")), {provider: {"reasoningText": own}})
        return Reasoning("", {provider: dict(thought)})
    if isinstance(use := block.get("toolUse"), dict) and use.get("type") != SERVER_TOOL:
        name = names.tool(as_str(use.get("name")))
        own = {k: v for k, v in use.items() if k not in ("toolUseId", "name", "input", "type")}
        given = use.get("input") if arguments is None else arguments
        return ToolCall(
            name,
            names.written_arguments(name, arguments_as_written(given)),
            known_id(use.get("toolUseId")),
            extras_for(provider, own),
        )
    picture = as_dict(block.get("image"))
    if data := as_str(as_dict(picture.get("source")).get("bytes")):
        return Image(data=data, media_type=f"image/{as_str(picture.get('format')) or 'png'}")
    return Opaque(provider, block)


def response_of(parts: list[MessagePart], fields: dict[str, Any], provider: str) -> Response:
    stop = as_str(fields.get("stopReason"))
    reason = STOP_REASONS.get(stop, "other") if stop else "end"
    if reason == "end" and any(isinstance(part, ToolCall) for part in parts):
        reason = "tool_calls"
    if stop in MALFORMED:
        parts = [
            replace(part, problem=MALFORMED_CALL) if isinstance(part, ToolCall) else part for part in parts
        ]
    own = {name: fields[name] for name in KEPT_FIELDS if fields.get(name)}
    router = as_dict(as_dict(fields.get("trace")).get("promptRouter"))
    answer = Message("assistant", parts, extras_for(provider, own))
    return Response(
        answer, reason, read_usage(fields.get("usage")), as_str(router.get("invokedModelId")), stop
    )


def finished(response: Response) -> Response:
    """The answer; raises ModelError when it is empty because the model failed to write it."""
    if response.raw_stop_reason in MALFORMED and not response.message.calls:
        words = "the model's answer was malformed and could not be read"
        error = ModelError(words, retryable=True, partial=response)
        error.unread = unread_call(words) if is_malformed(response.raw_stop_reason) else None
        raise error
    return response


def read_usage(usage: Any) -> Usage:
    """Usage as neutral counts; this API counts cached tokens beside the input."""
    counts = as_dict(usage)
    read = as_count(counts.get("cacheReadInputTokens", counts.get("cacheReadInputTokenCount")))
    written = as_count(counts.get("cacheWriteInputTokens", counts.get("cacheWriteInputTokenCount")))
    return Usage(
        as_count(counts.get("inputTokens")) + read + written,
        as_count(counts.get("outputTokens")),
        read,
        written,
    )


def read_error(body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
    """The error that a body describes, or an event in the middle of a stream with its name as `__type`."""
    fields = as_dict(body)
    fields = as_dict(fields.get("error")) or fields  # a proxy's
    kind = as_str(fields.get("__type")).rpartition("#")[2] or as_str(fields.get("code"))
    said = as_str(fields.get("message")) or as_str(fields.get("Message")) or as_str(body)
    known = ERRORS.get(_plain(kind))
    if known is None:
        original = as_index(fields.get("originalStatusCode"))
        known = is_retryable(status if original is None else original, kind)
        known = known or (status is None and original is None)
    words = ": ".join(word for word in (kind, said) if word) or unread_error(body)
    return with_unread_call(ModelError(words, known, status, retry_after), body)


def _plain(kind: str) -> str:
    plain = kind.lower()
    for ending in ERROR_ENDINGS:
        plain = plain.removesuffix(ending)
    return plain


def is_error(body: dict[str, Any]) -> bool:
    return "error" in body or any(
        isinstance(body.get(name), str) for name in ("message", "Message", "__type")
    )


def _no_answer() -> ModelError:
    return ModelError("the answer holds no message: it is not one of Converse", retryable=True)
