"""OpenAI Responses: reads whole answers. `openai_responses_stream.py` assembles streamed ones.

An answer's own data (ids, status, phase, namespace) is kept in the extras under `kept_by(provider)`, apart from
what a user gives under the provider's name: Chat Completions of the same provider would refuse that data.
"""

from __future__ import annotations

from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.concatenated_calls import split_concatenated
from toolcrib.codecs.openai_chat_answer import read_error, stated_cost
from toolcrib.codecs.openai_responses_native import NATIVE, call_name
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.wire_json import as_count, as_dict, as_list, as_str, compact, dicts, extras_for
from toolcrib.content import Image, Text
from toolcrib.messages import (
    Message,
    MessagePart,
    Opaque,
    Reasoning,
    Response,
    StopReason,
    TokenLogprob,
    Usage,
)

# The arguments' field of each kind of call that the application runs.
CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    **{kind: native.field for kind, native in NATIVE.items()},
}
# Each kind of text in an item: the item's list that holds it, and the field of the text in its block.
TEXTS = {
    "output_text": ("content", "text"),
    "refusal": ("content", "refusal"),
    "summary_text": ("summary", "text"),
    "reasoning_text": ("content", "text"),
}
STOP_REASONS: dict[str, StopReason] = {
    "": "end",
    "completed": "end",
    "max_output_tokens": "length",
    "content_filter": "filter",
}
NO_ANSWER = frozenset({"failed", "cancelled", "queued", "in_progress"})
MEDIA_TYPES = {"jpg": "image/jpeg", "svg": "image/svg+xml"}
# How the base64 of a picture begins, for servers that do not name its format.
BEGINNINGS = {"/9j/": "image/jpeg", "UklGR": "image/webp", "R0lGOD": "image/gif"}


def kept_by(provider: str) -> str:
    """The key of the extras that hold an answer's own data of this provider."""
    return f"{provider}_responses"


def read_response(body: dict[str, Any], provider: str, names: dict[str, str]) -> Response:
    """Reads a whole answer."""
    if not isinstance(body.get("output"), list):
        if body.get("error"):
            raise read_error(body)
        raise ModelError("the answer holds no output: it is not a response", retryable=True)
    response = to_response(dicts(body["output"]), body, provider, names)
    if (error := failure(body)) is not None:
        error.partial = response
        raise error
    return response


def failure(body: dict[str, Any]) -> ModelError | None:
    """The error of a response object that failed; None for an answer."""
    status = as_str(body.get("status"))
    if body.get("error"):
        return read_error({"error": body["error"]})
    if status in NO_ANSWER:
        return ModelError(f"the model did not answer: the response is {status}", retryable=status == "failed")
    return None


def to_response(
    items: list[dict[str, Any]], body: dict[str, Any], provider: str, names: dict[str, str]
) -> Response:
    """Turns output items and the response object around them into a neutral answer."""
    parts = [part for item in items for part in parts_of(item, provider, names)]
    status = as_str(body.get("status"))
    raw = as_str(as_dict(body.get("incomplete_details")).get("reason")) or status
    id = as_str(body.get("id"))
    extras = extras_for(kept_by(provider), {"response_id": id} if id else {})
    return Response(
        Message("assistant", parts, extras),
        _stop_reason(raw, parts, kept_by(provider)),
        read_usage(as_dict(body.get("usage"))),
        as_str(body.get("model")),
        raw,
        tuple(token for item in items if kind_of(item) == "message" for token in _logprobs(item)),
    )


def kind_of(item: dict[str, Any]) -> str:
    return as_str(item.get("type")) or ("message" if item.get("role") == "assistant" else "")


def parts_of(item: dict[str, Any], provider: str, names: dict[str, str]) -> list[MessagePart]:
    """One output item as neutral parts; an item that only the provider understands is kept verbatim."""
    kind = kind_of(item)
    if kind == "message":
        return _message(item, provider)
    if kind == "reasoning":
        return [Reasoning("".join(text for _, text in texts_of(item)), {kept_by(provider): item})]
    if kind in CALLS:
        call = _call(item, kind, provider, names)
        return [*split_concatenated(call)] if kind == "function_call" else [call]
    if kind == "image_generation_call" and isinstance(item.get("result"), str) and item["result"]:
        return [_image(item, provider)]
    return [Opaque(provider, item)]


def texts_of(item: dict[str, Any]) -> list[tuple[tuple[str, int], str]]:
    """The texts of a message or a reasoning item, each with its kind and its index."""
    found: list[tuple[tuple[str, int], str]] = []
    for holder in ("summary", "content"):
        for index, block in enumerate(as_list(item.get(holder))):
            kind = as_str(as_dict(block).get("type"))
            where, field = TEXTS.get(kind, ("", ""))
            if where == holder and (text := as_str(block.get(field))):
                found.append(((kind, index), text))
    return found


def _message(item: dict[str, Any], provider: str) -> list[MessagePart]:
    about = {name: value for name, value in item.items() if name not in ("type", "role", "content")}
    parts: list[MessagePart] = []
    for block in dicts(item.get("content")):
        kind = as_str(block.get("type"))
        if kind == "output_text":
            own = {name: value for name, value in block.items() if name not in ("type", "text", "logprobs")}
            if not own.get("annotations"):
                own.pop("annotations", None)
        else:
            own = {"block": block}
        kept = {"message": about, **own} if about or own else {}
        text = as_str(block.get("text")) if kind == "output_text" else as_str(block.get("refusal"))
        parts.append(Text(text, extras_for(kept_by(provider), kept)))
    # A message that says nothing still has to follow the reasoning before it.
    return parts or [Opaque(provider, item)]


def _call(item: dict[str, Any], kind: str, provider: str, names: dict[str, str]) -> ToolCall:
    name = call_name(item)
    ours = ("call_id", "name", *([CALLS[kind]] if kind not in NATIVE else []))
    kept = {key: value for key, value in item.items() if key not in ours and value is not None}
    if kind == "function_call":
        kept.pop("type", None)
    raw = item.get(CALLS[kind]) if kind not in NATIVE else NATIVE[kind].text(item)
    arguments = raw if isinstance(raw, str | dict) else "" if raw is None else compact(raw)
    return ToolCall(
        names.get(name, name),
        arguments,
        known_id(item.get("call_id")),
        extras_for(kept_by(provider), kept),
    )


def _image(item: dict[str, Any], provider: str) -> Image:
    """A generated image: the part holds its bytes, the extras the rest of its item."""
    about = {name: value for name, value in item.items() if name != "result"}
    made = item["result"]
    extras = {kept_by(provider): {"item": about}}
    if made.startswith(("http://", "https://")):
        return Image(url=made, extras=extras)
    format = as_str(item.get("output_format"))
    known = next((kind for start, kind in BEGINNINGS.items() if made.startswith(start)), "image/png")
    return Image(made, "", MEDIA_TYPES.get(format, f"image/{format}") if format else known, "", extras)


def _stop_reason(raw: str, parts: list[MessagePart], key: str) -> StopReason:
    reason = STOP_REASONS.get(raw, "other")
    if reason != "end":
        return reason
    if any(isinstance(part, ToolCall) for part in parts):
        return "tool_calls"
    spoken = [part for part in parts if isinstance(part, Text) and part.text]
    refused = [part for part in spoken if is_refusal(part, key)]
    return "refusal" if refused and len(refused) == len(spoken) else "end"


def is_refusal(part: Text, key: str) -> bool:
    block = as_dict(as_dict(part.extras.get(key)).get("block"))
    return block.get("type") == "refusal"


def _logprobs(item: dict[str, Any]) -> list[TokenLogprob]:
    return [
        TokenLogprob(
            as_str(token.get("token")),
            _number(token.get("logprob")),
            tuple(
                (as_str(other.get("token")), _number(other.get("logprob")))
                for other in dicts(token.get("top_logprobs"))
            ),
        )
        for block in dicts(item.get("content"))
        for token in dicts(block.get("logprobs"))
    ]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int):
        return 0.0
    return float(value) if abs(value) < 1e300 else 0.0


def read_usage(usage: dict[str, Any]) -> Usage:
    """Usage as neutral counts, which mean the same in this API."""
    read, written = as_dict(usage.get("input_tokens_details")), as_dict(usage.get("output_tokens_details"))
    return Usage(
        as_count(usage.get("input_tokens")),
        as_count(usage.get("output_tokens")),
        as_count(read.get("cached_tokens")),
        as_count(read.get("cache_write_tokens")),
        as_count(written.get("reasoning_tokens")),
        stated_cost(usage),
    )
