"""The engine: reads an answer in any format that is a row of templates (`Form`).

An answer is prose, in which a delimiter begins a section of calls or a single call. A call is a JSON object,
or a name with a JSON object behind it, or a name with a tag for each parameter (`tagged_calls.py`).
"""

from __future__ import annotations

import re
from typing import Final

from toolcrib.codecs.text.after_failures import (
    MOST_REPORTED,
    call_begins,
    names_in,
    past_broken_call,
    report_unclear,
)
from toolcrib.codecs.text.answer import CUT_OFF, UNCLEAR, AnswerBuilder
from toolcrib.codecs.text.call_objects import NO_JSON, NO_NAME, CallObject, Found, read_keyed_calls
from toolcrib.codecs.text.delimiters import Delimiters
from toolcrib.codecs.text.form import Callee, Form, Tools
from toolcrib.codecs.text.prose import THINKING, Prose
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps, markers_of
from toolcrib.codecs.text.tagged_parameters import call_header

__all__ = ["FENCES", "Engine", "ignore"]

FENCES: Final = Markers(("```json", "```JSON", "```"))
LAYOUT: Final = "[],;}"  # what stands around the objects of a section
NAME: Final = re.compile(r"[^\s\[\]{}()<>\"'`,;:=]+")
NAME_ON_A_LINE: Final = re.compile(r"[^\s`{<]+")
WORDS: Final = re.compile(r"[\w.-]+")
LONGEST_HEADER: Final = 200
KEYED: Final = re.compile(r'"([^"\\]{1,64})"\s*:\s*\{')
ID: Final = re.compile(r"[\w-]+")


class Engine:
    """Reads one answer."""

    unreadable = NO_JSON
    only_in_lists = False  # whether calls that nothing announces stand in a list
    no_call = "the block of calls has no call in it; write the calls again in it, each between its own tokens"

    def __init__(self, form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> None:
        self.form = form
        self.scan = scan
        self.answer = answer
        self.tools = tools
        self.delimiters: Delimiters = form.delimiters
        self.ahead: list[str] = []  # delimiters that were read already and come next
        self.prose = Prose(
            scan,
            answer,
            self.looked_for(),
            blocks={**THINKING, **form.thinking_blocks},
            ends_thinking=form.calls_end_thinking,
            at_beginning=self._unmarked if form.unmarked else None,
        )

    def looked_for(self) -> tuple[str, ...]:
        """The delimiters that are no text in prose."""
        delimiters = self.delimiters
        if self.form.special_tokens:
            return delimiters.words
        return (*delimiters.outer.words, *delimiters.ends.words, *delimiters.others)

    def read(self) -> Steps[None]:
        """Reads the answer to its end."""
        while (marker := (yield from self.next_delimiter())) is not None:
            if marker in self.delimiters.sections:
                yield from self.section(marker)
            elif marker == self.delimiters.call:
                yield from self.call_alone()

    def next_delimiter(self) -> Steps[str | None]:
        return self.ahead.pop(0) if self.ahead else (yield from self.prose.until_marker())

    # Sections

    def section(self, opening: str) -> Steps[None]:
        """Reads what follows the beginning of a section: calls, or text that only mentions the delimiter."""
        delimiters, scan, found_any = self.delimiters, self.scan, False
        if not delimiters.call:
            yield from self._calls(opening)
            return
        pending = self.prose.pending
        outer = markers_of((*delimiters.outer.words, *pending)) if pending else delimiters.outer
        space = [opening]
        while True:
            if self.ahead:
                marker: str | None = self.ahead.pop(0)
            else:
                yield from scan.skip_space(space.append)
                marker = yield from scan.accept(outer)
            if marker == delimiters.call:
                found_any = True
                yield from self.call()
            elif marker is not None and marker in pending:
                self.prose.closed_behind(marker)
                return
            elif marker in delimiters.section_ends:
                return
            elif marker is not None:
                continue
            elif (first := (yield from scan.peek())) == "":
                if not found_any:
                    self.answer.fail_call(CUT_OFF)
                return
            elif first == "{" and not self.form.special_tokens:
                found_any = True
                yield from self.call_object(outer)
            elif found_any or self.form.drops_text_between_calls:
                found = yield from scan.until(
                    outer, None if self.form.drops_text_between_calls else self.answer.text
                )
                self.ahead += [found] if found else []
                if not found_any and found in delimiters.section_ends:
                    self.answer.fail_call(self.no_call)
            else:
                self.answer.text("".join(space))
                return

    def call_object(self, stops: Markers) -> Steps[Found]:
        """Reads a JSON object that a delimiter announced as a call."""
        call = CallObject(self.scan, self.answer, stops.words, certain=True)
        return (yield from call.read(needs_arguments=self.form.arguments_needed))

    # Calls that stand in a section at once

    def begins_call(self, mark: str) -> bool:
        """Whether a call that stands directly in a section can begin with this character."""
        return mark == "{"

    def read_call(self, *, certain: bool) -> Steps[Found]:
        """Reads a call that stands directly in a section. Unless `certain`, text that is not a call stays text."""
        stops = self.delimiters.all
        if not self.form.keys:
            return (yield from read_keyed_calls(self.scan, self.answer, stops.words))
        call = CallObject(self.scan, self.answer, stops.words, certain=certain)
        return (yield from call.read(needs_arguments=self.form.arguments_needed))

    def _calls(self, opening: str = "") -> Steps[None]:
        """Reads calls up to the end of the section that `opening` began, or up to text."""
        scan, delimiters, found_any = self.scan, self.delimiters, False
        ends = bool(delimiters.sections.get(opening)) or opening.endswith(
            "["
        )  # the section, and not with text
        start = scan.offset
        while True:
            space: list[str] = []
            mark = yield from scan.mark(space.append)
            if self.begins_call(mark):
                found_any = True
                begun = scan.offset
                found = yield from self.read_call(certain=True)
                if found is Found.FAILED and not (yield from self.next_call(begun)):
                    return
            elif mark and mark in LAYOUT:
                found_any = found_any or mark == "]"
                ends = mark == "[" or (ends and mark != "]")
                scan.skip(1)
            elif mark == "`" and (yield from scan.accept(FENCES)):
                pass
            elif (yield from scan.accept(delimiters.section_ends)):
                return
            elif ends and found_any and mark:
                if not (yield from self.no_call_here()):
                    return
            else:
                break
        if found_any:
            self.answer.text("".join(space))
        else:
            yield from self._unreadable(start)

    def next_call(self, begun: int) -> Steps[bool]:
        """Goes on behind a call that began there and could not be read; whether the section goes on."""
        key = self.form.keys[0] if self.form.keys else ""
        stop = yield from past_broken_call(self.scan, self.answer, self.delimiters.all, key, begun)
        if not key and stop != "":
            named = KEYED.findall(self.scan.since(begun)[1:])
            report_unclear(self.answer, (name for name in named[1:] if name in self.tools))
        return stop == "" or stop in self.delimiters.sections or (stop or "-") == self.delimiters.call

    def no_call_here(self) -> Steps[bool]:
        """Reads what stands between the calls of a section and is none; whether a call follows it in the section.

        Without one it is text.
        """
        scan, answer, key = self.scan, self.answer, self.form.keys[0] if self.form.keys else ""
        words, begun = (*self.delimiters.words, "{"), scan.offset
        while (mark := (yield from scan.until(words))) == "{":
            read = scan.offset
            if not (yield from call_begins(scan, key)):
                continue
            junk = scan.since(begun)[: read - begun - 1].strip()
            answer.open_call("")
            answer.arguments(junk)
            answer.fail_call(self.unreadable)
            if any(character in junk for character in "\"'{["):
                answer.doubt_what_follows()
            yield from CallObject(scan, answer, self.delimiters.words, certain=True).read(opened=True)
            return True
        answer.text(scan.since(begun).removesuffix(mark or ""))
        self.ahead += [mark] if mark in self.delimiters.openings(section_optional=True) else []
        return False

    def _unreadable(self, start: int) -> Steps[None]:
        """Reports what was announced as a call and is none, up to the next delimiter."""
        found = yield from self.scan.until(self.delimiters.all)
        self.ahead += [found] if found in self.delimiters.openings(section_optional=True) else []
        text = self.scan.since(start)
        self.answer.open_call("")
        self.answer.arguments((text[: -len(found)] if found else text).strip())
        self.answer.fail_call(CUT_OFF if found is None and not text.strip() else self.unreadable)
        for name in names_in(text, self.form.keys[0])[:MOST_REPORTED] if self.form.keys else ():
            self.answer.open_call(name)
            self.answer.fail_call(UNCLEAR)

    def _unmarked(self) -> Steps[None]:
        """Reads calls with which an answer begins and that nothing announces; what is no call is text."""
        scan, start, found_any = self.scan, self.scan.offset, False
        yield from scan.skip_space()
        fenced = self.form.fenced and (yield from scan.peek()) == "`" and (yield from scan.accept(FENCES))
        yield from scan.skip_space()
        listed = (yield from scan.peek()) == "["
        if listed and (yield from self.prose.begins_here()):
            self.answer.text(scan.since(start))
            return
        if listed:
            scan.skip(1)
            yield from scan.skip_space()
        while (listed or not self.only_in_lists) and self.begins_call((yield from scan.peek())):
            begun = scan.offset
            found = yield from self.read_call(certain=found_any)
            if found is Found.FAILED and not (yield from self.next_call(begun)):
                break
            if found is Found.NOTHING:
                break
            found_any = True
            start = scan.offset
            if (yield from scan.mark()) in (",;" if listed else ";") and not scan.at_end:
                scan.skip(1)
                start = scan.offset
                yield from scan.skip_space()
        else:
            found = Found.CALL if found_any else Found.NOTHING
        if found is Found.FAILED:
            return
        self.answer.text(scan.since(start))
        if found is Found.CALL:
            if listed and (yield from scan.peek()) == "]":
                scan.skip(1)
                yield from scan.skip_space(self.answer.text)
            if fenced:
                yield from scan.accept(FENCES)

    # Calls whose name stands before a JSON object

    def call_alone(self) -> Steps[None]:
        """Reads a call that stands in no section, behind its delimiter."""
        if not self.form.special_tokens and (yield from self.scan.mark()) in ("[", "{"):
            yield from self._calls()
        else:
            yield from self.call()

    def call(self) -> Steps[None]:
        """Reads a call behind its delimiter."""
        if self.form.special_tokens:
            yield from self._call_between_tokens()
            return
        scan, answer, delimiters = self.scan, self.answer, self.delimiters
        start = scan.offset
        callee = yield from self._callee()
        yield from scan.skip_space()
        if callee.name and (yield from scan.peek()) == "{":
            answer.open_call(callee.name, callee.id)
            if (yield from scan.json_value(answer.arguments, delimiters.all.words)):
                answer.close_call()
            else:
                answer.fail_call(CUT_OFF if scan.ended else NO_JSON)
                answer.doubt_what_follows()
                self._report_swallowed(start)
            return
        cut_off = scan.ended and scan.at_end
        stop = yield from scan.until((*delimiters.ends.words, *delimiters.outer.words))
        self.ahead += [stop] if stop in delimiters.openings(section_optional=True) else []
        sure_of_name = cut_off or delimiters.call_name != "plain"
        answer.open_call(callee.name if sure_of_name else "", callee.id)
        answer.arguments("" if cut_off else scan.since(start).removesuffix(stop or ""))
        answer.fail_call(CUT_OFF if cut_off else NO_JSON)

    def _report_swallowed(self, begun: int) -> None:
        """Reports calls that were read as a part of this one, because a string in it had no end."""
        for piece in self.scan.since(begun).split(self.delimiters.call)[1:]:
            words = (word.removeprefix("functions.") for word in WORDS.findall(piece[:LONGEST_HEADER]))
            report_unclear(self.answer, [word for word in words if word in self.tools][:1])

    def _callee(self) -> Steps[Callee]:
        """Reads the name before the arguments, and what separates them."""
        scan, delimiters = self.scan, self.delimiters
        if delimiters.call_name != "plain":
            header = yield from call_header(delimiters, scan, ignore)
            return Callee(header.name) if header is not None and header.closed else Callee("")
        name, id = list[str](), list[str]()
        yield from scan.take_while(NAME, name.append)
        if self.form.id_mark and (yield from scan.accept((self.form.id_mark,))):
            yield from scan.take_while(ID, id.append)
        if delimiters.separator:
            yield from scan.accept((delimiters.separator,))
        return Callee("".join(name), "".join(id))

    # Calls between special tokens

    def _call_between_tokens(self) -> Steps[None]:
        """Reads a call up to the token that ends it: no text holds such a token."""
        scan, answer, delimiters = self.scan, self.answer, self.delimiters
        head, start = list[str](), scan.offset
        marker = yield from scan.until(delimiters.all, head.append)
        callee = self.form.callee("".join(head).strip())
        if marker == delimiters.separator and (yield from scan.mark()) not in ("{", "<", ""):
            named: list[str] = []
            if callee.name == "function":  # the type of the tool; its name follows on a line of its own
                yield from scan.take_while(NAME_ON_A_LINE, named.append)
                callee = Callee("".join(named))
                yield from scan.skip_space()
        answer.open_call(callee.name, callee.id)
        if marker != delimiters.separator or callee.problem or not callee.name:
            answer.fail_call(CUT_OFF if marker is None else callee.problem or NO_NAME)
        else:
            marker = yield from self._arguments_between_tokens()
            self._report_swallowed(start)
        if marker == delimiters.separator:
            marker = yield from scan.until(delimiters.all)
        if marker is not None and (marker == delimiters.call or marker in delimiters.section_ends):
            self.ahead += [marker]

    def _arguments_between_tokens(self) -> Steps[str | None]:
        """Reads the arguments of the open call, in a code fence or not; gives the token behind them."""
        scan, answer, tokens = self.scan, self.answer, self.delimiters.all
        yield from scan.accept(FENCES)
        yield from scan.skip_space()
        whole = False
        is_object = (yield from scan.peek()) == "{"
        if is_object:
            whole = yield from scan.json_value(answer.arguments, tokens.words)
            yield from scan.skip_space()
            if whole:
                yield from scan.accept(FENCES)
                yield from scan.skip_space()
        pieces: list[str] = []
        marker = yield from scan.until(tokens, pieces.append)
        rest = "".join(pieces)
        answer.arguments(rest)
        in_thinking = any(closer in rest for closer in self.prose.pending)
        if marker is None and (rest or not whole):
            answer.fail_call(CUT_OFF)
        elif (not whole and (is_object or rest)) or in_thinking:
            answer.fail_call(NO_JSON)
        answer.close_call()
        return marker


def ignore(_text: str) -> None:
    """Drops text that is not needed, or that is read again from the scanner."""
