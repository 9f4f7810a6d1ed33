"""The parts of a Gemini answer while it streams: text, thinking and calls grow; media come whole."""

from __future__ import annotations

from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.gemini_partial import PartialArguments
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.wire_json import as_dict, as_list, as_str, compact, extras_for, joined
from toolcrib.content import Audio, File, Image, Text
from toolcrib.messages import CallChunk, Chunk, MessagePart, Reasoning


class Words:
    """Text or thinking that is still streaming."""

    __slots__ = ("own", "pieces", "plain", "thought")

    def __init__(self, text: str, thought: bool, own: dict[str, Any], plain: bool) -> None:
        self.pieces = [text]
        self.thought = thought
        self.own = own
        self.plain = plain

    def whole(self, provider: str, names: dict[str, str]) -> MessagePart:
        text = joined(self.pieces)
        extras = extras_for(provider, self.own)
        return Reasoning(text, extras) if self.thought else Text(text, extras)


class Call:
    """One call that is still streaming; its arguments come whole, or as pairs of a path and a piece."""

    __slots__ = ("args", "closed", "extras", "id", "name", "number", "partial", "problem")

    def __init__(self, number: int, name: str, id: str) -> None:
        self.number = number
        self.name = name
        self.id = id
        self.args: Any = None
        self.partial: PartialArguments | None = None
        self.extras: dict[str, Any] = {}
        self.problem = ""
        self.closed = False

    def take(self, call: dict[str, Any]) -> str:
        """Takes a piece and returns the argument text that it adds."""
        self.name, self.id = self.name or as_str(call.get("name")), self.id or known_id(call.get("id"))
        said = ""
        if (args := call.get("args")) not in (None, {}, ""):
            said = _as_text(args) if self.args is None and self.partial is None else ""
            self.args = args
        if call.get("willContinue") is True or call.get("partialArgs"):
            self.partial = self.partial or PartialArguments()
        for entry in as_list(call.get("partialArgs")):
            said += self.partial.take(as_dict(entry)) if self.partial else ""
        return said

    def close(self) -> list[Chunk]:
        if self.closed:
            return []
        self.closed = True
        if self.args is not None:
            return [CallChunk(self.number, done=True)]
        if self.partial is None:
            return [CallChunk(self.number, arguments="{}", done=True)]
        said = self.partial.close()
        # Arguments that did not stream completely are known only from the whole answer: no call may start early.
        return [CallChunk(self.number, arguments=said, done=True)] if self.partial.is_said else []

    def whole(self, provider: str, names: dict[str, str]) -> ToolCall:
        arguments, problem = {} if self.args is None else self.args, ""
        if self.args is None and self.partial is not None:
            arguments, problem = self.partial.whole()
        return ToolCall(
            names.get(self.name, self.name),
            arguments if isinstance(arguments, str | dict) else compact(arguments),
            self.id,
            extras_for(provider, self.extras),
            self.problem or problem,
        )


def read_media(part: dict[str, Any], provider: str) -> Image | Audio | File | None:
    """The image, audio or file of a part, as bytes or as a URL."""
    inline, file = as_dict(part.get("inlineData")), as_dict(part.get("fileData"))
    held = inline or file
    kind = as_str(held.get("mimeType"))
    data, url = as_str(inline.get("data")), as_str(file.get("fileUri"))
    if not (data or url):
        return None
    own = without(part, "inlineData", "fileData")
    name, extras = as_str(held.get("displayName")), extras_for(provider, own)
    if kind.startswith("image/"):
        return Image(data, url, kind, name, extras)
    if kind.startswith("audio/"):
        return Audio(data, url, kind, name, extras)
    return File(data, url, kind, name, extras)


def _as_text(args: Any) -> str:
    return args if isinstance(args, str) else compact(args)


def without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}
