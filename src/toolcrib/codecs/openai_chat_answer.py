"""OpenAI Chat Completions: reads answers, whole or streamed."""

from __future__ import annotations

import re
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.call_slots import CallSlots, arguments_text, call_extras, called_function
from toolcrib.codecs.codec import ModelError, is_retryable, unread_error
from toolcrib.codecs.concatenated_calls import split_concatenated
from toolcrib.codecs.openai_chat_parts import Speech, picture_of, pictures, token_logprobs
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.sse import DONE
from toolcrib.codecs.unread_calls import is_malformed, unread_call, with_unread_call
from toolcrib.codecs.wire_json import as_count, as_dict, as_money, as_str, dicts, extras_for, joined
from toolcrib.content import Image, Text
from toolcrib.dataclass import replace
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    MessagePart,
    Reasoning,
    ReasoningChunk,
    Response,
    StopReason,
    TextChunk,
    TokenLogprob,
    Usage,
)

STOP_REASONS: dict[str, StopReason] = {
    "stop": "end",
    "end_turn": "end",
    "eos": "end",
    "tool_calls": "end",  # becomes "tool_calls" where there are calls
    "function_call": "end",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
    "refusal": "refusal",
}
BROKEN = frozenset({"error", "insufficient_system_resource"})
REASONING_FIELDS = ("reasoning_content", "reasoning")
KEPT_FIELDS = ("annotations", "extra_content")
TICKS_PER_DOLLAR = 10_000_000_000
# The fields of nearly every event, its choice, and its piece: if there are no others, fewer checks are needed.
IN_AN_EVENT = frozenset(
    {
        "id",
        "object",
        "created",
        "model",
        "choices",
        "usage",
        "system_fingerprint",
        "service_tier",
        "obfuscation",
    }
)
IN_A_CHOICE = frozenset({"index", "delta", "finish_reason", "native_finish_reason", "logprobs"})
CALLS_ALONE = frozenset({"tool_calls", "role"})
TEXT_ALONE = frozenset({"content", "role"})
GROWING = frozenset({"text", "summary", "data"})


def read_response(body: dict[str, Any], provider: str, names: dict[str, str]) -> Response:
    """Reads a whole answer."""
    if body.get("error"):
        raise read_error(body)
    choice = next((choice for choice in dicts(body.get("choices")) if _is_first(choice)), None)
    if choice is not None and choice.get("error"):
        raise read_error(choice)
    if choice is None:
        raise ModelError("the answer holds no choices: it is not a chat completion", retryable=True)
    answer = _Answer(provider)
    answer.start(body)
    message = as_dict(choice.get("message"))
    answer.add(message)
    answer.logprobs.extend(token_logprobs(choice))
    answer.stop = stop_of(choice)
    return answer.response([call for item in tool_calls(message) for call in _calls(item, provider, names)])


def _calls(item: dict[str, Any], provider: str, names: dict[str, str]) -> list[ToolCall]:
    function, extras = called_function(item), call_extras(item)
    name, raw = as_str(function.get("name")), function.get("arguments")
    call = ToolCall(
        names.get(name, name),
        raw if isinstance(raw, dict) else arguments_text(function),
        known_id(item.get("id")),
        extras_for(provider, extras),
    )
    return [call] if extras.get("type") == "custom" else split_concatenated(call)


class ChatDecoder:
    """Chat completion chunks in, neutral chunks out; only the first choice is read."""

    def __init__(self, provider: str = "openai", names: dict[str, str] | None = None) -> None:
        self._answer = _Answer(provider)
        self._slots = CallSlots(provider, names or {})
        self._ended = False

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Reads one event and returns its chunks; raises ModelError for an error event."""
        if event.get(DONE):
            self._ended = True
            return [*self._slots.done()]
        if (said := _error_in(event)) is not None:
            raise self._broken(read_error(said))
        self._answer.start(event)
        chunks: list[Chunk] = []
        for choice in dicts(event.get("choices")):
            if _is_first(choice):
                chunks.extend(self._choice(choice))
        # A server may leave the stop reason out; usage in an event that brings nothing says that it was the last.
        self._ended = bool(self._answer.stop) or (bool(event.get("usage")) and not chunks)
        return chunks

    @property
    def ended(self) -> bool:
        """Whether the answer has its stop reason."""
        return bool(self._answer.stop)

    def finish(self) -> Response:
        """The whole answer."""
        if not self._ended:
            raise self._broken(ModelError("the stream ended before the answer was complete", retryable=True))
        if not self._answer.stop and self._answer.is_empty() and not self._slots:
            raise ModelError("the stream held no answer", retryable=True)
        return self._answer.response(self._slots.calls())

    def _choice(self, choice: dict[str, Any]) -> list[Chunk]:
        if choice.get("error"):
            raise self._broken(read_error(choice))
        if not choice.keys() <= IN_A_CHOICE:
            self._answer.start(choice)  # Moonshot's usage stands in the choice
        delta = as_dict(choice.get("delta"))
        if not delta and self._answer.is_empty() and not self._slots:
            delta = as_dict(choice.get("message"))  # some servers stream a whole answer as one event
        chunks = self._answer.add(delta)
        if choice.get("logprobs"):
            self._answer.logprobs.extend(token_logprobs(choice))
        chunks.extend(self._slots.feed(tool_calls(delta)))
        if stop := stop_of(choice):
            self._answer.stop = stop
            chunks.extend(self._slots.done())
            if is_malformed(stop) and not self._slots:
                chunks.append(CallChunk(0, done=True))
        return chunks

    def _broken(self, error: ModelError) -> ModelError:
        error.partial = self._answer.response(self._slots.calls(), broken=True)
        return error


class _Answer:
    """An answer's text, thinking, usage and stop reason. Its pieces are joined once, at the end."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._field = ""
        self._details: list[dict[str, Any]] = []
        self._kept: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._pictures: list[Image] = []
        self._speech = Speech()
        self.logprobs: list[TokenLogprob] = []
        self.stop = ""

    def is_empty(self) -> bool:
        return not (self._text or self._refusal or self._reasoning or self._pictures or self._speech.fields)

    def start(self, body: dict[str, Any]) -> None:
        """Takes the fields beside `choices`."""
        self._model = self._model or as_str(body.get("model"))
        if body.get("usage") or "x_groq" in body:
            usage = as_dict(body.get("usage")) or as_dict(as_dict(body.get("x_groq")).get("usage"))
            self._usage = usage or self._usage

    def add(self, message: dict[str, Any]) -> list[Chunk]:
        """Takes a message, or a piece of it."""
        if message.keys() <= CALLS_ALONE:  # nearly every piece of a long call
            return []
        chunks: list[Chunk] = []
        content = message.get("content")
        if isinstance(content, str) and message.keys() <= TEXT_ALONE:  # nearly every piece of a text
            self._say(self._text, content, chunks)
            return chunks
        self._add_reasoning(message, chunks)
        for part in dicts(content):
            if part.get("type") == "thinking":
                thought = "".join(as_str(item.get("text")) for item in dicts(part.get("thinking")))
                self._think("content", thought, chunks)
            elif (picture := picture_of(part)) is not None:
                self._pictures.append(picture)
            else:
                self._say(self._text, as_str(part.get("text")), chunks)
        self._say(self._text, as_str(content), chunks)
        self._say(self._refusal, as_str(message.get("refusal")), chunks)
        self._pictures.extend(pictures(message))
        if words := self._speech.add(as_dict(message.get("audio"))):
            chunks.append(TextChunk(words))
        for name in KEPT_FIELDS:
            if message.get(name):
                self._kept[name] = message[name]
        return chunks

    def _add_reasoning(self, message: dict[str, Any], chunks: list[Chunk]) -> None:
        said = False
        for name in REASONING_FIELDS:
            text = as_str(message.get(name))
            if text and not said:
                said = True
                self._think(name, text, chunks)
        for detail in dicts(message.get("reasoning_details")):
            text = as_str(detail.get("text")) or as_str(detail.get("summary"))
            if text and not said:
                self._think("", text, chunks)
            self._merge(detail)

    def _think(self, field: str, text: str, chunks: list[Chunk]) -> None:
        if text:
            self._field = self._field or field
            self._reasoning.append(text)
            chunks.append(ReasoningChunk(text))

    @staticmethod
    def _say(pieces: list[str], text: str, chunks: list[Chunk]) -> None:
        if text:
            pieces.append(text)
            chunks.append(TextChunk(text))

    def _merge(self, detail: dict[str, Any]) -> None:
        """Appends a piece of a reasoning detail to the last detail if it continues that one."""
        last = self._details[-1] if self._details else None
        same = last is not None and all(
            last.get(key) == detail.get(key) or (key == "id" and not detail.get(key))
            for key in ("index", "type", "id")
        )
        if last is None or not same or detail.get("index") is None:
            last = {}
            self._details.append(last)
        for name, value in detail.items():
            if name in GROWING and isinstance(value, str):
                if not isinstance(last.get(name), _Pieces):
                    last[name] = _Pieces()
                last[name].append(value)
            elif value or name not in last:
                last[name] = value

    def response(self, calls: list[ToolCall], *, broken: bool = False) -> Response:
        if is_malformed(self.stop) and not broken:
            problem = unread_call(self.stop).problem
            calls = [replace(call, problem=problem) for call in calls] or [unread_call(self.stop)]
        if self.stop in BROKEN and not broken:
            partial = self.response(calls, broken=True)
            raise ModelError("the model broke off its answer", retryable=True, partial=partial)
        parts: list[MessagePart] = []
        own: dict[str, Any] = {"field": self._field} if self._field else {}
        if self._details:
            own["reasoning_details"] = [_joined(detail) for detail in self._details]
        if own or self._reasoning:
            parts.append(Reasoning(joined(self._reasoning), extras_for(self._provider, own)))
        if self._text:
            parts.append(Text(joined(self._text)))
        if self._refusal:
            parts.append(Text(joined(self._refusal), {self._provider: {"refusal": True}}))
        parts.extend(self._speech.parts(self._provider))
        parts.extend(self._pictures)
        parts.extend(calls)
        kept = {**self._kept, "audio": self._speech.fields} if self._speech.fields else self._kept
        extras = extras_for(self._provider, kept)
        return Response(
            Message("assistant", parts, extras),
            "other" if broken else self._stop_reason(calls),
            read_usage(self._usage),
            self._model,
            self.stop,
            tuple(self.logprobs),
        )

    def _stop_reason(self, calls: list[ToolCall]) -> StopReason:
        reason = STOP_REASONS.get(self.stop, "other") if self.stop else "end"
        if reason == "end" or is_malformed(self.stop):
            return "tool_calls" if calls else "refusal" if self._refusal and not self._text else "end"
        return reason


class _Pieces(list[str]):
    """A text that still streams."""


def _joined(detail: dict[str, Any]) -> dict[str, Any]:
    return {name: "".join(value) if isinstance(value, _Pieces) else value for name, value in detail.items()}


def _is_first(choice: dict[str, Any]) -> bool:
    return choice.get("index") in (0, None)


def stop_of(choice: dict[str, Any]) -> str:
    """The stop reason of a choice: the native one, if it says that the model wrote a malformed call."""
    stop, native = as_str(choice.get("finish_reason")), as_str(choice.get("native_finish_reason"))
    return native if stop and is_malformed(native) else stop


def _error_in(event: dict[str, Any]) -> Any:
    """The error of an event, in the shapes that several servers use; None for an event without error."""
    if event.keys() <= IN_AN_EVENT and event.get("object") != "error":
        return None
    groq = as_dict(event.get("x_groq")).get("error")
    if event.get("error") or groq:
        return event if event.get("error") else {"error": groq}
    bare = "choices" not in event and (as_str(event.get("message")) or as_str(event.get("detail")))
    return event if event.get("object") == "error" or bare else None


def tool_calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message, or the one of the older `function_call`. What says nothing is no call: Snowflake
    Cortex sends an empty `function_call` with every answer.
    """
    if "tool_calls" not in message and "function_call" not in message:
        return []
    calls = [call for call in dicts(message.get("tool_calls")) if _says_something(call)]
    if calls:
        return calls
    legacy = {"index": 0, "function": as_dict(message.get("function_call"))}
    return [legacy] if _says_something(legacy) else []


def _says_something(call: dict[str, Any]) -> bool:
    function = called_function(call)
    return bool(arguments_text(function) or as_str(function.get("name")) or known_id(call.get("id")))


def read_usage(usage: dict[str, Any]) -> Usage:
    """Usage as neutral counts: cached tokens are part of the input, thinking is part of the output."""
    details = as_dict(usage.get("prompt_tokens_details"))
    written = as_dict(usage.get("completion_tokens_details"))
    prompt, completion = as_count(usage.get("prompt_tokens")), as_count(usage.get("completion_tokens"))
    reasoning = as_count(written.get("reasoning_tokens"))
    cache_read = _first_count(
        details.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),  # DeepSeek
        usage.get("cached_tokens"),  # Moonshot
        usage.get("cache_read_input_tokens"),  # Claude behind a proxy
    )
    cache_written = _first_count(
        details.get("cache_write_tokens"),  # OpenRouter
        details.get("cache_creation_tokens"),  # Claude behind a proxy
        details.get("cache_creation_input_tokens"),  # Qwen at Alibaba
        usage.get("cache_creation_input_tokens"),
    )
    # What only the total holds: Mistral's audio and a proxy's cached tokens are input; thinking that xAI counts
    # beside the completion, and that Gemini counts nowhere else, is output.
    beside = max(0, as_count(usage.get("total_tokens")) - prompt - completion)
    if usage.get("prompt_audio_seconds") or beside == cache_read + cache_written != reasoning:
        prompt += beside
    else:
        completion += beside
        reasoning = reasoning or beside
    if prompt < cache_read + cache_written:
        prompt += cache_read + cache_written
    return Usage(prompt, completion, cache_read, cache_written, reasoning, stated_cost(usage))


def _first_count(*counts: Any) -> int:
    return next((count for count in map(as_count, counts) if count), 0)


def stated_cost(usage: dict[str, Any]) -> float | None:
    """The cost that the provider states: in dollars, as an object (Perplexity) or in ticks (xAI)."""
    ticks = usage.get("cost_in_usd_ticks")
    if isinstance(ticks, int) and not isinstance(ticks, bool) and 0 <= ticks < 1e18:
        return ticks / TICKS_PER_DOLLAR
    cost = usage.get("cost")
    return as_money(as_dict(cost).get("total_cost") if isinstance(cost, dict) else cost)


def read_error(body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
    """The error that a body describes, in any of the shapes that servers use."""
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = as_dict(error)
    code = fields.get("code")
    if status is None:
        status = next(filter(None, map(_as_status, (code, fields.get("status_code")))), None)
    kinds = {as_str(fields.get("type")), as_str(code)}
    message = as_str(fields.get("message")) or as_str(fields.get("detail")) or as_str(error)
    detail = as_str(as_dict(fields.get("metadata")).get("raw"))
    words = f"{message or unread_error(body)}{f' ({detail[:500]})' if detail else ''}"
    quota = "insufficient_quota" in kinds
    retryable = not quota and any(is_retryable(status, kind) for kind in kinds)
    return with_unread_call(ModelError(words, retryable, status, retry_after), body)


def _as_status(value: Any) -> int | None:
    """The HTTP status of an error that a body repeats, as a number or as text; else None."""
    number = int(value) if isinstance(value, str) and re.fullmatch("[45][0-9]{2}", value) else value
    return (
        number if isinstance(number, int) and not isinstance(number, bool) and 400 <= number < 600 else None
    )
