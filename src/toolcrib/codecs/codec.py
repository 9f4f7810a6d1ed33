"""The interface of every wire format: Codec, the Decoder of one stream, and the error that both may raise."""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

from toolcrib.call import ToolCall
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolcribError
from toolcrib.messages import Chunk, Request, Response, Usage
from toolcrib.visible import counted

LONGEST_WORDS = 2_000  # characters of an error that a person and a log are shown
LONGEST_EVENT = 24 * 1024 * 1024  # bytes of one event of a stream, which is parsed at once
RETRYABLE_STATUS = frozenset({408, 409, 425, 429})
PERMANENT_STATUS = frozenset({401, 402, 403, 404, 405, 410, 413, 414, 415, 422})
# Types of a passing failure; servers and proxies send some of them with the status 400.
PASSING_TYPES = frozenset(
    {"overloaded_error", "rate_limit_error", "rate_limit_exceeded", "service_unavailable", "timeout_error"}
)
# Types that say no more than that the request failed: a status says more.
VAGUE_TYPES = frozenset({"api_error", "server_error"})

# How providers say that a request has more tokens than the model can read: their own words, as far as they are known.
TOO_LONG = re.compile(
    r"prompt is too long|prompt_too_long|input is too long|input length .{0,80}exceed|too many input tokens"
    r"|context[ _](?:length|size|window)[ _](?:limit[ _])?exceed|exceed\w* (?:the |model'?s? )*(?:available |maximum )?"
    r"context|context window exceed|(?:maximum|max) (?:model |allowed )?(?:context|prompt|input) length"
    r"|exceeds? the max(?:imum)? (?:number of (?:input )?tokens|length)|exceeds max length|input token count"
    r"|model token limit|reduce the length of the (?:messages|prompt|input)|request_too_large"
    r"|greater than the context length|inputs? tokens? \+ `?max_new_tokens`? must be|too large for model with"
    r"|too many tokens: .{0,40}limit|longer than the model's context length",
    re.IGNORECASE,
)


class ModelError(ToolcribError):
    """A model did not answer, or its answer broke off.

    `retryable` says that the same request may succeed a moment later; `status` is the HTTP status, if there was
    one; `retry_after` is the number of seconds that the server asked to wait; `partial` is the answer up to the
    point where a stream broke, for a person to look at: its calls must never be run; `unread` is the model's call
    that the server could not read, if that is why there is no answer.
    """

    def __init__(
        self,
        message: str,
        retryable: bool = False,
        status: int | None = None,
        retry_after: float | None = None,
        partial: Response | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.status = status
        self.retry_after = retry_after
        self.partial = partial
        self.unread: ToolCall | None = None

    def reworded(self, message: str) -> ModelError:
        """This error with another message."""
        self.message = message
        self.args = (message,)
        return self

    @property
    def usage(self) -> Usage:
        """What the attempt used, as far as the provider has said."""
        return Usage() if self.partial is None else self.partial.usage

    @property
    def too_long(self) -> bool:
        """Whether the request has more tokens than the model can read; no limit of tokens per minute is meant."""
        limited = self.status == 429 or re.search(r"per[ -](?:minute|day)", self.message, re.IGNORECASE)
        return not limited and (self.status == 413 or TOO_LONG.search(self.message) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What a wire format can carry. Each codec declares it, and `toolcrib.testing.check_codec` verifies the
    declaration.

    `tool_choice` lists the kinds of choice that the format expresses ("one" tool, a "set" of tools); the others
    are met by sending fewer tools. `images`, `files` and `audio` are about user messages; `media_in_results`
    says that a tool result can carry images itself (else they follow in a user message). `reasoning` is sent
    back intact, `items` that items of its own (`Opaque`) are; `partial_arguments` that arguments stream in
    pieces; `call_ids` that the provider gives every call an id.
    """

    tool_choice: frozenset[str] = frozenset({"auto", "none", "required", "one"})
    parallel_switch: bool = False
    images: bool = False
    files: bool = False
    audio: bool = False
    media_in_results: bool = False
    reasoning: bool = False
    items: bool = False
    partial_arguments: bool = False
    call_ids: bool = True
    stop: bool = True
    logit_bias: bool = False
    logprobs: bool = False


class Decoder(Protocol):
    """Turns the events of one streamed answer into chunks. It never raises anything but ModelError.

    Two attributes are optional. `ended` says that the answer has its stop reason: if the stream breaks off now, it is
    complete. `complete` says that the last event of the format has come: nothing that follows is read.
    """

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """The chunks that one event (the parsed JSON of its data) brings."""
        ...

    def finish(self) -> Response:
        """The whole answer, after the last event; raises ModelError when the stream ended too early."""
        ...


class Codec(Protocol):
    """One provider's wire format. Pure: parsed JSON in, parsed JSON out.

    Names that the provider refuses are mapped for the wire; `response` and `decoder` need the request to
    map them back.
    """

    name: str
    provider: str
    features: Features

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body to send."""
        ...

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        ...

    def decoder(self, request: Request | None = None) -> Decoder:
        """A fresh decoder for one streamed answer."""
        ...

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        ...


def has_ended(decoder: Decoder) -> bool:
    """Whether the answer is complete if nothing more of it comes."""
    return getattr(decoder, "ended", False) is True


def is_complete(decoder: Decoder) -> bool:
    """Whether nothing of the answer can follow."""
    return getattr(decoder, "complete", False) is True


def shortened(words: str, most: int = LONGEST_WORDS) -> str:
    """What a person and a log are shown of a provider's words."""
    cut = len(words) - most
    end = most - most // 10
    return words if cut <= 0 else f"{words[:end]}… ({counted(cut, 'more character')}) …{words[end + cut :]}"


def last_chunks(decoder: Decoder) -> list[Chunk]:
    """The chunks that a decoder can give only at the end of a stream. Decoders without such chunks have no
    `end` method.
    """
    end = getattr(decoder, "end", None)
    chunks: list[Chunk] = [] if end is None else end()
    return chunks


def is_retryable(status: int | None, kind: str) -> bool:
    """Whether the same request may succeed later. A status of a permanent error counts whatever the error's
    type; a vague type counts only without a status.
    """
    if kind == "insufficient_quota":  # comes as a 429 and stays one until somebody pays
        return False
    if status is None:
        return kind in PASSING_TYPES or kind in VAGUE_TYPES
    if status in PERMANENT_STATUS:
        return False
    return kind in PASSING_TYPES or status in RETRYABLE_STATUS or 500 <= status < 600


def unread_error(body: Any) -> str:
    """The message for an error body of unknown shape: the body itself, shortened."""
    try:
        said = json.dumps(body, ensure_ascii=False, default=str) if body else ""
    except (ValueError, RecursionError):
        said = ""
    return f"the model answered with an error{': ' if said else ''}{said[:500]}"
