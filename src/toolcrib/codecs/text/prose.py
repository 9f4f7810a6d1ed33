"""What a model writes outside of its calls: text, and blocks of thinking, told apart for every format alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from toolcrib.codecs.text.answer import AnswerBuilder
from toolcrib.codecs.text.arguments import Tools
from toolcrib.codecs.text.form import Form
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps, markers_of
from toolcrib.codecs.text.surroundings import CODE, PARAGRAPH, Code, Surroundings

__all__ = ["SHOWN", "THINKING", "THOUGHTS", "CautiousProse", "Prose", "read_no_calls"]

THINKING: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<mm:think>": "</mm:think>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "◁think▷": "◁/think▷",
}
# Further elements that hold thinking; unlike those of `THINKING`, a lone closing tag of these means nothing.
PONDERING: Final = {f"<{name}>": f"</{name}>" for name in ("reasoning", "analysis", "reflection")}
THOUGHTS: Final = {**THINKING, **PONDERING}
# Elements whose contents are shown and not meant: declared tools, results that the model made up, documents, code.
SHOWN: Final = {
    "<!--": "-->",
    "[AVAILABLE_TOOLS]": "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    **{
        f"<{name}": f"</{name}>"
        for name in (
            *("tools", "available_tools", "functions"),
            *("tool_result", "tool_results", "tool_response", "tool_output", "function_results"),
            *("observation", "example", "examples", "code", "pre", "blockquote", "quote", "document"),
        )
    },
}
ATTRIBUTE: Final = re.compile(r"[\w:-]+")
ELEMENTS: Final = {**SHOWN, **PONDERING}
# Tokens with which models end a turn. They mean nothing where the answer ends, and elsewhere they are text.
TURN_ENDS: Final = (
    *(
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|eot|>",
        "<|eom|>",
        "<eom>",
        "<|endoftext|>",
        "<|end_of_text|>",
    ),
    *(
        "<end_of_turn>",
        "<|end_of_turn|>",
        "<eos>",
        "<|END_OF_TURN_TOKEN|>",
        "<EOS_TOKEN>",
        "<｜end▁of▁sentence｜>",
    ),
    *(
        "<|end|>",
        "<|return|>",
        "<|user|>",
        "<|observation|>",
        "<|role_end|>",
        "<seed:eos>",
        "[e~[",
        "<|message_sep|>",
    ),
)


class Prose:
    """Reads what stands between calls; one object reads a whole answer.

    A block of thinking goes to the answer as such, and nothing in it is a call. Where a prompt has opened the
    block already, the answer holds only its end: what came before that was thinking too, calls included. Code,
    quotations and examples only show a call, and are text. Where a delimiter may end a block that is not
    closed, what follows is kept back, for the block may still be closed behind it. Elements that only show their
    contents are text where they are closed; what follows a mere mention of their tag is read like any text.
    """

    def __init__(
        self,
        scan: Scanner,
        answer: AnswerBuilder,
        markers: tuple[str, ...],
        *,
        blocks: Mapping[str, str] = THINKING,
        ends_thinking: bool = False,
        at_beginning: Callable[[], Steps[None]] | None = None,
    ) -> None:
        """`markers` are the format's own. `ends_thinking` lets them end a block of thinking that is not closed.

        An opening of `blocks` that is a sentence, and no tag, counts only where the answer begins. `at_beginning`
        reads what may stand unmarked where the answer's text begins.
        """
        self._scan = scan
        self._answer = answer
        self._own = frozenset(markers)
        self._also: frozenset[str] = frozenset()
        self._blocks = blocks
        self._finals = tuple(end for begin, end in blocks.items() if begin.endswith(":"))
        self._closers = tuple(dict.fromkeys(end for end in blocks.values() if not end.endswith(":")))
        self._unclosed: set[str] = set()  # ends of elements that do not come any more
        self._thinking_enders = markers if ends_thinking else ()
        self._markers: Markers = markers_of((*markers, *blocks, *self._closers, *CODE, *ELEMENTS, *TURN_ENDS))
        self.pending: tuple[
            str, ...
        ] = ()  # what would close the block of thinking that a delimiter has ended
        self._held_from = 0
        self._has_thought = False
        self._at_beginning = at_beginning
        self.around = Surroundings(answer)
        self._code = Code(scan, self.around)

    def begin(self) -> Steps[str | None]:
        """The rest of a block of thinking that the prompt has opened; the delimiter that ended it, where one may."""
        if not self._answer.in_thinking:
            return None
        self._answer.in_thinking = False
        return (yield from self._thinking(*self._closers))

    def also_look_for(self, markers: tuple[str, ...]) -> None:
        """From now on these are given like delimiters, wherever they stand outside of code."""
        self._also = frozenset(markers)
        self._markers = markers_of((*self._markers.words, *markers))

    def until_marker(self) -> Steps[str | None]:
        """Text and thinking up to the first of the format's delimiters, which is read; None at the end."""
        around = self.around
        around.resumed()
        if self._answer.in_thinking and (found := (yield from self.begin())) is not None:
            return found
        while (marker := (yield from self._next())) is not None:
            if marker in self._also:
                return marker
            if marker in self._own and not around.for_show:
                self._at_beginning = None
                return marker
            if marker in self._own:
                around.text(marker)
                end = yield from self._scan.until(PARAGRAPH, around.text)
                around.text(end or "")
                around.shown()
            elif marker in CODE:
                yield from self._code.read(marker)
            elif marker in self.pending:
                self.closed_behind(marker)
            elif marker in self._blocks:
                if marker.endswith(":") and not around.untouched:
                    around.text(marker)
                    continue
                found = yield from self._thinking(self._blocks[marker])
                if found is not None:
                    return found
            elif marker in ELEMENTS:
                yield from self.element(marker)
            elif marker in TURN_ENDS:
                yield from self.end_of_turn(marker)
            elif not self._has_thought:
                self._all_was_thinking(marker)
        return None

    def begins_here(self) -> Steps[bool]:
        """Whether a word with a meaning stands here, such as a tag of thinking; it is not read."""
        begun = self._scan.offset
        found = yield from self._scan.accept(self._markers)
        self._scan.rewind(begun)
        return found is not None

    def element(self, opener: str) -> Steps[None]:
        """Reads an element whose contents are only shown; where it is not closed, its opening is text."""
        scan, closer, begun = self._scan, ELEMENTS[opener], self._scan.offset
        is_tag = opener[-1] in ">]-" or (yield from scan.peek()) == ">"
        if not is_tag and (yield from scan.skip_space()):
            yield from scan.take_while(ATTRIBUTE)
            is_tag = (yield from scan.peek()) == "="
        if not is_tag or closer in self._unclosed:
            self.around.text(opener + scan.since(begun))
        elif (yield from scan.until((closer,))) is None:
            self._unclosed.add(closer)
            scan.rewind(begun)
            self.around.text(opener)
        elif opener in PONDERING:
            self._answer.reasoning(scan.since(begun).removesuffix(closer))
            self._answer.end_reasoning()
        else:
            self.around.text(opener + scan.since(begun))

    def end_of_turn(self, marker: str) -> Steps[None]:
        """Drops a token that ends a turn where the answer ends too."""
        begun = self._scan.offset
        yield from self._scan.skip_space()
        while (yield from self._scan.accept(TURN_ENDS)):
            yield from self._scan.skip_space()
        if (yield from self._scan.peek()):
            self.around.text(marker + self._scan.since(begun))

    def _next(self) -> Steps[str | None]:
        """The next marker of any kind, behind what may stand unmarked at the beginning and behind text."""
        if self._at_beginning is not None and self.around.untouched:
            yield from self._at_beginning()
        return (yield from self._scan.until(self._markers, self.around.text))

    def _all_was_thinking(self, closer: str) -> None:
        """The lone end of a block of thinking was read: the prompt had opened it."""
        self._has_thought = True
        self._answer.retract(self._scan.since(0)[: -len(closer)])
        self.around.restart()

    def _thinking(self, *closers: str) -> Steps[str | None]:
        """The rest of a block that was opened; the format's delimiter that ended it, where one may."""
        self._has_thought = True
        closers = (*closers, *self._finals)
        found = yield from self._scan.until((*closers, *self._thinking_enders), self._answer.reasoning)
        if found in self.pending:
            self.closed_behind(found or "")
        elif found in self._own and not self.pending:
            self.pending, self._held_from = closers, self._scan.offset - len(found or "")
            self._answer.hold()
        self._answer.end_reasoning()
        return found if found in self._own else None

    def closed_behind(self, closer: str) -> None:
        """The block of thinking that a delimiter had ended is closed here: what looked like calls was part of it."""
        self.pending = ()
        self._answer.drop(self._scan.since(self._held_from)[: -len(closer)])
        self._answer.end_reasoning()
        self.around.called()


class CautiousProse(Prose):
    """Prose of a format whose tags are no special tokens: whole elements may only be shown.

    The format's markers are always given; the reader asks `around.for_show` itself. `fenced` is given the
    words of a code fence and says whether it read calls from it.
    """

    def __init__(
        self,
        scan: Scanner,
        answer: AnswerBuilder,
        markers: tuple[str, ...],
        *,
        fenced: Callable[[list[str]], Steps[bool]] | None = None,
        at_beginning: Callable[[], Steps[None]] | None = None,
        ignore_case: bool = False,
    ) -> None:
        super().__init__(scan, answer, markers, blocks=THOUGHTS, at_beginning=at_beginning)
        words = (*markers, *THOUGHTS, *THINKING.values(), *SHOWN, *CODE, *TURN_ENDS)
        self._markers = markers_of(words, ignore_case)
        self._code = Code(scan, self.around, fenced)

    def until_marker(self) -> Steps[str | None]:
        """Text and thinking up to the first of the format's markers, which is read; None at the end."""
        yield from self.begin()
        while (marker := (yield from self._next())) is not None and marker not in self._own:
            start = self._scan.offset - len(marker)
            if marker in CODE:
                yield from self._code.read(marker)
            elif marker in self._blocks:
                yield from self._thinking(self._blocks[marker])
            elif marker in SHOWN:
                yield from self.element(marker)
            elif marker in TURN_ENDS:
                yield from self.end_of_turn(marker)
            elif self._has_thought:
                self.release(start)
            else:
                self._all_was_thinking(marker)
        self._at_beginning = None
        return marker

    def release(self, start: int) -> None:
        """Hand out all text that was read since `start`."""
        self.around.text(self._scan.since(start))


def read_no_calls(_form: Form, scan: Scanner, answer: AnswerBuilder, _tools: Tools) -> Steps[None]:
    """Read an answer in which nothing is a call."""
    yield from Prose(scan, answer, ()).until_marker()
