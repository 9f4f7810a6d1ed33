"""What a model writes outside of its calls: text, and blocks of thinking, told apart for every format alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolcrib.codecs.text.answer import Answer
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps, markers_of
from toolcrib.codecs.text.surroundings import CODE, PARAGRAPH, Code, Surroundings

THINKING = {
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


class Prose:
    """Reads what stands between calls; one for a whole answer.

    A block of thinking goes to the answer as such, and nothing in it is a call. Where a prompt has opened the
    block already, the answer holds only its end: what came before that was thinking too, calls included. Code,
    quotations and examples only show a call, and are text. Where a marker may end a block that is not closed,
    what follows is kept back, for the block may still be closed behind it.
    """

    __slots__ = (
        "_answer",
        "_around",
        "_at_beginning",
        "_blocks",
        "_code",
        "_ends_thinking",
        "_held_from",
        "_known",
        "_markers",
        "_scan",
        "_seen",
        "_strays",
        "_wanted",
        "pending",
    )

    def __init__(
        self,
        scan: Scanner,
        answer: Answer,
        markers: tuple[str, ...],
        *,
        blocks: Mapping[str, str] = THINKING,
        ends_thinking: bool = False,
        at_beginning: Callable[[], Steps[None]] | None = None,
    ) -> None:
        """`markers` are the format's own. `ends_thinking` lets them end a block of thinking that is not closed.

        `at_beginning` reads what may stand unmarked where the answer's text begins.
        """
        self._scan = scan
        self._answer = answer
        self._wanted = markers
        self._blocks = blocks
        self._ends_thinking = ends_thinking
        self._markers: Markers = markers_of((*markers, *blocks, *blocks.values(), *CODE))
        self._strays: frozenset[str] = frozenset()
        self.pending: tuple[str, ...] = ()  # what would close the block of thinking that a marker has ended
        self._held_from = 0
        self._around = Surroundings(answer)
        self._code = Code(scan, self._around)
        self._known = frozenset(markers)
        self._seen = False
        self._at_beginning = at_beginning

    def begin(self) -> Steps[str | None]:
        """The rest of a block of thinking that the prompt has opened; the marker that ended it, where one may."""
        if not self._answer.in_thinking:
            return None
        self._answer.in_thinking = False
        return (yield from self.thinking(*dict.fromkeys(self._blocks.values())))

    def look_out_for(self, strays: tuple[str, ...]) -> None:
        """From now on these are given like markers, wherever they stand outside of code."""
        self._strays = frozenset(strays)
        self._markers = markers_of((*self._markers.words, *strays))

    def until_marker(self) -> Steps[str | None]:
        """Text and thinking up to the first of the format's markers, which is read; None at the end."""
        around = self._around
        around.resumed()
        if self._answer.in_thinking and (found := (yield from self.begin())) is not None:
            return found
        while True:
            if self._at_beginning is not None and around.untouched:
                yield from self._at_beginning()
            marker = yield from self._scan.until(self._markers, around.text)
            if marker is None or marker in self._strays:
                return marker
            if marker in self._known and not around.for_show:
                self._at_beginning = None
                return marker
            if marker in self._known:
                around.text(marker)
                end = yield from self._scan.until(PARAGRAPH, around.text)
                around.text(end or "")
                around.shown()
            elif marker in CODE:
                yield from self._code.read(marker)
            elif marker in self.pending:
                self.closed_behind(marker)
            elif marker in self._blocks:
                found = yield from self.thinking(self._blocks[marker])
                if found is not None:
                    return found
            elif not self._seen:
                self._seen = True
                self._answer.retract(self._scan.since(0)[: -len(marker)])
                around.restart()

    def thinking(self, *closers: str) -> Steps[str | None]:
        """The rest of a block that was opened; the format's marker that ended it, where one may."""
        self._seen = True
        stops = self._wanted if self._ends_thinking else ()
        found = yield from self._scan.until((*closers, *stops), self._answer.reasoning)
        if found in self.pending:
            self.closed_behind(found or "")
        elif found in self._known and not self.pending:
            self.pending, self._held_from = closers, self._scan.offset - len(found or "")
            self._answer.hold()
        self._answer.end_reasoning()
        return found if found in self._known else None

    def closed_behind(self, closer: str) -> None:
        """The block of thinking that a marker had ended is closed here: what looked like calls was part of it."""
        self.pending = ()
        self._answer.drop(self._scan.since(self._held_from)[: -len(closer)])
        self._answer.end_reasoning()
        self._around.called()


def read_no_calls(_form: Form, scan: Scanner, answer: Answer, _tools: Tools) -> Steps[None]:
    """Read an answer in which nothing is a call."""
    yield from Prose(scan, answer, ()).until_marker()
