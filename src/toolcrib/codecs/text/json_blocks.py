"""Answers in which calls stand as JSON: in blocks between markers, or unmarked where an answer begins."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.format import Tools
from toolcrib.codecs.text.json_calls import NO_JSON, CallObject, Found, read_string
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.scanner import Scanner, Steps

FENCES = ("```json", "```JSON", "```")
LAYOUT = "[],;}"  # what stands around the objects of a block


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where JSON calls stand.

    Between one of `begin` and one of `end` stand one object or several, in a list or not. `bare` lets the
    answer itself begin with them, `fenced` inside a code fence too. `noise` are markers that mean nothing.
    `keyed` objects are `{name: arguments}`. `needs_arguments` makes an object without arguments no call.
    """

    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    bare: bool = False
    fenced: bool = False
    keyed: bool = False
    needs_arguments: bool = False

    @property
    def stops(self) -> tuple[str, ...]:
        return self.end + self.begin + self.noise

    def parse(self, scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
        """Read an answer to its end."""
        reader = BlockReader(self, scan, answer)
        prose = Prose(scan, answer, self.stops, at_beginning=reader.bare if self.bare else None)
        while (marker := (yield from prose.until_marker())) is not None:
            if marker in self.begin:
                yield from reader.block()


class BlockReader:
    """Reads the calls of one answer where its markers say they are."""

    def __init__(self, blocks: Blocks, scan: Scanner, answer: Answer) -> None:
        self._blocks = blocks
        self._scan = scan
        self._answer = answer

    def block(self) -> Steps[None]:
        """What follows a marker that announces calls."""
        scan, some = self._scan, False
        start = scan.offset
        while True:
            space: list[str] = []
            mark = yield from scan.mark(space.append)
            if mark == "{":
                some = True
                found = yield from self._object(certain=True)
                if (
                    found is Found.FAILED
                    and (yield from scan.until(self._blocks.stops)) not in self._blocks.begin
                ):
                    return
            elif mark and mark in LAYOUT:
                some = some or mark == "]"
                scan.skip(1)
            elif mark == "`" and (yield from scan.accept(FENCES)):
                pass
            elif (yield from scan.accept(self._blocks.end)):
                return
            else:
                break
        if some:
            self._answer.text("".join(space))
        else:
            yield from self._unreadable(start)

    def _unreadable(self, start: int) -> Steps[None]:
        found = yield from self._scan.until(self._blocks.stops)
        self._answer.open_call("")
        text = self._scan.since(start)
        self._answer.arguments((text[: -len(found)] if found else text).strip())
        self._answer.fail_call(CUT_OFF if found is None and not text.strip() else NO_JSON)

    def bare(self) -> Steps[None]:
        """Calls with which an answer begins unmarked; what are none is text."""
        scan = self._scan
        start = scan.offset
        yield from scan.skip_space()
        fenced = self._blocks.fenced and (yield from scan.peek()) == "`" and (yield from scan.accept(FENCES))
        yield from scan.skip_space()
        listed = (yield from scan.peek()) == "["
        if listed:
            scan.skip(1)
            yield from scan.skip_space()
        some = False
        while (yield from scan.peek()) == "{":
            found = yield from self._object(certain=some and listed)
            if found is not Found.CALL:
                break
            some = True
            start = scan.offset
            if (yield from scan.mark()) in (",;" if listed else ";") and not scan.at_end:
                scan.skip(1)
                start = scan.offset
                yield from scan.skip_space()
        else:
            found = Found.CALL if some else Found.NOTHING
        if found is Found.FAILED:
            yield from scan.until(self._blocks.stops)
        elif found is Found.NOTHING:
            self._answer.text(scan.since(start))
        else:
            self._answer.text(scan.since(start))  # white space
            if listed and (yield from scan.peek()) == "]":
                scan.skip(1)
                yield from scan.skip_space(self._answer.text)
            if fenced:
                yield from scan.accept(FENCES)

    def _object(self, *, certain: bool) -> Steps[Found]:
        if self._blocks.keyed:
            return (yield from self._keyed())
        call = CallObject(self._scan, self._answer, self._blocks.stops, certain=certain)
        return (yield from call.read(needs_arguments=self._blocks.needs_arguments))

    def _keyed(self) -> Steps[Found]:
        """An object whose keys are the tools' names: `{"get_weather": {...}}`."""
        scan, answer = self._scan, self._answer
        start = scan.offset
        scan.skip(1)
        while True:
            mark = yield from scan.mark()
            if mark == "}":
                scan.skip(1)
                return Found.CALL
            if mark == ",":
                scan.skip(1)
                continue
            name = (yield from read_string(scan, mark)) if mark == '"' else None
            if name is not None:
                yield from scan.skip_space()
            if name is None or (yield from scan.peek()) != ":":
                answer.fail_call(CUT_OFF if scan.ended else NO_JSON, scan.since(start))
                return Found.FAILED
            scan.skip(1)
            answer.open_call(name)
            if not (yield from scan.json_value(answer.arguments, self._blocks.stops)):
                answer.fail_call(CUT_OFF if scan.ended else NO_JSON)
                answer.doubt_what_follows()
                return Found.FAILED
            answer.close_call()
