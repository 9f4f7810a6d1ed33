"""A local guide: a constraint compiled for one vocabulary, and the sessions of the answers that it holds."""

from __future__ import annotations

from typing import Any, Literal

from toolcrib.dataclass import replace
from toolcrib.guided.constraints import ToolCalls
from toolcrib.guided.local.engine import Compiled, Engine, GuideError, Matcher
from toolcrib.guided.lower import lower
from toolcrib.guided.lowered import Lowered
from toolcrib.guided.merged import with_any_arguments
from toolcrib.schema.canonical import Loss

__all__ = ["GuideSession", "LocalGuide"]

Backend = Literal["llguidance", "xgrammar"]
SET_BITS = [tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256)]


class LocalGuide:
    """Holds a local model to a constraint: compiled once, then a cheap session for each answer.

    `tokenizer` is a `Vocabulary`, a tokenizer of Hugging Face transformers, or an `LLTokenizer`. `backend` is
    "llguidance" (extra `guided`) or "xgrammar", which brings PyTorch and is sent only what it really holds to.
    `compact` writes JSON without space. `lowered` says what is guaranteed and what is lost. GuideError where the
    engine cannot compile the constraint; of `ToolCalls`, a tool that it cannot compile is held to its name alone, and
    said in the losses.

    >>> from toolcrib.guided import Choice
    >>> from toolcrib.guided.local import LocalGuide, Vocabulary
    >>> letters = Vocabulary([b"y", b"e", b"s", b"n", b"o", b""], end=5)
    >>> session = LocalGuide(Choice("yes", "no"), letters).session()
    >>> session.allowed_tokens()
    [0, 3]
    """

    def __init__(
        self, constraint: Any, tokenizer: Any, *, backend: Backend = "llguidance", compact: bool = False
    ) -> None:
        self._engine = _engine(backend, tokenizer, compact)
        self.lowered: Lowered = lower(constraint, self._engine.target)
        if self.lowered.rung != "native":
            raise GuideError(f"{backend} takes no such constraint: {'; '.join(self.lowered.blockers)}")
        self._compiled = self._compile()

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens, which is the number of bits in a mask."""
        return self._engine.vocabulary_size

    def session(self) -> GuideSession:
        """A fresh session, for one answer."""
        return GuideSession(self._compiled.start(), self.vocabulary_size, self._engine.ends)

    def _compile(self) -> Compiled:
        try:
            return self._engine.compile(self.lowered.fields)
        except GuideError as whole:
            constraint = self.lowered.constraint
            if not isinstance(constraint, ToolCalls):
                raise
            problem = whole
        kept, losses = [], [*self.lowered.losses]
        for spec in constraint.tools:
            try:
                alone = lower(replace(constraint, tools=(spec,)), self._engine.target)
                self._engine.compile(alone.fields)
                kept.append(spec)
            except GuideError as failed:
                kept.append(with_any_arguments(spec))
                losses.append(Loss(f"/$defs/{spec.name}", "arguments", str(failed)))
        if len(losses) == len(self.lowered.losses):
            raise problem
        relaxed = lower(replace(constraint, tools=tuple(kept)), self._engine.target)
        self.lowered = replace(
            relaxed, constraint=constraint, guarantee="enforced in part", losses=tuple(losses)
        )
        return self._engine.compile(relaxed.fields)


class GuideSession:
    """One answer, token by token: ask for the mask, sample, accept; until it is finished."""

    __slots__ = ("_ended", "_ends", "_matcher", "_size")

    def __init__(self, matcher: Matcher, size: int, ends: tuple[int, ...], ended: bool = False) -> None:
        self._matcher = matcher
        self._size = size
        self._ends = ends
        self._ended = ended

    def mask(self) -> bytes:
        """A bit for each token, the lowest bit of a byte first, set where the token may come next.

        GuideError where no token of the vocabulary can go on, so that nobody samples among none.
        """
        if not self._ended:
            found = self._matcher.mask()
            if found.count(0) == len(found):
                raise GuideError(
                    "no token of the vocabulary goes on here: it lacks what the constraint demands"
                )
            return found
        bits = bytearray((self._size + 31) // 32 * 4)
        for end in self._ends:
            bits[end >> 3] |= 1 << (end & 7)
        return bytes(bits)

    def allowed_tokens(self) -> list[int]:
        """The tokens that may come next, for vocabularies that are small."""
        found = [at * 8 + bit for at, byte in enumerate(self.mask()) if byte for bit in SET_BITS[byte]]
        while found and found[-1] >= self._size:  # a mask is longer than the vocabulary
            found.pop()
        return found

    def accept(self, token: int) -> bool:
        """Goes on with a token. False where it may not come: nothing has changed then."""
        if self._ended:
            return False
        if token in self._ends:
            self._ended = self._matcher.complete()
            return self._ended
        return self._matcher.accept(token)

    def forced(self) -> list[int]:
        """The tokens that must come next, as far as there is but one way; accept them without asking the model."""
        return [] if self._ended else self._matcher.forced()

    @property
    def complete(self) -> bool:
        """Whether the answer may end here."""
        return self._matcher.complete()

    @property
    def finished(self) -> bool:
        """Whether the answer is whole: the end has come, or nothing but the end may follow."""
        return self._ended or (self._matcher.stopped() and self._matcher.complete())

    def rollback(self, count: int) -> None:
        """Takes back the last tokens that were accepted, the end among them. GuideError for more than there were."""
        if count and self._ended:
            self._ended = False
            count -= 1
        if count:
            self._matcher.rollback(count)

    def fork(self) -> GuideSession:
        """A session in the same state that goes on by itself, for beams and drafts."""
        return GuideSession(self._matcher.fork(), self._size, self._ends, self._ended)


def _engine(backend: str, tokenizer: Any, compact: bool) -> Engine:
    if backend == "llguidance":
        from toolcrib.guided.local.llguidance_engine import LlguidanceEngine

        return LlguidanceEngine(tokenizer, compact=compact)
    if backend == "xgrammar":
        from toolcrib.guided.local.xgrammar_engine import XgrammarEngine

        return XgrammarEngine(tokenizer, compact=compact)
    raise ValueError(f"backend: expected 'llguidance' or 'xgrammar', got {backend!r}")
