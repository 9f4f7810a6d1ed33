"""A conformance check for codecs: requests carry everything, answers are read, and no input breaks it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import Codec, Features, ModelError, last_chunks
from toolcrib.content import File, Image, Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    Opaque,
    Reasoning,
    ReasoningChunk,
    Request,
    Response,
    ResultPart,
    Role,
    TextChunk,
    ToolChoice,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec
from toolcrib.testing.report import Report

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
NAMES = ("search", "read.file", "mcp:server/tool", "x" * 80, "9lives")
IDS = ("", "null", "call_1", "call_1", "é", "functions.search:0", "y" * 90)
ARGUMENTS: tuple[Any, ...] = ("", "{}", '{"q": "a"}', '{"q": ', "nonsense", {"q": "b"}, "[1]")
JUNK: tuple[Any, ...] = (None, True, 0, -1, 1.5, "", "x", [], {}, [[]], [None], {"x": None})
CHOICES = {
    "auto": ToolChoice(),
    "none": ToolChoice("none"),
    "required": ToolChoice("required"),
    "one": ToolChoice("required", ("search",)),
    "set": ToolChoice("auto", ("search", "read_file")),
}


def check_codec(
    codec: Codec,
    *,
    exchanges: Iterable[Mapping[str, Any]] = (),
    model: str = "model",
    count: int = 100,
    seed: int = 0,
) -> Report:
    """Check a wire format: requests carry what they were given, answers are read, and nothing breaks it.

    `count` conversations are made, the same for the same `seed`: well-formed ones, of which every text,
    argument, result and picture has to arrive, in order and once; and broken ones (missing ids, orphans, odd
    names), which must give a body all the same. What `codec.features` claims is tried. Recorded `exchanges`
    (see `toolcrib.models.Replay`) are read whole and streamed, and their answers sent back. A text format has
    to read its own calls. Raises nothing for a bad codec (see `Report`), and TypeError for an object that is
    not a codec.

    >>> from toolcrib.codecs import AnthropicMessagesCodec
    >>> check_codec(AnthropicMessagesCodec()).ok
    True
    """
    if isinstance(codec, type) or not hasattr(codec, "features"):
        raise TypeError(
            f"expected a codec, such as codec_named('openai_chat') or a model's .codec, got {codec!r}"
        )
    bench = _Bench(codec, model, Report(f"codec {codec.name}"), random.Random(seed))
    for _ in range(count):
        bench.arrives()
        bench.survives()
        bench.reads_junk()
        bench.rereads()
    bench.claims()
    for exchange in exchanges:
        bench.replays(exchange)
    return bench.report


class _Bench:
    """One codec under test, and the findings about it."""

    def __init__(self, codec: Codec, model: str, report: Report, dice: random.Random) -> None:
        self.codec = codec
        self.features: Features = codec.features
        self.model = model
        self.report = report
        self.dice = dice
        self.marks = 0

    def mark(self) -> str:
        """A unique word of nine letters and digits, which any provider accepts as an id."""
        self.marks += 1
        return f"mk{self.marks:07d}"

    def body(self, request: Request, check: str, *, stream: bool = False) -> str | None:
        """The request body as text; None, and a finding, where the codec raises."""
        before = copy.deepcopy(request.messages)
        try:
            made = self.codec.request(request, model=self.model, stream=stream)
            text = json.dumps(made, ensure_ascii=False)
            again = json.dumps(
                self.codec.request(request, model=self.model, stream=stream), ensure_ascii=False
            )
        except Exception as problem:
            self.report.error(check, f"request() fails: {type(problem).__name__}: {problem}", alike="request")
            return None
        if text != again:
            self.report.error(check, "the same request gives two different bodies", alike="same")
        if before != request.messages:
            self.report.error(check, "request() changed the messages that it was given", alike="changed")
        if '"tool_calls": []' in text:
            self.report.error(check, "an empty list of tool calls is sent", alike="empty")
        return text

    def rereads(self) -> None:
        """For a text format: the calls of a turn, written in its own format, are read back as the same calls."""
        from toolcrib.codecs.text.form import Form
        from toolcrib.codecs.text.parser import parse_text

        format = getattr(self.codec, "format", None)
        if not isinstance(format, Form):
            return
        specs = [ToolSpec(name, "Does it.", SCHEMA) for name in ("search", "read_file")]
        calls = [
            ToolCall(self.dice.choice(specs).name, json.dumps({"q": f'{self.mark()} is "it"'}))
            for _ in range(self.dice.randint(1, 3))
        ]
        try:
            read = parse_text(format.write_calls(calls), format, specs)
        except Exception as problem:
            self.report.error("rereads", f"{type(problem).__name__}: {problem}", alike="rereads")
            return
        named = [(call.name, call.arguments) for call in read.calls if not call.problem]
        if [(name, _loaded(arguments)) for name, arguments in named] != [
            (call.name, _loaded(call.arguments)) for call in calls
        ]:
            self.report.error(
                "rereads", f"of {len(calls)} calls, {len(named)} are read as they were written", alike="calls"
            )
        if left := "".join(part.text for part in read.parts if isinstance(part, Text)).strip():
            self.report.error(
                "rereads", f"{left[:40]!r} is left over from calls as it writes them", alike="left"
            )

    # -- what is sent

    def arrives(self) -> None:
        """For a well-formed conversation: every mark in it must appear in the body, in order."""
        marks: list[str] = []
        specs = [ToolSpec(name, "Does it.", SCHEMA) for name in ("search", "read_file")]
        messages = [Message.system("Be brief.")]
        for _ in range(self.dice.randint(1, 4)):
            messages += self._exchange(marks)
        text = self.body(Request(messages, specs), "arrives", stream=bool(self.dice.randint(0, 1)))
        if text is None:
            return
        places = [text.find(mark) for mark in marks]
        lost = [mark for mark, place in zip(marks, places, strict=True) if place < 0]
        if lost:
            self.report.error("arrives", f"{len(lost)} of {len(marks)} texts were lost", alike="lost")
        elif places != sorted(places):
            self.report.error("arrives", "texts arrive in another order", alike="order")
        elif any(text.count(mark) > 1 for mark in marks):
            self.report.error("arrives", "a text is sent twice", alike="twice")

    def _exchange(self, marks: list[str]) -> list[Message]:
        """A user's message, the answer with calls, their results."""

        def new() -> str:
            marks.append(self.mark())
            return marks[-1]

        asked: list[Any] = [Text(new())]
        if self.features.images and self.dice.random() < 0.3:
            asked.append(Image(data=new() + "AAA", media_type="image/png"))
        said: list[Any] = [Text(new())] if self.dice.random() < 0.7 else []
        calls = [
            ToolCall(
                self.dice.choice(("search", "read_file")),
                self._arguments(new()),
                self.mark(),
            )
            for _ in range(self.dice.randint(0, 3))
        ]
        if not calls:
            return [Message.user(*asked), Message("assistant", said or [Text(new())])]
        results: list[Any] = [
            ResultPart(call, ToolResult((Text(new()),), is_error=self.dice.random() < 0.3)) for call in calls
        ]
        return [Message.user(*asked), Message("assistant", [*said, *calls]), Message("tool", results)]

    def _arguments(self, word: str) -> str | dict[str, Any]:
        return {"q": word} if self.dice.random() < 0.5 else json.dumps({"q": word})

    def survives(self) -> None:
        """For a broken conversation: the codec must still write a body."""
        dice = self.dice
        calls: list[ToolCall] = []

        def part() -> Any:
            kind = dice.randrange(6)
            if kind == 0:
                return Text(dice.choice(("", " ", "hello", "\ud800")))
            if kind == 1:
                return Image(data=dice.choice(("", "AAAA")), media_type=dice.choice(("image/png", "x/y", "")))
            if kind == 2:
                return File(url="https://example.org/a.pdf", name="a.pdf")
            if kind == 3:
                return Reasoning("thought", dice.choice(({}, {"someone": {"signature": "s"}})))
            call = ToolCall(dice.choice(NAMES), dice.choice(ARGUMENTS), dice.choice(IDS))
            if kind == 4:
                calls.append(call)
                return call
            return ResultPart(
                dice.choice(calls) if calls and dice.random() < 0.7 else call, ToolResult.of("r")
            )

        roles: tuple[Role, ...] = ("system", "user", "assistant", "tool")
        messages = [
            Message(dice.choice(roles), [part() for _ in range(dice.randrange(4))])
            for _ in range(dice.randrange(6))
        ]
        specs = [ToolSpec(name, "", SCHEMA) for name in dice.sample(NAMES, dice.randrange(len(NAMES)))]
        text = self.body(Request(messages, specs), "survives")
        if text is not None and '"someone"' in text:
            self.report.error("survives", "extras of one provider are sent to another", alike="extras")

    def claims(self) -> None:
        """Checks the declared features: a declared one is sent, an undeclared one causes no error."""
        specs = [ToolSpec(name, "Does it.", SCHEMA) for name in ("search", "read_file", "write_file")]
        ask = [Message.user("Hi")]

        def differs(**named: Any) -> bool | None:
            plain = self.body(Request(ask, specs), "claims")
            other = self.body(Request(ask, specs, **named), "claims")
            return None if plain is None or other is None else plain != other

        for kind, choice in CHOICES.items():
            must = (
                kind in self.features.tool_choice or kind != "required"
            )  # other choices may be carried out by sending fewer tools
            if kind != "auto" and must and differs(tool_choice=choice) is False:
                self.report.error("claims", f"tool_choice {kind!r} makes no difference in the body")
        tried: dict[str, tuple[bool, dict[str, Any]]] = {
            "parallel_switch": (self.features.parallel_switch, {"parallel_calls": False}),
            "stop": (self.features.stop, {"stop": ("END",)}),
            "logit_bias": (self.features.logit_bias, {"logit_bias": {"42": 5}}),
            "logprobs": (self.features.logprobs, {"logprobs": True, "top_logprobs": 2}),
            "max_tokens": (True, {"max_tokens": 77}),
            "temperature": (True, {"temperature": 0.25}),
        }
        for name, (claimed, named) in tried.items():
            changed = differs(**named)
            if changed is not None and changed is not claimed:
                what = "is claimed, but changes nothing" if claimed else "is not claimed, but sent"
                self.report.error("claims", f"{name} {what}")
        self._media_claims()

    def _media_claims(self) -> None:
        word = self.mark() + "AAA"
        picture = Image(data=word, media_type="image/png")
        document = File(data=word, media_type="application/pdf", name="a.pdf")
        call = ToolCall("search", "{}", "call00001")
        answered = [
            Message.user("Hi"),
            Message("assistant", [call]),
            Message("tool", [ResultPart(call, ToolResult((Text("seen"), picture)))]),
        ]
        cases = {
            "images": (self.features.images, [Message.user("Hi", picture)]),
            "files": (self.features.files, [Message.user("Hi", document)]),
            "items": (
                self.features.items,
                [Message("user", [Text("Hi"), Opaque(self.codec.provider, {"type": "x", "said": word})])],
            ),
            "pictures in results": (self.features.images, answered),
        }
        for name, (claimed, messages) in cases.items():
            text = self.body(Request(messages, [ToolSpec("search", "", SCHEMA)]), "claims")
            if text is not None and (word in text) is not claimed:
                self.report.error(
                    "claims", f"{name}: {'claimed, but lost' if claimed else 'sent, not claimed'}"
                )

    # -- what comes back

    def reads_junk(self) -> None:
        """For JSON of any shape: the codec gives an answer or raises ModelError."""
        body, dice = self._junk(3), self.dice
        readers: dict[str, Any] = {
            "response": lambda: self.codec.response(body if isinstance(body, dict) else {"x": body}),
            "error": lambda: self.codec.error(body, dice.choice((None, 400, 429, 500))),
            "decoder": lambda: self._decoded(
                [item for _ in range(3) if isinstance(item := self._junk(3), dict)]
            ),
        }
        for name, read in readers.items():
            try:
                read()
            except ModelError:
                pass
            except Exception as problem:
                self.report.error("junk", f"{name}() raises {type(problem).__name__}: {problem}", alike=name)

    def _junk(self, depth: int) -> Any:
        words = (
            "type",
            "message",
            "choices",
            "delta",
            "content",
            "index",
            "error",
            "candidates",
            "parts",
            "output",
        )
        if depth == 0 or self.dice.random() < 0.2:
            return self.dice.choice(JUNK)
        if self.dice.random() < 0.3:
            return [self._junk(depth - 1) for _ in range(self.dice.randrange(3))]
        return {self.dice.choice(words): self._junk(depth - 1) for _ in range(self.dice.randrange(1, 4))}

    def _decoded(self, events: Iterable[dict[str, Any]]) -> tuple[list[Chunk], Response]:
        decoder = self.codec.decoder()
        chunks = [chunk for event in events for chunk in decoder.feed(event)]
        return [*chunks, *last_chunks(decoder)], decoder.finish()

    def replays(self, exchange: Mapping[str, Any]) -> None:
        """For a recorded exchange: it is read, its chunks are compared with the whole answer, and the answer is
        sent back.
        """
        from toolcrib.models.replay import STREAMED, recorded_events

        recorded = exchange["response"]
        where = str(exchange.get("id", "an exchange"))
        try:
            if recorded.get("framing") in STREAMED:
                chunks, response = self._decoded(recorded_events(recorded))
                self._add_up(where, chunks, response)
            elif isinstance(body := recorded.get("body"), dict):
                response = self.codec.response(body)
            else:
                return
        except ModelError:
            return
        except Exception as problem:
            self.report.error("replays", f"{where}: {type(problem).__name__}: {problem}", alike="raises")
            return
        self.report.calls += len(response.message.calls)
        results: list[Any] = [ResultPart(call, ToolResult.of(self.mark())) for call in response.message.calls]
        history = [Message.user("go"), response.message, *([Message("tool", results)] if results else [])]
        text = self.body(Request(history), "replays")
        if text is not None and any(part.result.text not in text for part in results):
            self.report.error("replays", f"{where}: a result was lost on the way back", alike="result")

    def _add_up(self, where: str, chunks: list[Chunk], response: Response) -> None:
        text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
        thought = "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningChunk))
        whole = "".join(part.text for part in response.message.parts if isinstance(part, Reasoning))
        if text != response.message.text or thought != whole:
            self.report.error(
                "replays", f"{where}: the streamed text is not the text of the answer", alike="text"
            )
        for index, call in enumerate(response.message.calls):
            pieces = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.index == index]
            if [chunk.name for chunk in pieces if chunk.name] != [call.name]:
                self.report.error("replays", f"{where}: call {index} streams no name, or two", alike="name")
            if not any(chunk.done for chunk in pieces):
                self.report.error(
                    "replays", f"{where}: call {index} is never said to be complete", alike="done"
                )


def _loaded(arguments: Any) -> Any:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments
