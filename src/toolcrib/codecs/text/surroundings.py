"""Decides whether a call at some place in prose is meant, or only shown: quoted, in code, or as an example."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from toolcrib.codecs.text.answer import AnswerBuilder
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps, markers_of

__all__ = ["CODE", "LONGEST_WORD", "PARAGRAPH", "TICKS", "WORD", "Code", "Surroundings", "is_example"]

TICK: Final = "`"
TILDES: Final = "~~~"
CODE: Final = (TICK, TILDES)
PARAGRAPH: Final = ("\n\n", "\n\r\n", "\n \n")
INLINE: Final = Markers((TICK, *PARAGRAPH))
TICKS: Final = re.compile(r"`+")
TILDE_RUN: Final = re.compile(r"~+")
BLANK: Final = re.compile(r"[ \t]+")
WORD: Final = re.compile(r"[\w.:-]+")
LONGEST_WORD: Final = 64

_TAIL: Final = 300
_OPEN_QUOTE: Final = re.compile(r"""(?:(?:^|[\s(\[])["']|[“‘„«「『])\Z""")
_SENTENCE_ENDS: Final = tuple(".!?。！？")
_INTENT: Final = re.compile(
    r"\b(?:let me|let's|let us|i'll|i will|i'm going|i am going|i need to|i should)\b|我来|让我|我将|我会|我先",
    re.IGNORECASE,
)
_EXAMPLE: Final = re.compile(
    r"^\W*(?:(?:and|or|so|but|note|thus)\W+)?"
    r"(?:for example|for instance|e\.?g\b|i\.?e\b|such as"
    r"|(?:(?:here|below|this|these|consider|see|as|following)\b[^.!?]{0,40})?"
    r"(?:(?:an?|one|another|some)\s+(?:\w+\s+){0,2}?)?\b(?:examples?|samples?)\b)"
    r"|\b(?:calls?|invocations?|requests?|replies|blocks?|format|syntax|tags?)\b[^.!?]{0,60}\blooks? like\b"
    r"|\b(?:format|syntax)\b[^.!?]{0,60}[:：]\s*\Z"
    r"|示例|例如|比如|举例|例子|比方说|譬如",
    re.IGNORECASE,
)


class Surroundings:
    """Hands text on to the answer and remembers the end of it, to judge what follows."""

    __slots__ = ("_answer", "_blank", "_head", "_shown_before", "_tail", "_unseen")

    def __init__(self, answer: AnswerBuilder) -> None:
        self._answer = answer
        self._unseen: list[str] = []  # text that was handed on and is not yet taken into account
        self._tail = ""
        self._head = ""  # the beginning of the line
        self._blank = True  # whether the line is empty so far
        self._shown_before = False  # whether only white space followed something that was shown

    def text(self, piece: str) -> None:
        self._answer.text(piece)
        self._unseen.append(piece)

    def _look(self) -> None:
        """Take the unseen text into account; this is done only at delimiters, where it is needed."""
        if not self._unseen:
            return
        piece = "".join(self._unseen)
        self._unseen.clear()
        self._tail = (self._tail + piece[-_TAIL:])[-_TAIL:]
        _before, newline, line = piece.rpartition("\n")
        if newline:
            self._head, self._blank = "", True
        self._head = (self._head + line[:8])[:8]
        self._blank = self._blank and not line.strip()
        self._shown_before = self._shown_before and not piece.strip()

    def resumed(self) -> None:
        """The text goes on behind a call, if there was text before."""
        if self._tail or self._unseen:
            self.called()

    def called(self) -> None:
        """A call was read: the text before it says nothing about what follows."""
        self._unseen.clear()
        self._tail, self._head, self._blank, self._shown_before = "", "", True, False

    def restart(self) -> None:
        """The answer's text begins here."""
        self.__init__(self._answer)  # type: ignore[misc]

    def shown(self) -> None:
        """A call was only shown; a call that follows it at once is only shown too."""
        self._look()
        self._shown_before = True

    @property
    def untouched(self) -> bool:
        """Whether there was no text yet."""
        self._look()
        return not self._tail.strip()

    @property
    def line_start(self) -> bool:
        self._look()
        return self._blank

    @property
    def quoted(self) -> bool:
        """Whether this line is a quotation, or the next character stands in quotes."""
        self._look()
        return self._head.lstrip().startswith(">") or _OPEN_QUOTE.search(self._tail[-2:]) is not None

    @property
    def for_show(self) -> bool:
        """Whether a call that stands here is quoted or an example."""
        if self.quoted or self._shown_before:
            return True
        return is_example(self._tail.rstrip().rpartition("\n")[2])


def is_example(line: str) -> bool:
    """Whether a line announces an example."""
    if line.endswith(_SENTENCE_ENDS) or _INTENT.search(line) is not None:
        return False
    return _EXAMPLE.search(line) is not None


class Code:
    """Reads code in prose, all of which is text.

    `fenced` is given the words behind the opening of a code fence and says whether it read calls in the fence.
    """

    def __init__(
        self,
        scan: Scanner,
        around: Surroundings,
        fenced: Callable[[list[str]], Steps[bool]] | None = None,
    ) -> None:
        self._scan = scan
        self._fenced = fenced
        self.around = around

    def read(self, marker: str) -> Steps[None]:
        """The rest of the code that one of `CODE` begins."""
        start = self._scan.offset - len(marker)
        yield from self._ticks(start) if marker == TICK else self._tildes(start)

    def _ticks(self, start: int) -> Steps[None]:
        """Inline code, or a fence."""
        at_start = self.around.line_start
        yield from self._scan.take_while(TICKS)
        run = self._scan.since(start)
        if at_start and len(run) >= 3:
            yield from self._fence(start, run, TICKS)
            return
        self.around.text(run)
        while (marker := (yield from self._scan.until(INLINE, self.around.text))) is not None:
            ends = [marker]
            if marker == TICK:
                yield from self._scan.take_while(TICKS, ends.append)
            self.around.text(read := "".join(ends))
            if marker != TICK or read == run:
                return

    def _tildes(self, start: int) -> Steps[None]:
        at_start = self.around.line_start
        yield from self._scan.take_while(TILDE_RUN)
        if at_start:
            yield from self._fence(start, self._scan.since(start), TILDE_RUN)
        else:
            self.around.text(self._scan.since(start))

    def _fence(self, start: int, run: str, runs: re.Pattern[str]) -> Steps[None]:
        """A code fence, which `fenced` may read."""
        if self._fenced is not None and run == "```":
            info: list[str] = []
            for part in (WORD, BLANK, WORD, BLANK):
                yield from self._scan.take_while(part, info.append, LONGEST_WORD)
            begins = (yield from self._scan.peek()) == "\n" and not self.around.for_show
            if begins and (yield from self._fenced("".join(info).split())):
                return
        self.around.text(self._scan.since(start))
        yield from self._code(run, runs)

    def _code(self, run: str, runs: re.Pattern[str]) -> Steps[None]:
        """The rest of a code fence."""
        known = markers_of((run[:3],))
        while (yield from self._scan.until(known, self.around.text)) is not None:
            at_start = self.around.line_start
            again = [run[:3]]
            yield from self._scan.take_while(runs, again.append)
            yield from self._scan.take_while(BLANK, again.append)
            self.around.text(read := "".join(again))
            long_enough = len(read.rstrip()) >= len(run)
            if at_start and long_enough and (yield from self._scan.peek()) in ("", "\n", "\r"):
                return
