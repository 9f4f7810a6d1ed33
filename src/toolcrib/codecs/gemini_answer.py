"""Gemini generateContent: reads answers, whole or streamed. A whole answer is read as a stream of one event."""

from __future__ import annotations

import re
from typing import Any

from toolcrib.codecs.codec import ModelError, is_retryable, unread_error
from toolcrib.codecs.gemini_parts import Call, Words, read_media, without
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.sse import DONE
from toolcrib.codecs.wire_json import as_count, as_dict, as_float, as_list, as_str, dicts, extras_for
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    MessagePart,
    Opaque,
    ReasoningChunk,
    Response,
    StopReason,
    TextChunk,
    TokenLogprob,
    Usage,
)

STOP_REASONS: dict[str, StopReason] = {
    "STOP": "end",  # becomes "tool_calls" where there are calls
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION",
            "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
        ),
        "filter",
    ),
}  # fmt: skip
# Vertex gives numbers to clients that ask for `enum-encoding=int`.
NUMBERED = {
    "0": "FINISH_REASON_UNSPECIFIED",
    "1": "STOP",
    "2": "MAX_TOKENS",
    "3": "SAFETY",
    "4": "RECITATION",
    "5": "OTHER",
    "6": "BLOCKLIST",
    "7": "PROHIBITED_CONTENT",
    "8": "SPII",
    "9": "MALFORMED_FUNCTION_CALL",
    "10": "MODEL_ARMOR",
}
# A call that Gemini's own parser refused. It is answered as a call, so that the model reads what was wrong:
# the same request sent again often fails the same way, and an empty answer would end the run.
REFUSED_CALLS = {
    "MALFORMED_FUNCTION_CALL": "the call was not written as a function call",
    "UNEXPECTED_TOOL_CALL": "no such function can be called at this point",
}
# Answers that are none: whether the same request may bring one.
FAILED = {"MALFORMED_RESPONSE": True, "MISSING_THOUGHT_SIGNATURE": False, "PUP_LIMITED_DISABLED": False}
BROKEN_OFF = "its arguments broke off"
KEPT_FIELDS = (
    "finishMessage", "safetyRatings", "citationMetadata", "groundingMetadata", "urlContextMetadata",
    "groundingAttributions", "avgLogprobs",
)  # fmt: skip
RETRYABLE = frozenset({"RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED"})
WORD = re.compile(r"[A-Za-z_][\w-]*")
SECONDS = re.compile(r"(\d{1,9}(?:\.\d+)?)s")


def read_response(
    body: dict[str, Any], provider: str, names: dict[str, str], tools: frozenset[str] = frozenset()
) -> Response:
    """Reads a whole answer."""
    if not body.get("error") and not dicts(body.get("candidates")) and not _blocked(body):
        raise ModelError("the answer holds no candidates: it is not an answer of Gemini", retryable=True)
    decoder = GeminiDecoder(provider, names, tools)
    decoder.feed(body)
    decoder.ended = True
    return decoder.finish()


class GeminiDecoder:
    """Pieces of a generateContent answer in, neutral chunks out; only the first candidate is read.

    `names` maps wire names to ours; `tools` are the wire names of the tools that may be called.
    """

    def __init__(
        self,
        provider: str = "gemini",
        names: dict[str, str] | None = None,
        tools: frozenset[str] = frozenset(),
    ) -> None:
        self.ended = False
        self._provider = provider
        self._names = names or {}
        self._tools = tools
        self._parts: list[Words | Call | MessagePart] = []
        self._calls: list[Call] = []
        self._model = ""
        self._stop = ""
        self._usage: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}
        self._logprobs: list[TokenLogprob] = []

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Reads one event and returns its chunks; raises ModelError for an error event."""
        if event.get("error"):
            error = read_error(event)
            error.partial = self._response("other")
            raise error
        self._model = self._model or as_str(event.get("modelVersion"))
        usage = as_dict(event.get("usageMetadata"))
        self._usage |= {name: value for name, value in usage.items() if value is not None}
        if blocked := _blocked(event):
            self._kept["promptFeedback"] = event["promptFeedback"]
            self._stop = blocked
        chunks: list[Chunk] = []
        for candidate in dicts(event.get("candidates")):
            if candidate.get("index") in (0, None):
                chunks.extend(self._candidate(candidate))
        self.ended = self.ended or bool(self._stop) or bool(event.get(DONE))
        return chunks

    def finish(self) -> Response:
        """The whole answer."""
        if not self.ended:
            raise ModelError(
                "the stream ended before the answer was complete",
                retryable=True,
                partial=self._response("other"),
            )
        reason = NUMBERED.get(self._stop, self._stop)
        if reason in FAILED:
            words = as_str(self._kept.get("finishMessage")) or "the model gave no answer"
            raise ModelError(f"{words} ({reason})", FAILED[reason], partial=self._response("other"))
        return self._response(self._stop_reason(reason))

    def _candidate(self, candidate: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for part in dicts(as_dict(candidate.get("content")).get("parts")):
            chunks.extend(self._part(part))
        self._kept |= {name: candidate[name] for name in KEPT_FIELDS if candidate.get(name)}
        self._logprobs.extend(read_logprobs(candidate.get("logprobsResult")))
        stop = candidate.get("finishReason")
        if isinstance(stop, str | int) and not isinstance(stop, bool) and stop:
            self._stop = str(stop)
            chunks.extend(self._stopped(NUMBERED.get(self._stop, self._stop)))
        return chunks

    def _part(self, part: dict[str, Any]) -> list[Chunk]:
        if isinstance(part.get("functionCall"), dict):
            return self._call(part["functionCall"], without(part, "functionCall"))
        thought = part.get("thought") is True
        own = without(part, "text")
        if isinstance(part.get("text"), str) or own.keys() <= {"thought", "thoughtSignature"}:
            return self._words(as_str(part.get("text")), thought, own)
        media = None if thought else read_media(part, self._provider)
        self._parts.append(media or Opaque(self._provider, part))
        return []

    def _words(self, text: str, thought: bool, own: dict[str, Any]) -> list[Chunk]:
        """Adds text or thinking. A piece with a signature stays a part of its own; other pieces are appended to
        the one before.
        """
        plain = own.keys() <= {"thought"}
        if plain and not text:
            return []
        last = self._parts[-1] if self._parts else None
        if plain and isinstance(last, Words) and last.plain and last.thought == thought:
            last.pieces.append(text)
        else:
            self._parts.append(Words(text, thought, own, plain))
        return [ReasoningChunk(text) if thought else TextChunk(text)] if text else []

    def _call(self, call: dict[str, Any], own: dict[str, Any]) -> list[Chunk]:
        name, id = as_str(call.get("name")), known_id(call.get("id"))
        chunks: list[Chunk] = []
        current = self._continued(name, id)
        if current is None:
            if not (name or id or call.get("args") or call.get("partialArgs")):
                return []  # the end of a call that was closed already
            chunks.extend(self._close_last())
            current = self._opened(name, id)
            chunks.append(CallChunk(current.number, self._names.get(name, name), id))
        elif (name and not current.name) or (id and not current.id):
            late = "" if current.name else self._names.get(name, name)
            chunks.append(CallChunk(current.number, late, "" if current.id else id))
        current.extras |= own
        if rest := without(call, "name", "id", "args", "partialArgs", "willContinue"):
            current.extras["functionCall"] = {**as_dict(current.extras.get("functionCall")), **rest}
        text = current.take(call)
        if text:
            chunks.append(CallChunk(current.number, arguments=text))
        if call.get("willContinue") is not True:
            chunks.extend(current.close())
        return chunks

    def _opened(self, name: str, id: str) -> Call:
        call = Call(len(self._calls), name, id)
        self._calls.append(call)
        self._parts.append(call)
        return call

    def _continued(self, name: str, id: str) -> Call | None:
        """The call that a piece continues: the open one, unless the piece names another tool."""
        last = self._calls[-1] if self._calls else None
        if last is None or last.closed or (name and not (id and id == last.id)):
            return None
        return None if id and last.id and id != last.id else last

    def _close_last(self) -> list[Chunk]:
        return self._calls[-1].close() if self._calls else []

    def _stopped(self, reason: str) -> list[Chunk]:
        """Marks calls that were refused or that broke off. A call that lacks only its end mark is complete."""
        if reason in REFUSED_CALLS:
            return self._refused(REFUSED_CALLS[reason])
        last = self._calls[-1] if self._calls else None
        if reason == "STOP" or last is None or last.closed:
            return self._close_last()
        last.problem = BROKEN_OFF
        return []

    def _refused(self, words: str) -> list[Chunk]:
        """Marks every call of this answer as not to be run. Without any, one call is added that stands for what
        the model wrote.
        """
        said = as_str(self._kept.get("finishMessage"))
        chunks: list[Chunk] = []
        if not self._calls:
            name = next((word for word in WORD.findall(said) if word in self._tools), "")
            call = self._opened(name, "")
            call.args = said
            chunks.append(CallChunk(call.number, self._names.get(name, name), arguments=said, done=True))
        for call in self._calls:
            call.problem, call.closed = f"{words} ({said[:500]})" if said else words, True
        return chunks

    def _stop_reason(self, reason: str) -> StopReason:
        if "promptFeedback" in self._kept:
            return "filter"
        stop = STOP_REASONS.get(reason, "other") if reason else "end"
        return "tool_calls" if self._calls and (stop == "end" or reason in REFUSED_CALLS) else stop

    def _response(self, stop: StopReason) -> Response:
        parts: list[MessagePart] = []
        for part in self._parts:
            if isinstance(part, Words | Call):
                part = part.whole(self._provider, self._names)
            parts.append(part)
        message = Message("assistant", parts, extras_for(self._provider, dict(self._kept)))
        usage = read_usage(self._usage)
        return Response(message, stop, usage, self._model, self._stop, tuple(self._logprobs))


def read_logprobs(result: Any) -> list[TokenLogprob]:
    """The tokens of a `logprobsResult`, each with its most likely alternatives."""
    others = as_list(as_dict(result).get("topCandidates"))
    found: list[TokenLogprob] = []
    for position, chosen in enumerate(as_list(as_dict(result).get("chosenCandidates"))):
        beside = as_dict(others[position]).get("candidates") if position < len(others) else ()
        top = tuple(_token(item) for item in dicts(beside))
        token, logprob = _token(as_dict(chosen))
        found.append(TokenLogprob(token, logprob, top))
    return found


def _token(item: dict[str, Any]) -> tuple[str, float]:
    return as_str(item.get("token")), as_float(item.get("logProbability")) or 0.0


def read_usage(usage: dict[str, Any]) -> Usage:
    """Usage as neutral counts; this API counts thinking beside the candidates, and tools' results beside the
    prompt.
    """
    thoughts = as_count(usage.get("thoughtsTokenCount"))
    return Usage(
        as_count(usage.get("promptTokenCount")) + as_count(usage.get("toolUsePromptTokenCount")),
        as_count(usage.get("candidatesTokenCount")) + thoughts,
        as_count(usage.get("cachedContentTokenCount")),
        reasoning_tokens=thoughts,
    )


def read_error(body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
    """The error that a body describes. A streamed answer without server-sent events wraps the error in a list."""
    body = next(iter(dicts(body)), body)
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = as_dict(error)
    code = fields.get("code")
    if status is None and isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
        status = code
    spent_for_today = False
    for detail in dicts(fields.get("details")):
        delay = SECONDS.fullmatch(as_str(detail.get("retryDelay")))
        if delay and retry_after is None:
            retry_after = float(delay[1])
        violated = (as_str(item.get("quotaId")) for item in dicts(detail.get("violations")))
        spent_for_today = spent_for_today or any("PerDay" in quota for quota in violated)
    words = as_str(fields.get("message")) or as_str(error) or unread_error(body)
    retryable = is_retryable(status, "") or as_str(fields.get("status")) in RETRYABLE
    return ModelError(words, retryable and not spent_for_today, status, retry_after)


def _blocked(event: dict[str, Any]) -> str:
    """The reason why the prompt was blocked; "" if it was not."""
    reason = as_dict(event.get("promptFeedback")).get("blockReason")
    return str(reason) if isinstance(reason, str | int) and reason else ""
