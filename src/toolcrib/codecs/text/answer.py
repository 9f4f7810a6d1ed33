"""Collects what a reader finds in a text: chunks to hand out at once, and in the end the parts of the message."""

from __future__ import annotations

from toolcrib.call import ToolCall
from toolcrib.codecs.wire_json import joined
from toolcrib.content import Text
from toolcrib.dataclass import dataclass, field
from toolcrib.messages import (
    CallChunk,
    Chunk,
    MessagePart,
    Reasoning,
    ReasoningChunk,
    RestartChunk,
    TextChunk,
)

__all__ = ["CUT_OFF", "UNCLEAR", "AnswerBuilder"]

CUT_OFF = "it was cut off before its end; write the whole call again, in several shorter ones if it was long"
UNCLEAR = (
    "a call before it could not be read to its end, so this one may be a part of that and was not meant; "
    "write both again"
)
OPEN_ENDED = (
    "the end of one of its values is missing and another call follows, which may be a part of that value; "
    "write the call again with everything that closes it, and each call in an answer of its own"
)
THOUGHT_ALOUD = "what came so far turned out to be the model's thinking"


@dataclass(slots=True)
class _Call:
    """One call that is being read, or was."""

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


@dataclass(slots=True)
class _Mark:
    """A place to which the answer can be reset: how much there was of everything."""

    chunks: int
    parts: int
    calls: int
    run: _Run | None
    space: list[str]
    between: str


class AnswerBuilder:
    """Text, thinking and calls, in the order in which a reader reports them.

    White space beside a call or a block of thinking is layout of the format and is not shown, except for the
    white space that separates the text before it from the text behind it. `in_thinking` says that the prompt
    has opened a block of thinking; the reader sets it to false once it has read that block.
    """

    __slots__ = (
        "_between",
        "_call",
        "_calls",
        "_chunks",
        "_last",
        "_mark",
        "_parts",
        "_pieces",
        "_run",
        "_space",
        "_spoken",
        "_trim",
        "_unclear",
        "in_thinking",
    )

    def __init__(self, *, in_thinking: bool = False) -> None:
        self.in_thinking = in_thinking
        self._chunks: list[Chunk] = []
        self._pieces: list[str] = []  # of the open call's arguments, which become one chunk
        self._mark: _Mark | None = None
        self._clear()
        self._parts: list[_Run | _Call | MessagePart] = []

    def _clear(self) -> None:
        """Forget everything that was reported."""
        self._call: _Call | None = None
        self._calls = 0
        self._last: _Call | None = None  # a call that is complete if no other follows
        self._unclear = False  # whether what looks like a call may be a part of one before it
        self._run: _Run | None = None
        self._space: list[str] = []  # white space that may turn out to stand beside a call
        self._between = ""  # the white space that stood before the last calls
        self._trim = False  # whether what comes next stands beside a call or thinking
        self._spoken = False  # whether any text was reported

    # What a reader reports

    def text(self, piece: str) -> None:
        """A piece of the answer's text."""
        run = self._run
        if run is None or run.thinking or self._space or piece[-1:].isspace():
            self._say(piece, thinking=False)
        elif piece:  # the usual case: the text goes on
            run.pieces.append(piece)
            self._chunks.append(TextChunk(piece))

    def reasoning(self, piece: str) -> None:
        """A piece of the model's thinking."""
        self._say(piece, thinking=True)

    def end_reasoning(self) -> None:
        """A block of thinking has ended: the next block is a part of its own."""
        self._block()

    def open_call(self, name: str, id: str = "") -> None:
        """A call begins; a call that is still open is complete."""
        self.close_call()
        if self._last is not None:
            self.doubt_last_call()
        self._block()
        self._call = _Call(self._calls, name, id)
        self._calls += 1
        self._parts.append(self._call)
        self._emit(CallChunk(self._call.index, name, id))

    def call_id(self, id: str) -> None:
        """The open call's id, where it comes after the name."""
        if self._call is not None and id and not self._call.id:
            self._call.id = id
            self._emit(CallChunk(self._call.index, id=id))

    def arguments(self, piece: str) -> None:
        """A piece of the open call's arguments: JSON text."""
        if self._call is not None and piece:
            self._call.pieces.append(piece)
            self._pieces.append(piece)

    def close_call(self, *, if_last: bool = False) -> None:
        """The open call is complete; with `if_last` it is complete only if no other call follows in the answer."""
        self._flush()
        call, self._call = self._call, None
        if call is None:
            return
        if self._unclear:
            call.problem = UNCLEAR
        elif if_last:
            self._last = call
        else:
            self._emit(CallChunk(call.index, done=True))

    def doubt_last_call(self) -> None:
        """Something follows a call that is complete only as the last one: its end is not known, so it fails."""
        last, self._last = self._last, None
        if last is not None:
            last.problem = OPEN_ENDED
            self.doubt_what_follows()

    def doubt_what_follows(self) -> None:
        """A call could not be read to its end: what looks like a call behind it may be part of it, and never runs."""
        self._unclear = True

    @property
    def unclear(self) -> bool:
        """Whether what looks like a call may be a part of one before it."""
        return self._unclear

    @property
    def if_last(self) -> bool:
        """Whether the last call is complete only if no other call follows."""
        return self._last is not None

    def fail_call(self, problem: str, name: str = "") -> None:
        """The open call, or a new one of this name, can never be run; `problem` tells the model why."""
        if self._call is None:
            self.open_call(name)
        self._flush()
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
        """Everything that was reported so far was thinking; `text` is how the model wrote it."""
        kept: list[_Run | _Call | MessagePart] = [
            part for part in self._parts if not isinstance(part, _Run | _Call)
        ]
        reported = len(kept) < len(self._parts)
        self._parts = kept
        self._mark = None
        self._clear()
        self._chunks.clear()
        self._pieces.clear()
        if reported:
            self._emit(RestartChunk(THOUGHT_ALOUD))
        self.reasoning(text)
        self.end_reasoning()

    def hold(self) -> None:
        """What is reported from here on may turn out to be thinking: none of it is handed out until the end."""
        self._flush()
        if self._mark is None:
            self._mark = _Mark(
                len(self._chunks), len(self._parts), self._calls, self._run, self._space.copy(), self._between
            )

    def drop(self, text: str) -> None:
        """Everything that was reported since `hold` was thinking; `text` is how the model wrote it."""
        mark, self._mark = self._mark, None
        self._pieces.clear()
        if mark is not None:
            del self._chunks[mark.chunks :]
            self._parts[mark.parts :] = [
                part for part in self._parts[mark.parts :] if not isinstance(part, _Run | _Call)
            ]
            self._calls, self._run, self._space, self._between = (
                mark.calls,
                mark.run,
                mark.space,
                mark.between,
            )
            self._call, self._last, self._unclear = None, None, False
            self._spoken = any(isinstance(part, _Run) and not part.thinking for part in self._parts)
        self.reasoning(text)

    # What the base codec reports beside the text

    def part(self, part: MessagePart) -> None:
        """A part of the message that is no text, such as a picture; it keeps its place."""
        self._run = None
        self._parts.append(part)

    # Results

    def take(self) -> list[Chunk]:
        """The chunks that were added since the last call of this method."""
        self._flush()
        if self._mark is None:
            chunks, self._chunks = self._chunks, []
            return chunks
        chunks = self._chunks[: self._mark.chunks]
        del self._chunks[: self._mark.chunks]
        self._mark.chunks = 0
        return chunks

    def finish(self) -> None:
        """The text has ended: an open call was cut off, and white space at the end is text."""
        if self._call is not None:
            self.fail_call(CUT_OFF)
        last, self._last = self._last, None
        if last is not None:
            self._emit(CallChunk(last.index, done=True))
        self._mark = None
        run = self._run
        if self._space and run is None and not self._trim:
            run = self._open_run(thinking=False)
        if self._space and run is not None and not run.thinking:
            self._write(run, self._spaces())
        self._block()

    def parts(self) -> list[MessagePart]:
        """The parts of the message, in order."""
        return [_part(part) for part in self._parts]

    def _emit(self, chunk: Chunk) -> None:
        self._flush()
        self._chunks.append(chunk)

    def _flush(self) -> None:
        """Turn the collected pieces of arguments into one chunk."""
        if self._pieces and self._call is not None:
            self._chunks.append(CallChunk(self._call.index, arguments="".join(self._pieces)))
            self._pieces.clear()

    def _say(self, piece: str, *, thinking: bool) -> None:
        run = self._run
        shown = piece.rstrip()
        if run is None or run.thinking != thinking:
            if run is not None:
                self._block()
            if not shown:
                self._space += [] if thinking else [piece]
                return
            bare = shown.lstrip()
            before = self._before(self._spaces() + piece[: piece.index(bare)], thinking)
            run = self._open_run(thinking)
            self._write(run, before + bare)
        elif shown:
            self._write(run, self._spaces() + shown if self._space else shown)
        if len(shown) < len(piece):
            self._space.append(piece[len(shown) :])

    def _before(self, space: str, thinking: bool) -> str:
        """The white space with which a run begins."""
        if thinking or (self._trim and not self._spoken):
            return ""
        return space or self._between if self._trim else space

    def _open_run(self, thinking: bool) -> _Run:
        run = self._run = _Run(thinking)
        self._spoken = self._spoken or not thinking
        self._parts.append(run)
        return run

    def _spaces(self) -> str:
        text = "".join(self._space)
        self._space.clear()
        return text

    def _write(self, run: _Run, text: str) -> None:
        run.pieces.append(text)
        self._emit(ReasoningChunk(text) if run.thinking else TextChunk(text))

    def _block(self) -> None:
        """A call or a block of thinking begins or ends."""
        run, self._run = self._run, None
        space = self._spaces()
        if run is not None and not run.thinking:
            self._between = space
        elif run is None and self._trim:
            self._between = self._between or space
        self._trim = True


def _part(part: _Run | _Call | MessagePart) -> MessagePart:
    if isinstance(part, _Run):
        text = joined(part.pieces)
        return Reasoning(text) if part.thinking else Text(text)
    if isinstance(part, _Call):
        return ToolCall(part.name, joined(part.pieces), part.id, problem=part.problem)
    return part
