"""Calls whose name and JSON arguments stand between special tokens: Kimi, DeepSeek up to V3.1."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.format import Tools
from toolcrib.codecs.text.json_calls import NO_JSON, NO_NAME
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps, markers_of

NO_CALL = "in the block of calls stands none; write the calls in it again, each between its own tokens"
FENCES: Final = Markers(("```json", "```"))
_NAME = re.compile(r"[^\s`{<]+")


@dataclass(frozen=True, slots=True)
class Callee:
    """Whom a call is for, as its first part says: the tool's name and the id; or why that cannot be read."""

    name: str
    id: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The special tokens of one format, alternatives beside each other.

    A call is `call`, its first part, `separator`, arguments, `call_end`, in a section or by itself. Between
    calls of a section nothing counts. The first part names the tool, unless the name follows the separator
    on a line of its own.
    """

    section: tuple[str, ...]
    section_end: tuple[str, ...]
    call: str
    separator: str
    call_end: str
    callee: Callable[[str], Callee] = Callee
    ends_thinking: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.section, *self.section_end, self.call, self.separator, self.call_end)

    def parse(self, scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
        """Read an answer to its end."""
        yield from _Reader(self, scan, answer).read()


class _Reader:
    def __init__(self, tokens: Tokens, scan: Scanner, answer: Answer) -> None:
        self._tokens = tokens
        self._scan = scan
        self._answer = answer
        self._ahead: str | None = None
        self._prose = Prose(scan, answer, tokens.words, ends_thinking=tokens.ends_thinking)

    def read(self) -> Steps[None]:
        tokens, prose = self._tokens, self._prose
        while (marker := (yield from prose.until_marker())) is not None:
            if marker in tokens.section:
                yield from self._section()
            while marker == tokens.call:
                yield from self._call()
                marker, self._ahead = self._ahead, None

    def _section(self) -> Steps[None]:
        tokens, some = self._tokens, False
        pending = self._prose.pending
        outer = markers_of((tokens.call, *tokens.section_end, *pending))
        while True:
            noise: list[str] = []
            marker = self._ahead or (yield from self._scan.until(outer, noise.append))
            self._ahead = None
            if marker in pending:
                self._prose.closed_behind(marker or "")
                return
            if marker == tokens.call:
                some = True
                yield from self._call()
                continue
            if not some and (marker is None or "".join(noise).strip()):
                self._answer.fail_call(CUT_OFF if marker is None else NO_CALL)
            return

    def _call(self) -> Steps[None]:
        """One call, whose token was read."""
        scan, tokens, answer = self._scan, self._tokens, self._answer
        head: list[str] = []
        marker = yield from scan.until(tokens.words, head.append)
        callee = tokens.callee("".join(head).strip())
        if marker == tokens.separator and (yield from scan.mark()) not in ("{", "<", ""):
            named: list[str] = []
            if callee.name == "function":
                yield from scan.take_while(_NAME, named.append)
                callee = Callee("".join(named))
                yield from scan.skip_space()
        if marker != tokens.separator or callee.problem or not callee.name:
            problem = CUT_OFF if marker is None else callee.problem or NO_NAME
            answer.open_call(callee.name, callee.id)
            answer.fail_call(problem)
            yield from self._end(marker)
            return
        answer.open_call(callee.name, callee.id)
        yield from scan.accept(FENCES)
        yield from scan.skip_space()
        whole = False
        started = (yield from scan.peek()) == "{"
        if started:
            whole = yield from scan.json_value(answer.arguments, tokens.words)
            yield from scan.skip_space()
            if whole:
                yield from scan.accept(FENCES)
                yield from scan.skip_space()
        rest: list[str] = []
        marker = yield from scan.until(tokens.words, rest.append)
        answer.arguments("".join(rest))
        if marker is None and (rest or not whole):
            answer.fail_call(CUT_OFF)
        elif (not whole and (started or rest)) or any(
            closer in "".join(rest) for closer in self._prose.pending
        ):
            answer.fail_call(NO_JSON)
        answer.close_call()
        yield from self._end(marker)

    def _end(self, marker: str | None) -> Steps[None]:
        """Go on behind the end of a call; the marker was read last."""
        tokens = self._tokens
        if marker == tokens.separator:
            marker = yield from self._scan.until(tokens.words)
        if marker == tokens.call or marker in tokens.section_end:
            self._ahead = marker
