"""Chat Completions: reads pictures, speech and log-probabilities, which models send beside text and calls."""

from __future__ import annotations

import math
from typing import Any

from toolcrib.codecs.wire_json import as_dict, as_str, dicts, joined
from toolcrib.content import Audio, Image, Text
from toolcrib.messages import MessagePart, TokenLogprob

SPEECH_TYPE = "audio/wav"  # the format is named in the request alone, and this is its usual one


def pictures(message: dict[str, Any]) -> list[Image]:
    """The images of an answer, which OpenRouter and similar servers send beside the content."""
    return [picture for item in dicts(message.get("images")) if (picture := picture_of(item)) is not None]


def picture_of(block: dict[str, Any]) -> Image | None:
    """The image of an `image_url` block; None for any other block."""
    given = block.get("image_url")
    address = as_str(given) or as_str(as_dict(given).get("url"))
    if not address:
        return None
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(data=data, media_type=head[len("data:") : -len(";base64")])
    return Image(url=address)


class Speech:
    """A spoken answer; id, audio and transcript may come in pieces."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self._transcript: list[str] = []
        self.fields: dict[str, Any] = {}

    def add(self, audio: dict[str, Any]) -> str:
        """Takes a piece and returns its transcript."""
        words = as_str(audio.get("transcript"))
        self._data.append(as_str(audio.get("data")))
        self._transcript.append(words)
        self.fields |= {name: value for name, value in audio.items() if name not in ("data", "transcript")}
        return words

    def parts(self, provider: str) -> list[MessagePart]:
        """Audio and transcript, marked with the id by which alone the provider takes them back."""
        data, words = "".join(self._data), joined(self._transcript)
        spoken = {provider: {"spoken": True}}
        parts: list[MessagePart] = [Text(words, dict(spoken))] if words else []
        return [*parts, Audio(data=data, media_type=SPEECH_TYPE, extras=dict(spoken))] if data else parts


def token_logprobs(choice: dict[str, Any]) -> list[TokenLogprob]:
    """The log-probabilities of a choice's text, or of one piece of it."""
    return [
        TokenLogprob(
            as_str(item.get("token")),
            as_number(item.get("logprob")),
            tuple(
                (as_str(other.get("token")), as_number(other.get("logprob")))
                for other in dicts(item.get("top_logprobs"))
            ),
        )
        for item in dicts(as_dict(choice.get("logprobs")).get("content"))
    ]


def as_number(value: Any) -> float:
    """A log-probability; the lowest float where the value cannot be read."""
    if isinstance(value, float):
        return value
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1_000_000
    return float(value) if whole else -math.inf
