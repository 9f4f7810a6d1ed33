"""The tags of the tolerant reader, and what stands around them: whether text is meant or only shown."""

from __future__ import annotations

import re
from itertools import product
from typing import Final

from toolcrib.codecs.text.answer import Answer
from toolcrib.codecs.text.prose import THINKING
from toolcrib.codecs.text.scanner import Markers

NAMESPACES: Final = ("", "minimax:", "antml:", "seed:", "steptml:")
WRAPPERS: Final = (
    *("tool_call", "tool_calls", "toolcall", "toolcalls", "tool-call", "tool-calls", "tool_use"),
    *("function_call", "function_calls", "function-call", "function-calls", "functioncall", "functioncalls"),
    "invoke",
)
TAG_NAMES: Final = tuple(space + name for space, name in product(NAMESPACES, WRAPPERS))
OPENERS: Final = tuple(f"<{name}" for name in TAG_NAMES)
BRACKET: Final = "[TOOL_CALL]"
FUNCTION: Final = "<function="
CLOSERS: Final = (*(f"</{name}>" for name in TAG_NAMES), "</function>", "</arg_value>", "[/TOOL_CALL]")
STOPS: Final = (*OPENERS, *CLOSERS)

TOOLS: Final = "<tools"
# What a model says in these is thinking; a lone end of one means nothing, unlike those of `THINKING`.
PONDERING: Final = {f"<{name}>": f"</{name}>" for name in ("reasoning", "analysis", "reflection")}
THOUGHTS: Final = {**THINKING, **PONDERING}
# What stands in these is shown: results that the model made up, documents, code.
SHOWN: Final = {
    "<!--": "-->",
    **{
        f"<{name}": f"</{name}>"
        for name in (
            *("tool_result", "tool_results", "tool_response", "tool_output", "function_results"),
            *("observation", "example", "examples", "code", "pre", "blockquote", "quote", "document"),
        )
    },
}
TICK: Final = "`"
TILDES: Final = "~~~"

MARKS: Final = Markers(
    (*OPENERS, *CLOSERS, *THOUGHTS, *THINKING.values(), *SHOWN, FUNCTION, BRACKET, TOOLS, TICK, TILDES),
    ignore_case=True,
)
OPENER_MARKS: Final = Markers((*OPENERS, BRACKET, FUNCTION), ignore_case=True)
CLOSER_MARKS: Final = Markers(CLOSERS, ignore_case=True)
END_MARKS: Final = Markers((*CLOSERS, *OPENERS, BRACKET), ignore_case=True)

FENCES: Final = frozenset(WRAPPERS)  # code fences of these languages hold calls

_TAIL: Final = 300
_OPEN_QUOTE: Final = re.compile(r"""(?:(?:^|[\s(\[])["']|[“‘„«「『])\Z""")
_INTENT: Final = re.compile(
    r"\b(?:let me|let's|let us|i'll|i will|i'm going|i am going|i need to|i should)\b|我来|让我|我将|我会|我先",
    re.IGNORECASE,
)
_EXAMPLE: Final = re.compile(
    r"^\W*(?:(?:and|or|so|but|note|thus)\W+)?"
    r"(?:for example|for instance|e\.?g\b|i\.?e\b|such as"
    r"|(?:(?:here|below|this|these|consider|see|as|following)\b[^.!?]{0,40})?\b(?:examples?|samples?)\b)"
    r"|\b(?:calls?|invocations?|requests?|replies|blocks?|format|syntax|tags?)\b[^.!?]{0,60}\blooks? like\b"
    r"|\b(?:format|syntax)\b[^.!?]{0,60}[:：]\s*\Z"
    r"|示例|例如|比如|举例|例子|比方说|譬如",
    re.IGNORECASE,
)


class Surroundings:
    """Hands text on to the answer and remembers what stood just before."""

    __slots__ = ("_answer", "_blank", "_head", "_shown_before", "_tail")

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._tail = ""
        self._head = ""  # the beginning of the line
        self._blank = True  # whether the line is blank so far
        self._shown_before = False  # whether only white space came since something that was shown

    def text(self, piece: str) -> None:
        self._answer.text(piece)
        self.note(piece)

    def note(self, piece: str) -> None:
        """Text that was read, whatever became of it."""
        self._tail = (self._tail + piece[-_TAIL:])[-_TAIL:]
        _before, newline, line = piece.rpartition("\n")
        if newline:
            self._head, self._blank = "", True
        self._head = (self._head + line[:8])[:8]
        self._blank = self._blank and not line.strip()
        self._shown_before = self._shown_before and not piece.strip()

    def called(self) -> None:
        """A call was read: what stood before it says nothing of what follows."""
        self._tail, self._head, self._blank, self._shown_before = "", "", True, False

    def shown(self) -> None:
        """Something was shown and not meant; what follows at once is shown too."""
        self._shown_before = True

    @property
    def untouched(self) -> bool:
        """Whether nothing was said yet."""
        return not self._tail.strip()

    @property
    def line_start(self) -> bool:
        return self._blank

    @property
    def quoted(self) -> bool:
        """Whether this line is a quotation, or the next character stands in quotes."""
        return self._head.lstrip().startswith(">") or _OPEN_QUOTE.search(self._tail) is not None

    @property
    def for_show(self) -> bool:
        """Whether a call that stands here is quoted or an example."""
        if self.quoted or self._shown_before:
            return True
        return is_example(self._tail.rstrip().rpartition("\n")[2])


def is_example(line: str) -> bool:
    """Whether a line leads to something that is only shown."""
    return _EXAMPLE.search(line) is not None and _INTENT.search(line) is None
