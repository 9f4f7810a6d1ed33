"""Prose in which calls may be shown without being meant: in code, in quotations, in documents, as examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from toolcrib.codecs.text.answer import Answer
from toolcrib.codecs.text.prose import THINKING
from toolcrib.codecs.text.scanner import Scanner, Steps, markers_of
from toolcrib.codecs.text.surroundings import CODE, Code, Surroundings

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

SHOWING: Final = (*THOUGHTS, *THINKING.values(), *SHOWN, *CODE)


class ShownProse:
    """Reads what stands between calls; what is only shown is text, whatever it looks like.

    `markers` are those of the format. `fenced` is given the words of a code fence and says whether it read
    calls from it; `at_beginning` reads what may stand unmarked where the answer's text begins.
    """

    def __init__(
        self,
        scan: Scanner,
        answer: Answer,
        markers: tuple[str, ...],
        *,
        fenced: Callable[[list[str]], Steps[bool]] | None = None,
        at_beginning: Callable[[], Steps[None]] | None = None,
        ignore_case: bool = False,
    ) -> None:
        self._scan = scan
        self._answer = answer
        self._own = frozenset(markers)
        self._markers = markers_of((*markers, *SHOWING), ignore_case)
        self._at_beginning = at_beginning
        self._thought = False
        self.around = Surroundings(answer)
        self._code = Code(scan, self.around, fenced)

    def until_marker(self) -> Steps[str | None]:
        """Text and thinking up to the first of the format's markers, which is read; None at the end."""
        if self._answer.in_thinking:
            self._answer.in_thinking = False
            yield from self._think(*dict.fromkeys(THOUGHTS.values()))
        while True:
            if self._at_beginning is not None and self.around.untouched:
                yield from self._at_beginning()
            marker = yield from self._scan.until(self._markers, self.around.text)
            if marker is None or marker in self._own:
                self._at_beginning = None
                return marker
            yield from self._marker(marker)

    def release(self, start: int) -> None:
        """What was read from `start` on is text."""
        self.around.text(self._scan.since(start))

    def _marker(self, marker: str) -> Steps[None]:
        start = self._scan.offset - len(marker)
        if marker in CODE:
            yield from self._code.read(marker)
        elif marker in THOUGHTS:
            yield from self._think(THOUGHTS[marker])
        elif marker in SHOWN:
            yield from self._shown(start, SHOWN[marker])
        elif self._thought:
            self.release(start)
        else:  # the lone end of a block that the prompt had opened
            self._thought = True
            self._answer.retract(self._scan.since(0)[: -len(marker)])
            self.around.restart()

    def _think(self, *closers: str) -> Steps[None]:
        """The rest of a block of thinking."""
        self._thought = True
        yield from self._scan.until(closers, self._answer.reasoning)
        self._answer.end_reasoning()

    def _shown(self, start: int, closer: str) -> Steps[None]:
        """An element whose contents are shown; a word that only begins like its tag is none."""
        after = yield from self._scan.peek()
        self.release(start)
        if closer == "-->" or after in (">", " ", "\n", "\t"):
            yield from self._scan.until((closer,), self.around.text)
            self.around.text(closer if not self._scan.ended else "")
