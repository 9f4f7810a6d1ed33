"""A codec over another: tools go into the prompt as text, and calls are read out of the text that comes back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import Codec, Decoder, ModelError, has_ended, is_complete
from toolcrib.codecs.pairing import write
from toolcrib.codecs.text.form import Form
from toolcrib.codecs.text.formats import format_for, format_named
from toolcrib.codecs.text.history import ANY_ID, TextWriter, system_with
from toolcrib.codecs.text.parser import TextParser, check_readable
from toolcrib.codecs.text.prose import read_no_calls
from toolcrib.codecs.tool_names import our_names, wire_names
from toolcrib.content import Text
from toolcrib.conversation_cache import ConversationCache, cache_of
from toolcrib.dataclass import replace
from toolcrib.guided.lower import lower
from toolcrib.guided.targets import target_for, target_named
from toolcrib.messages import (
    CallChunk,
    Chunk,
    MessagePart,
    Request,
    Response,
    RestartChunk,
    TextChunk,
    ToolChoice,
)

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

__all__ = ["TextCodec", "TextDecoder"]

MERGED = "merged_json"  # the form of an answer that a merged schema allows


class TextCodec:
    """Tools for a model that only writes text, over the codec that carries its text.

    `format` is a format or the name of one; without it `model`, the model's name, chooses. `thinking` says
    that the prompt's template opens a block of thinking, in which every answer begins. `constrain`
    holds a server that can do so to the form: "structural_tag" to the calls of a format that knows how,
    "json_schema" to one object, whose format is `merged_json`. ValueError for a name that is unknown, for a
    format of your own whose calls are not read back as it writes them, or for a format or server that knows no such
    constraint.

    >>> from toolcrib.codecs import OpenAIChatCodec
    >>> TextCodec(OpenAIChatCodec("vllm"), model="Qwen/Qwen2.5-72B-Instruct").format.name
    'hermes'
    """

    def __init__(
        self,
        base: Codec,
        format: str | Form | None = None,
        model: str = "",
        *,
        thinking: bool = False,
        constrain: str | None = None,
    ) -> None:
        chosen = format_named(format) if isinstance(format, str) else format
        if isinstance(format, Form):  # the rows of `formats.py` are checked by the tests
            check_readable(format)
        merged = chosen is None and constrain == "json_schema"
        self.format = chosen or (format_named(MERGED) if merged else format_for(model))
        self.base = base
        self.name = f"{base.name}+{self.format.name}"
        self.provider = base.provider
        self.thinking = thinking
        self.constrain = constrain
        if constrain is not None and constrain not in self.format.constraints:
            known = ", ".join(self.format.constraints) or "none"
            raise ValueError(
                f"the format {self.format.name!r} knows no constraint {constrain!r}; known: {known}"
            )
        self._target = target_for(base.name, base.provider)
        if constrain == "structural_tag" and target_named(self._target).tags is None:
            raise ValueError(f"{base.provider!r} takes no structural tags; {'json_schema'!r} may do")
        self.features = replace(
            base.features,
            tool_choice=frozenset({"auto", "none", "required", "one", "set"}),
            parallel_switch=True,
            media_in_results=False,
            partial_arguments=True,
            call_ids=False,
        )

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The base codec's body, with tools, earlier calls and results as text."""
        names = wire_names(request)
        specs = _specs(request, names)
        choice = replace(request.tool_choice, names=tuple(names.get(n, n) for n in request.tool_choice.names))
        reserved = self.format.reserved_with([spec.name for spec in specs])
        made = partial(TextWriter, self.format, names, self.provider, reserved)
        written = write(request, self, ANY_ID, made, settings=(names, reserved), head=list)
        messages = [*written.head_wire, *written.writer.wire]
        if specs:
            choice_words = _choice_in_words(choice, request.parallel_calls)
            messages = system_with(messages, self.format.teach(specs) + choice_words)
        cache = cache_of(request)
        if cache is not None:
            texts: ConversationCache = cache.written.setdefault((self.name, "texts"), ConversationCache())
            cache, messages = texts, texts.follow(messages)
        plain_request = replace(
            request,
            messages=messages,
            tools=(),
            tool_choice=ToolChoice(),
            parallel_calls=None,
            cache=cache,
        )
        body = self.base.request(plain_request, model=model, stream=stream)
        if self.constrain is None or not specs:
            return body
        constraint = self.format.constraints[self.constrain](
            specs, choice, request.parallel_calls is not False
        )
        return body if constraint is None else lower(constraint, self._target).into(body)

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """The response in a whole answer; ModelError when the body is no answer."""
        try:
            return self._read(self.base.response(body, _without_tools(request)), request)
        except ModelError as error:
            raise self._read_error(error, request) from None

    def decoder(self, request: Request | None = None) -> TextDecoder:
        """A fresh decoder for one streamed answer."""
        return TextDecoder(self, request)

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return self.base.error(body, status, retry_after)

    def parser(self, request: Request | None) -> TextParser:
        """A parser for one answer; without tools nothing in it is a call."""
        if request is not None and not request.tools:
            return TextParser(replace(self.format, read=read_no_calls), {}, thinking=self.thinking)
        specs = _specs(request, wire_names(request)) if request is not None else ()
        return TextParser(self.format, {s.name: s.input_schema for s in specs}, thinking=self.thinking)

    def _read(self, response: Response, request: Request | None) -> Response:
        """The response with the calls that stand in its text; native calls come after them."""
        parser, names = self.parser(request), our_names(request)
        native: list[MessagePart] = []
        for part in response.message.parts:
            if isinstance(part, Text):
                parser.feed(part.text)
            elif isinstance(part, ToolCall):
                native.append(part)
            else:
                parser.answer.part(part)
        parser.finish()
        parts = [_renamed(part, names) for part in [*parser.parsed().parts, *native]]
        called = any(isinstance(part, ToolCall) for part in parts)
        stop = "tool_calls" if called and response.stop_reason == "end" else response.stop_reason
        return replace(response, message=replace(response.message, parts=parts), stop_reason=stop)

    def _read_error(self, error: ModelError, request: Request | None) -> ModelError:
        if error.partial is not None:
            error.partial = self._read(error.partial, request)
        return error


class TextDecoder:
    """Reads calls out of the text that the base codec's decoder gives."""

    def __init__(self, codec: TextCodec, request: Request | None) -> None:
        self._codec = codec
        self._request = request
        self._names = our_names(request)
        self._base: Decoder = codec.base.decoder(_without_tools(request))
        self._parser = codec.parser(request)
        self._native: list[CallChunk] = []
        self._calls = 0
        self._ended = False

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """The chunks that one event brings; the base codec's own calls come at the end."""
        chunks: list[Chunk] = []
        for chunk in self._base.feed(event):
            if isinstance(chunk, TextChunk):
                chunks += self._with_our_names(self._parser.feed(chunk.text))
            elif isinstance(chunk, CallChunk):
                self._native.append(chunk)
            else:
                if isinstance(chunk, RestartChunk):
                    self._parser = self._codec.parser(self._request)
                    self._native.clear()
                    self._calls = 0
                chunks.append(chunk)
        return chunks

    def end(self) -> list[Chunk]:
        """The chunks that are certain only at the end of the stream; called before `finish`."""
        if self._ended:
            return []
        self._ended = True
        chunks = self._with_our_names(self._parser.finish())
        native = (replace(chunk, index=self._calls + chunk.index) for chunk in self._native)
        return [*chunks, *(_renamed_chunk(chunk, self._names) for chunk in native)]

    @property
    def ended(self) -> bool:
        """Whether the answer has its stop reason."""
        return has_ended(self._base)

    @property
    def complete(self) -> bool:
        """Whether nothing of the answer can follow."""
        return is_complete(self._base)

    def finish(self) -> Response:
        """The whole answer; ModelError when the stream ended too early."""
        try:
            return self._codec._read(self._base.finish(), self._request)
        except ModelError as error:
            raise self._codec._read_error(error, self._request) from None

    def _with_our_names(self, chunks: list[Chunk]) -> list[Chunk]:
        for chunk in chunks:
            if isinstance(chunk, CallChunk):
                self._calls = chunk.index + 1
            elif isinstance(chunk, RestartChunk):
                self._calls = 0
        return [_renamed_chunk(chunk, self._names) for chunk in chunks] if self._names else chunks


def _without_tools(request: Request | None) -> Request | None:
    """The request as the base codec knows it, for reading its answer."""
    return None if request is None else replace(request, messages=[], tools=(), tool_choice=ToolChoice())


def _specs(request: Request, names: dict[str, str]) -> Sequence[ToolSpec]:
    return [spec.renamed(names[spec.name]) if spec.name in names else spec for spec in request.tools]


def _renamed(part: MessagePart, names: dict[str, str]) -> MessagePart:
    if isinstance(part, ToolCall) and part.name in names:
        return replace(part, name=names[part.name])
    return part


def _renamed_chunk(chunk: Chunk, names: dict[str, str]) -> Chunk:
    if isinstance(chunk, CallChunk) and chunk.name in names:
        return replace(chunk, name=names[chunk.name])
    return chunk


def _choice_in_words(choice: ToolChoice, parallel: bool | None) -> str:
    """The tool choice and the number of calls, as sentences for the prompt."""
    named = ", ".join(choice.names)
    sentences: list[str] = []
    if choice.mode == "none":
        sentences.append("Do not call any tool in your next answer.")
    elif choice.mode == "required":
        which = f"the tool {named}" if len(choice.names) == 1 else f"one of {named}" if named else "a tool"
        sentences.append(f"Your next answer must call {which}.")
    elif named:
        sentences.append(f"In your next answer, call no tool but {named}.")
    if parallel is False and choice.mode != "none":
        sentences.append("Call at most one tool in an answer.")
    return "".join(f"\n\n{sentence}" for sentence in sentences[:1]) + "".join(
        f" {sentence}" for sentence in sentences[1:]
    )
