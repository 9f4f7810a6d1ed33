"""What a parser of text writes to: chunks to hand out at once, and in the end the parts of the message."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolcrib.call import ToolCall
from toolcrib.codecs.loose import joined
from toolcrib.content import Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    MessagePart,
    Reasoning,
    ReasoningChunk,
    RestartChunk,
    TextChunk,
)

CUT_OFF = "it was cut off before its end"
THOUGHT_ALOUD = "what came so far turned out to be the model's thinking"


@dataclass(slots=True)
class _Call:
    """One call in the making."""

    index: int
    name: str
    id: str = ""
    pieces: list[str] = field(default_factory=list)
    problem: str = ""


@dataclass(slots=True)
class _Run:
    """A run of text or of reasoning."""

    thinking: bool
    pieces: list[str] = field(default_factory=list)


class Answer:
    """Text, reasoning and calls in the order in which a parser reports them.

    White space beside a call or a block of reasoning is layout of the format and not shown.
    """

    __slots__ = ("_call", "_calls", "_chunks", "_held", "_parts", "_run", "_trim")

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._parts: list[_Run | _Call | MessagePart] = []
        self._call: _Call | None = None
        self._calls = 0
        self._held: list[str] = []  # white space that may turn out to stand beside a call
        self._run: _Run | None = None
        self._trim = False  # whether white space that comes next stands beside a call or thinking

    # What a parser says

    def text(self, piece: str) -> None:
        """A piece of the answer's text."""
        self._say(piece, thinking=False)

    def reasoning(self, piece: str) -> None:
        """A piece of the model's thinking."""
        self._say(piece, thinking=True)

    def end_reasoning(self) -> None:
        """A block of thinking is over: another that follows is a part of its own."""
        self._block()

    def open_call(self, name: str, id: str = "") -> None:
        """A call begins; one that is still open is complete."""
        self.close_call()
        self._block()
        self._call = _Call(self._calls, name, id)
        self._calls += 1
        self._parts.append(self._call)
        self._chunks.append(CallChunk(self._call.index, name, id))

    def call_id(self, id: str) -> None:
        """The open call's id, where it comes after the name."""
        if self._call is not None and id and not self._call.id:
            self._call.id = id
            self._chunks.append(CallChunk(self._call.index, id=id))

    def arguments(self, piece: str) -> None:
        """A piece of the open call's arguments: JSON text."""
        if self._call is not None and piece:
            self._call.pieces.append(piece)
            self._chunks.append(CallChunk(self._call.index, arguments=piece))

    def close_call(self) -> None:
        """The open call is complete."""
        call, self._call = self._call, None
        if call is not None:
            self._chunks.append(CallChunk(call.index, done=True))

    def fail_call(self, problem: str, name: str = "") -> None:
        """The open call, or else one that could not even be opened, can never be run: why, for the model."""
        if self._call is None:
            self.open_call(name)
        if self._call is not None:
            self._call.problem = problem
            self._call = None

    @property
    def written(self) -> str:
        """The open call's arguments so far."""
        return "" if self._call is None else "".join(self._call.pieces)

    @property
    def call_open(self) -> bool:
        return self._call is not None

    def retract(self, text: str) -> None:
        """All that was reported so far was thinking, and this is how it was written."""
        kept: list[_Run | _Call | MessagePart] = [
            part for part in self._parts if not isinstance(part, _Run | _Call)
        ]
        said = len(kept) < len(self._parts)
        self._parts = kept
        self._call, self._calls = None, 0
        self._block()
        self._chunks.clear()
        if said:
            self._chunks.append(RestartChunk(THOUGHT_ALOUD))
        self.reasoning(text)
        self.end_reasoning()

    # What a base codec says beside the text

    def part(self, part: MessagePart) -> None:
        """A part that is no text of the model's: it keeps its place."""
        self._run = None
        self._parts.append(part)

    # What comes out

    def take(self) -> list[Chunk]:
        """The chunks since the last time."""
        chunks, self._chunks = self._chunks, []
        return chunks

    def finish(self) -> None:
        """The text is over: an open call was cut off, and white space at the end is text."""
        if self._call is not None:
            self.fail_call(CUT_OFF)
        run = self._run
        if self._held and run is None:
            run = self._open_run(thinking=False)
        if self._held and run is not None and not run.thinking:
            self._write(run, self._taken_back())
        self._block()

    def parts(self) -> list[MessagePart]:
        """The parts of the message, in order."""
        return [_part(part) for part in self._parts]

    def _say(self, piece: str, *, thinking: bool) -> None:
        run = self._run
        shown = piece.rstrip()
        if run is None or run.thinking != thinking:
            if not shown:
                self._held += [] if run is not None or thinking or self._trim else [piece]
                return
            if run is not None or thinking or self._trim:
                self._held.clear()
                piece, shown = piece.lstrip(), shown.lstrip()
            run = self._open_run(thinking)
        if shown:
            self._write(run, self._taken_back() + shown)
        if len(shown) < len(piece):
            self._held.append(piece[len(shown) :])

    def _open_run(self, thinking: bool) -> _Run:
        run = self._run = _Run(thinking)
        self._parts.append(run)
        return run

    def _taken_back(self) -> str:
        text = "".join(self._held)
        self._held.clear()
        return text

    def _write(self, run: _Run, text: str) -> None:
        run.pieces.append(text)
        self._chunks.append(ReasoningChunk(text) if run.thinking else TextChunk(text))

    def _block(self) -> None:
        self._run = None
        self._trim = True
        self._held.clear()


def _part(part: _Run | _Call | MessagePart) -> MessagePart:
    if isinstance(part, _Run):
        text = joined(part.pieces)
        return Reasoning(text) if part.thinking else Text(text)
    if isinstance(part, _Call):
        return ToolCall(part.name, joined(part.pieces), part.id, problem=part.problem)
    return part
